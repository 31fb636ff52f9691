"""One name per model: what gateways and clouds wrap around a model id is taken off before a price is looked up.

`us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `anthropic/claude-sonnet-4-5` and `claude-sonnet-4-5[1m]` are one model.
The match after that is exact: an id that no price names is unpriced, never guessed from its family.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# A cloud's regional or multi-region profile. "global" carries no surcharge and no region.
_REGION = re.compile(r"^(us-gov|us|eu|apac|ap|jp|au|ca|sa|me|af|uk|global)\.(?=anthropic\.|claude)")
_WRAPPERS = ("anthropic/", "bedrock/", "vertex_ai/", "converse/", "anthropic.")
_TAIL = re.compile(r"(\[1m\]|-v\d+(:\d+)?|@(20\d{6}|default|latest)|-20\d{6})$")
UNKNOWN_MODEL = "unknown"


@dataclass(frozen=True, slots=True)
class ModelId:
    """A normalised model name and the cloud region its id named ("" for none or global)."""

    name: str
    region: str = ""


@lru_cache(maxsize=4096)
def normalise_model(raw: str) -> ModelId:
    """The model an id stands for. Never fails: what is not recognised comes back as it is."""
    name = raw.strip()
    lowered = name.lower()
    if "claude" in lowered:
        name = lowered
    if name.startswith("arn:") and "/" in name:
        name = name.rsplit("/", 1)[1]
    region = ""
    stripped = True
    while stripped:
        stripped = False
        match = _REGION.match(name)
        if match:
            region = "" if match.group(1) == "global" else match.group(1)
            name = name[match.end() :]
            stripped = True
        for wrapper in _WRAPPERS:
            if name.startswith(wrapper):
                name = name[len(wrapper) :]
                stripped = True
    while match := _TAIL.search(name):
        name = name[: match.start()]
    return ModelId(name or UNKNOWN_MODEL, region)
