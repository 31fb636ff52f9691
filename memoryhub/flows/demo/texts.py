"""Files of the imaginary project: long enough to weigh something in a request, the same on every load."""

import random
from functools import lru_cache

_NOUNS = ("line", "order", "price", "address", "parcel", "label", "voucher", "stock", "shipment", "customer", "invoice")
_VERBS = ("load", "store", "check", "count", "reserve", "release", "format", "send", "collect", "update")
_STEPS = (
    "    {noun}s = list({noun}_queries.list_{noun}s(shop=shop, since=since))",
    '    if not {noun}s:\n        raise Unknown{title}(f"There is no {noun} of {{shop}}.")',
    "    total_cents = sum({noun}.price_cents * {noun}.quantity for {noun} in {noun}s)",
    "    with transaction.atomic():\n        changed = {title}.objects.filter(pk={noun}.pk, state=OPEN).update(state=DONE)",
    '    logger.info("{verb} {noun}", extra={{"order": order.public_number, "count": len({noun}s)}})',
    "    return {title}Result(total_cents=total_cents, {noun}s=tuple({noun}s))",
)


@lru_cache(maxsize=128)
def source_text(topic: str, lines: int) -> str:
    """Return plausible Python of the shop about this many lines long."""
    rng = random.Random(topic)  # noqa: S311 - a text, not a secret
    written = [f'"""The services of {topic}."""', "", "from django.db import transaction", ""]
    while len(written) < lines:
        noun, verb = rng.choice(_NOUNS), rng.choice(_VERBS)
        written += ["", f"def {verb}_{noun}(*, shop: Shop, since: datetime) -> {noun.title()}Result:"]
        written.append(f'    """{verb.title()} every {noun} of a shop since a moment, all or nothing."""')
        for step in rng.sample(_STEPS, k=rng.randint(3, 5)):
            written += step.format(noun=noun, verb=verb, title=noun.title()).split("\n")
    return "".join(f"{number:>5}\t{line}\n" for number, line in enumerate(written[:lines], start=1))


def prose_text(sentences: list[str], characters: int, seed: str) -> str:
    """Return paragraphs of an article, made of sentences, about this long."""
    rng = random.Random(seed)  # noqa: S311 - a text, not a secret
    paragraphs: list[str] = []
    length = 0
    while length < characters:
        paragraph = " ".join(rng.sample(sentences, k=min(5, len(sentences))))
        paragraphs.append(paragraph)
        length += len(paragraph)
    return "\n\n".join(paragraphs)
