"""Sums by quarter of an hour: a ledger that has none yet is summed up anew by its job, and answered from its records until then."""

from typing import Any

from django.db import migrations, models


def ask_for_new_sums(apps: Any, schema_editor: Any) -> None:
    apps.get_model("prompt_cache", "LedgerState").objects.update(time_zone="")


class Migration(migrations.Migration):
    dependencies = [("prompt_cache", "0004_covering_diagnoses")]
    operations = [
        migrations.AlterField(
            model_name="dailyusage",
            name="dimension",
            field=models.CharField(
                choices=[
                    ("all", "all"),
                    ("model", "model"),
                    ("project", "project"),
                    ("agent", "agent"),
                    ("user", "user"),
                    ("session", "session"),
                    ("unpriced", "unpriced model"),
                    ("quarter", "quarter of an hour"),
                ],
                max_length=10,
            ),
        ),
        migrations.RunPython(ask_for_new_sums, migrations.RunPython.noop, elidable=True),
    ]
