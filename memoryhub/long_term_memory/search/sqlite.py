"""The term index on SQLite: a contentless FTS5 table that lists document keys under hexadecimal term numbers."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from memoryhub.common.many_rows import insert_many
from memoryhub.long_term_memory.search.base import Where

TABLE = "long_term_memory_terms"
MERGE_PAGES = 200  # of one step: some tens of milliseconds


def _text(tokens: Sequence[int]) -> str:
    return " ".join(map("{:x}".format, tokens))


class SqliteTermIndex:
    def add(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        insert_many(TABLE, ("rowid", "tokens"), [(key, _text(tokens)) for key, tokens in rows])

    def remove(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {TABLE} ({TABLE}, rowid, tokens) VALUES ('delete', %s, %s)",  # noqa: S608
                [(key, _text(tokens)) for key, tokens in rows],
            )

    def find(self, *, scopes: Sequence[int], terms: Sequence[int], where: Where, cap: int) -> list[int]:
        scope = " OR ".join(f'"{token:x}"' for token in scopes)
        match = " AND ".join([*([f"({scope})"] if scope else []), *(f'"{term:x}"' for term in terms)])
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT t.rowid FROM {TABLE} t CROSS JOIN long_term_memory_searchdocument d ON d.key = t.rowid "  # noqa: S608
                f"WHERE {TABLE} MATCH %s AND {where.sql} ORDER BY t.rowid DESC LIMIT %s",
                [match, *where.values, cap],
            )
            return [row[0] for row in cursor.fetchall()]

    def compact(self) -> None:
        """Merge all segments into one, a few pages at a time, so that no writer waits for a large index."""
        with connection.cursor() as cursor:
            self._merge(cursor, -MERGE_PAGES)  # marks all segments as to be merged, as `optimize` would
            while self._merge(cursor, MERGE_PAGES) > 1:
                pass

    @staticmethod
    def _merge(cursor: Any, pages: int) -> int:
        """One step; returns how many rows it wrote, which is 1 when nothing was left to do."""
        cursor.execute("SELECT total_changes()")
        before = cursor.fetchone()[0]
        cursor.execute(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('merge', %s)", [pages])  # noqa: S608
        cursor.execute("SELECT total_changes()")
        return int(cursor.fetchone()[0] - before)
