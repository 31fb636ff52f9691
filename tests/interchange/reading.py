"""Short ways for these tests to read bytes and write records."""

from io import BytesIO

from memoryhub.interchange.formats import FORMATS, open_format
from memoryhub.interchange.record import MemoryRecord, Problem


def read(data: bytes, *, name: str = "auto", file_name: str = "") -> tuple[str, list[MemoryRecord], list[Problem]]:
    """The format's name, the good records and the problems of a file."""
    entry, stream = open_format(BytesIO(data), name=name, file_name=file_name)
    found = list(entry.read(stream))
    return (
        entry.name,
        [item for item in found if isinstance(item, MemoryRecord)],
        [item for item in found if isinstance(item, Problem)],
    )


def write(name: str, records: list[MemoryRecord]) -> str:
    return "".join(FORMATS[name].write(records))
