"""The term index of the database in use."""

from django.db import connection

from memoryhub.long_term_memory.search.base import TermIndex
from memoryhub.long_term_memory.search.postgres import PostgresTermIndex
from memoryhub.long_term_memory.search.sqlite import SqliteTermIndex

TERM_INDEXES: dict[str, type[TermIndex]] = {"sqlite": SqliteTermIndex, "postgresql": PostgresTermIndex}


def term_index() -> TermIndex:
    return TERM_INDEXES[connection.vendor]()
