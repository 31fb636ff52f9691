"""How recalled memories are marked where they stand in a context: the rooms that write them and that find them agree here."""

OPEN = "<recalled_memories>"
CLOSE = "</recalled_memories>"
_OPEN, _CLOSE = OPEN.encode(), CLOSE.encode()


def recalled_bytes(content: bytes) -> int:
    """Return how many bytes of a content (UTF-8, also as JSON) are blocks of recalled memories, marks included.

    A block that is never closed is none: what follows it can't be told from the rest.
    """
    total, at = 0, content.find(_OPEN)
    while at >= 0:
        end = content.find(_CLOSE, at)
        if end < 0:
            break
        end += len(_CLOSE)
        total += end - at
        at = content.find(_OPEN, end)
    return total
