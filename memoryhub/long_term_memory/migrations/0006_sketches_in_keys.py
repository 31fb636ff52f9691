"""Keys of texts begin with the text's sketch: those written before are made anew."""

from typing import Any

from django.db import IntegrityError, migrations, transaction

from memoryhub.long_term_memory.domain.duplicates import dedupe_key

CHUNK = 2_000


def rewrite_keys(apps: Any, schema_editor: Any) -> None:
    memory = apps.get_model("long_term_memory", "Memory")
    keyed = memory.objects.filter(dedupe_key__isnull=False).order_by("id")
    names = ("id", "content", "valid_from", "valid_until", "subject")
    last = 0
    while rows := list(keyed.filter(id__gt=last).values_list(*names)[:CHUNK]):
        keys = [(dedupe_key(content, start, end, subject), pk) for pk, content, start, end, subject in rows]
        if not _write(schema_editor.connection, keys):
            for key in keys:  # two of them say the same: the later one keeps its old key
                _write(schema_editor.connection, [key])
        last = rows[-1][0]


def _write(connection: Any, keys: list[tuple[str, int]]) -> bool:
    try:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.executemany("UPDATE long_term_memory_memory SET dedupe_key = %s WHERE id = %s", keys)
    except IntegrityError:
        return False
    return True


class Migration(migrations.Migration):
    dependencies = [("long_term_memory", "0005_ascending_orders")]
    operations = [migrations.RunPython(rewrite_keys, migrations.RunPython.noop, elidable=True)]
