"""What must always hold of stored tool results and blobs, asked of the rows themselves."""

import hashlib
import zlib

from django.db.models import Count, Sum

from memoryhub.session_cache.models import Blob, ToolResult, ToolSpace
from memoryhub.workspaces.models import Workspace


def list_wrong_spaces(workspace: Workspace) -> list[str]:
    """Spaces whose size or count is not the sum over their entries."""
    rows = ToolResult.objects.filter(workspace=workspace).values_list("space_id")
    sums = {space: (size, count) for space, size, count in rows.annotate(size=Sum("size_bytes"), count=Count("pk"))}
    wrong = []
    for space in ToolSpace.objects.filter(workspace=workspace):
        found = sums.get(space.pk, (0, 0))
        if (space.used_bytes, space.entry_count) != found:
            noted = f"{space.entry_count} entries of {space.used_bytes} bytes"
            wrong.append(f"tool space {space.pk} notes {noted}, but holds {found[1]} of {found[0]}")
    return wrong


def list_damaged_blobs(workspace: Workspace) -> list[str]:
    """Contents of events whose bytes no longer have their hash."""
    wrong = []
    for blob in Blob.objects.filter(workspace=workspace).iterator(chunk_size=500):
        try:
            data = zlib.decompress(bytes(blob.data)) if blob.codec == Blob.Codec.ZLIB else bytes(blob.data)
        except zlib.error:
            data = b""
        if hashlib.sha256(data).digest() != bytes(blob.sha256):
            wrong.append(f"blob {blob.pk} is not what its hash says")
    return wrong
