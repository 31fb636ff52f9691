"""Paths of memories that are addressed like files."""

import unicodedata

MAX_BYTES = 1024
MAX_SEGMENTS = 20


def check_path(path: str) -> str:
    """Return the path, or raise ValueError with the rule that it breaks."""
    if not path.startswith("/"):
        raise ValueError("a path starts with /")
    if len(path.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ValueError(f"a path takes at most {MAX_BYTES} bytes")
    if unicodedata.normalize("NFC", path) != path:
        raise ValueError("a path must be in Unicode normalization form C")
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in path):
        raise ValueError("a path holds no control or format characters")
    segments = path[1:].split("/")
    if len(segments) > MAX_SEGMENTS:
        raise ValueError(f"a path has at most {MAX_SEGMENTS} segments")
    if any(segment in ("", ".", "..") for segment in segments):
        raise ValueError("a path has no empty, . or .. segments")
    return path
