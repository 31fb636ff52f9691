"""Keys of texts begin with the text's sketch: those written before are made anew."""

from typing import Any

from django.db import migrations

from memoryhub.long_term_memory.domain.duplicates import dedupe_key

CHUNK = 2_000


def rewrite_keys(apps: Any, schema_editor: Any) -> None:
    memory = apps.get_model("long_term_memory", "Memory")
    keyed = memory.objects.filter(dedupe_key__isnull=False).order_by("id")
    names = ("id", "content", "valid_from", "valid_until", "subject")
    last = 0
    while rows := list(keyed.filter(id__gt=last).values_list(*names)[:CHUNK]):
        with schema_editor.connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE long_term_memory_memory SET dedupe_key = %s WHERE id = %s",
                [(dedupe_key(content, start, end, subject), pk) for pk, content, start, end, subject in rows],
            )
        last = rows[-1][0]


class Migration(migrations.Migration):
    dependencies = [("long_term_memory", "0005_ascending_orders")]
    operations = [migrations.RunPython(rewrite_keys, migrations.RunPython.noop, elidable=True)]
