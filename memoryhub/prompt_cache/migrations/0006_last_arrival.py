"""When usage last arrived, beside the ledger: looking for it among the records takes longer the more there are."""

from typing import Any

from django.db import migrations, models


def note_arrivals(apps: Any, schema_editor: Any) -> None:
    states, records = (apps.get_model("prompt_cache", name) for name in ("LedgerState", "UsageRecord"))
    for state in states.objects.all():
        state.last_arrival_at = records.objects.filter(workspace_id=state.pk).aggregate(at=models.Max("created_at"))[
            "at"
        ]
        state.save(update_fields=["last_arrival_at"])


class Migration(migrations.Migration):
    dependencies = [("prompt_cache", "0005_quarters")]
    operations = [
        migrations.AddField("ledgerstate", "last_arrival_at", models.DateTimeField(null=True)),
        migrations.RunPython(note_arrivals, migrations.RunPython.noop, elidable=True),
    ]
