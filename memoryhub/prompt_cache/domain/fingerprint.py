"""A request's stored form: hashes, lengths and structure of its blocks, and its parameters; never its text.

Layout: the number of blocks, their digests, their digests without key order, then the structure as compressed JSON.
"""

import struct
import zlib
from dataclasses import asdict

import orjson

from memoryhub.prompt_cache.domain.blocks import DIGEST_BYTES, Block, Json, Params, Prompt, canonical_digest

_COUNT = struct.Struct("<I")
_SECTIONS = ("tools", "system", "messages")
_VERSION = 1


def pack(prompt: Prompt) -> bytes:
    """Return the prompt without its texts."""
    rows = [
        [
            _SECTIONS.index(block.section),
            block.path,
            block.type,
            block.role,
            block.weight,
            block.ttl,
            block.message,
            block.can_carry,
        ]
        for block in prompt.blocks
    ]
    facts = {
        "version": _VERSION,
        "rows": rows,
        "params": asdict(prompt.params),
        "automatic_ttl": prompt.automatic_ttl,
        "last_message": prompt.last_message,
        "drops_thinking": prompt.drops_thinking,
    }
    digests = b"".join(block.digest for block in prompt.blocks)
    canonical = b"".join(canonical_digest(block) for block in prompt.blocks)
    return _COUNT.pack(len(rows)) + digests + canonical + zlib.compress(orjson.dumps(facts), 1)


def unpack(data: bytes) -> Prompt:
    """Return the prompt of a stored fingerprint; its blocks have hashes and no source."""
    (count,) = _COUNT.unpack_from(data)
    digests = data[_COUNT.size : _COUNT.size + count * DIGEST_BYTES]
    canonical = data[_COUNT.size + count * DIGEST_BYTES : _COUNT.size + 2 * count * DIGEST_BYTES]
    facts: Json = orjson.loads(zlib.decompress(data[_COUNT.size + 2 * count * DIGEST_BYTES :]))
    blocks = tuple(
        Block(
            section=_SECTIONS[section],
            path=path,
            type=kind,
            role=role,
            digest=_slice(digests, index),
            weight=weight,
            ttl=ttl,
            message=message,
            can_carry=can_carry,
            canonical=_slice(canonical, index),
        )
        for index, (section, path, kind, role, weight, ttl, message, can_carry) in enumerate(facts["rows"])
    )
    params = facts["params"]
    params["web_tools"] = tuple(tuple(tool) for tool in params["web_tools"])
    params["betas"] = tuple(params["betas"])
    return Prompt(blocks, Params(**params), facts["automatic_ttl"], facts["last_message"], facts["drops_thinking"])


def _slice(data: bytes, index: int) -> bytes:
    return data[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]


def keep_body(body: Json) -> bytes:
    """Return the body compressed, for the short time in which its text may still be compared."""
    try:
        data = orjson.dumps(body)
    except (TypeError, ValueError):
        return b""
    return zlib.compress(data, 1)


def read_kept_body(data: bytes) -> Json:
    return orjson.loads(zlib.decompress(data))
