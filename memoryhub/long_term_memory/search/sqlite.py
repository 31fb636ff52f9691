"""The term index on SQLite: a contentless FTS5 table that lists document keys under hexadecimal term numbers."""

from collections.abc import Sequence

from django.db import connection

from memoryhub.long_term_memory.search.base import Where

TABLE = "long_term_memory_terms"


def _text(tokens: Sequence[int]) -> str:
    return " ".join(map("{:x}".format, tokens))


class SqliteTermIndex:
    def add(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {TABLE} (rowid, tokens) VALUES (%s, %s)",  # noqa: S608
                [(key, _text(tokens)) for key, tokens in rows],
            )

    def remove(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {TABLE} ({TABLE}, rowid, tokens) VALUES ('delete', %s, %s)",  # noqa: S608
                [(key, _text(tokens)) for key, tokens in rows],
            )

    def find(self, *, scopes: Sequence[int], terms: Sequence[int], where: Where, cap: int) -> list[int]:
        scope = " OR ".join(f'"{token:x}"' for token in scopes)
        match = " AND ".join([f"({scope})", *(f'"{term:x}"' for term in terms)])
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT t.rowid FROM {TABLE} t CROSS JOIN long_term_memory_searchdocument d ON d.key = t.rowid "  # noqa: S608
                f"WHERE {TABLE} MATCH %s AND {where.sql} ORDER BY t.rowid DESC LIMIT %s",
                [match, *where.values, cap],
            )
            return [row[0] for row in cursor.fetchall()]

    def compact(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('optimize')")  # noqa: S608
