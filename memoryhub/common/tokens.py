"""Token estimates for texts whose true count nobody told us. Never used for money: bills use the provider's counters."""

import re

_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
CHARACTERS_PER_TOKEN = 4  # English prose and code under current tokenizers: about four characters a token
CJK_CHARACTERS_PER_TOKEN = 1  # Chinese, Japanese, Korean: about one token a character


def estimate_tokens(text: str) -> int:
    """Return about how many tokens the text takes: at least 1 for any text, 0 for none."""
    if not text:
        return 0
    wide = len(_CJK.findall(text))
    narrow = len(text) - wide
    return max(1, round(wide / CJK_CHARACTERS_PER_TOKEN + narrow / CHARACTERS_PER_TOKEN))
