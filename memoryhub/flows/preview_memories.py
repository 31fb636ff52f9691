"""What a file of memories would bring in, found out from its first records without storing anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from memoryhub.flows.import_memories import ImportResult, Item, UnreadableFile, import_items
from memoryhub.interchange.formats import UnknownFormat, open_format
from memoryhub.long_term_memory.services.writer import Writer

PREVIEW_RECORDS = 20_000  # a few seconds; the rest of a longer file is read when it is imported


@dataclass(frozen=True, slots=True)
class Preview:
    """The dry run, and whether the file goes on behind what was looked at."""

    result: ImportResult
    goes_on: bool


def preview_import(*, writer: Writer, stream: BinaryIO, format: str, file_name: str = "") -> Preview:
    """Run the import of the file's first records dry."""
    try:
        found, whole = open_format(stream, name=format, file_name=file_name)
    except UnknownFormat as error:
        raise UnreadableFile(f"{error}.") from error
    head = _Head(found.read(whole))
    result = import_items(writer=writer, items=head, format=found.name, dry_run=True)
    return Preview(result, head.goes_on)


class _Head:
    """The first records of a file; afterwards it tells whether there were more."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._left = PREVIEW_RECORDS
        self.goes_on = False

    def __iter__(self) -> "_Head":
        return self

    def __next__(self) -> Item:
        if self._left == 0:
            self.goes_on = self.goes_on or next(self._items, None) is not None
            raise StopIteration
        self._left -= 1
        return next(self._items)
