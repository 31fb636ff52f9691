"""How far each transcript file has been read."""

from __future__ import annotations

from django.db import models

from memoryhub.workspaces.models import Workspace


class TranscriptFile(models.Model):
    """A file's read position, and enough of its content to notice that it was rewritten."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="transcript_files", db_index=False)
    path_sha256 = models.CharField(max_length=64)
    path = models.TextField()
    size = models.BigIntegerField()
    mtime_ns = models.BigIntegerField()
    offset = models.BigIntegerField()  # bytes read as whole lines
    line_count = models.BigIntegerField()
    sample_sha256 = models.CharField(max_length=64)  # of samples spread over the first `offset` bytes
    with_events = models.BooleanField(default=False)
    memory = models.JSONField(default=dict)
    imported_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "path_sha256"], name="transcript_file_is_unique"),
            models.CheckConstraint(condition=models.Q(offset__gte=0), name="transcript_offset_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.path} up to {self.offset}"
