"""Reading what lies in blobs."""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from memoryhub.session_cache.models import Blob


def raw_bytes(codec: int, data: bytes | memoryview) -> bytes:
    """Return a blob's bytes as they were stored."""
    return zlib.decompress(data) if codec == Blob.Codec.ZLIB else bytes(data)


def decode(codec: int, data: bytes | memoryview) -> Any:
    """Return the JSON value of a blob."""
    return json.loads(str(raw_bytes(codec, data), "utf-8"))  # as text: bytes would be searched for their encoding


def contents_of(blob_ids: Iterable[int]) -> dict[int, Any]:
    """Return the values of these blobs by id; one query."""
    rows = Blob.objects.filter(pk__in=set(blob_ids)).values_list("pk", "codec", "data")
    return {pk: decode(codec, data) for pk, codec, data in rows}


def raw_contents_of(blob_ids: Iterable[int]) -> dict[int, bytes]:
    """Return the bytes of these blobs by id; one query."""
    wanted = set(blob_ids)
    if not wanted:
        return {}
    rows = Blob.objects.filter(pk__in=wanted).values_list("pk", "codec", "data")
    return {pk: raw_bytes(codec, data) for pk, codec, data in rows}
