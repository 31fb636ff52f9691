"""The full-text index: an FTS5 table on SQLite, an array under a GIN index on PostgreSQL. Neither holds words."""

from typing import Any

from django.db import migrations

CREATE = {
    "sqlite": [
        "CREATE VIRTUAL TABLE long_term_memory_terms USING fts5(tokens, content='', detail=none, columnsize=0, tokenize='ascii')",
    ],
    "postgresql": [
        "CREATE TABLE long_term_memory_terms (key bigint PRIMARY KEY, tokens bigint[] NOT NULL)",
        "CREATE INDEX long_term_memory_terms_tokens ON long_term_memory_terms USING gin (tokens)",
    ],
}


def create(apps: Any, schema_editor: Any) -> None:
    for statement in CREATE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute("DROP TABLE long_term_memory_terms")


class Migration(migrations.Migration):
    dependencies = [("long_term_memory", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
