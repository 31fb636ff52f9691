"""The term index on PostgreSQL: a table of term numbers under a GIN index."""

from collections.abc import Sequence

from django.db import connection

from memoryhub.long_term_memory.search.base import Where

TABLE = "long_term_memory_terms"


class PostgresTermIndex:
    def add(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {TABLE} (key, tokens) VALUES (%s, %s::bigint[])",  # noqa: S608
                [(key, list(tokens)) for key, tokens in rows],
            )

    def remove(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {TABLE} WHERE key = ANY(%s)", [[key for key, _ in rows]])  # noqa: S608

    def find(self, *, scopes: Sequence[int], terms: Sequence[int], where: Where, cap: int) -> list[int]:
        inside = Where("t.tokens && %s::bigint[]", [list(scopes)]) if scopes else Where()
        wanted = inside & Where("t.tokens @> %s::bigint[]", [list(terms)]) & where
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT t.key FROM {TABLE} t JOIN long_term_memory_searchdocument d ON d.key = t.key "  # noqa: S608
                f"WHERE {wanted.sql} ORDER BY t.key DESC LIMIT %s",
                [*wanted.values, cap],
            )
            return [row[0] for row in cursor.fetchall()]

    def compact(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT gin_clean_pending_list('{TABLE}_tokens')")
