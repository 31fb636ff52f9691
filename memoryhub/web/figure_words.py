"""What each figure means, in one place: the report prints them under its charts, the help page lists them all."""

from dataclasses import dataclass

from django.utils.translation import gettext as _


@dataclass(frozen=True, slots=True)
class Definition:
    """A figure's name, what it says, and its formula."""

    slug: str
    name: str
    text: str
    formula: str


def definitions() -> list[Definition]:
    """Return the definitions in the order in which a reader meets them."""
    return [
        Definition(
            "cost",
            _("Cost"),
            _(
                "What the requests cost at list price on their day: uncached input, cache writes at 1.25 times "
                "(5 minutes) or twice (1 hour) the input price, cache reads at the model's reduced price, "
                "output, and per-use charges."
            ),
            "p·input + 1.25·p·w5 + 2·p·w1 + r·p·read + o·out + per_use",
        ),
        Definition(
            "nocache",
            _("Without cache"),
            _(
                "The same requests with every prompt token at the input price, same model, same output. It is "
                "never a guess about another model."
            ),
            "p·(input + w5 + w1 + read) + o·out + per_use",
        ),
        Definition(
            "net_saving",
            _("Net saving"),
            _(
                "What reading from the cache saved, less what writing to it cost extra. It can be negative: "
                "writes that nobody reads cost more than no cache at all."
            ),
            "(1−r)·p·read − 0.25·p·w5 − 1.0·p·w1",
        ),
        Definition(
            "break_even",
            _("Break-even of a write"),
            _(
                "How often a written token must be read until writing it has paid: once for 5 minutes, twice for "
                "1 hour. w is 1.25 or 2."
            ),
            "(w − 1) / (1 − r)",
        ),
        Definition(
            "hit_rate",
            _("Hit rate (tokens)"),
            _(
                "The share of prompt tokens that came from the cache. It is weighted by tokens, so one long "
                "request counts more than many short ones."
            ),
            "read / (input + w5 + w1 + read)",
        ),
        Definition(
            "unread_writes",
            _("Unread writes"),
            _(
                "Tokens that were written to the cache and never read before they expired. Their write premium "
                "is wasted."
            ),
            "",
        ),
        Definition(
            "regret",
            _("Another plan would save"),
            _(
                "Each session is replayed under six caching plans; this is what its requests cost more than under its "
                "cheapest plan. Sessions whose replay does not explain their bill are left out."
            ),
            "actual − min(none, auto-5m, 1h, mixed, keepalive, actual)",
        ),
        Definition(
            "first_byte",
            _("First byte on a hit"),
            _(
                "The median time from the start of a request to its first byte, for requests that read the cache; "
                "beside it the same for those that did not. It is known of requests that went through the proxy "
                "or a tracked client."
            ),
            "",
        ),
        Definition(
            "tokens",
            _("Tokens by kind"),
            _(
                "Cache reads, cache writes for 5 minutes and for 1 hour, uncached input (what follows the last "
                "breakpoint) and output. The four prompt kinds are disjoint and add up to the prompt."
            ),
            "",
        ),
        Definition(
            "misses",
            _("Misses by cause"),
            _(
                "Tokens that the request before had put into the cache and this one did not read, priced at "
                "what re-writing or re-sending them cost, by what changed."
            ),
            "M_written·(w − r)·p + M_uncached·(1 − r)·p",
        ),
        Definition(
            "regret",
            _("Regret"),
            _(
                "What a session's caching cost more than the cheapest plan of the planner would have. The calibration "
                "error beside it says how far its replay of the real requests is from the bill."
            ),
            "",
        ),
        Definition(
            "tool_hit_rate",
            _("Hit rate of a tool"),
            _(
                "The share of look-ups that the tool cache answered. A hit is given only with its proof: the "
                "lifetime, a fingerprint or a dependency that still holds."
            ),
            "hits / (hits + misses)",
        ),
        Definition(
            "tool_time",
            _("Tool time saved"),
            _("How long the tool took when its result was stored, for every time that it did not have to run again."),
            "",
        ),
        Definition(
            "unpriced",
            _("Unpriced"),
            _(
                "Requests of a model that the price book does not know. They are shown with their tokens and no"
                " dollars, never as zero and never at another model's price. Adding the price reprices them."
            ),
            "",
        ),
        Definition(
            "day",
            _("Day"),
            _(
                "A request belongs to the day on which it started, in the chosen time zone with its real "
                "daylight saving rules."
            ),
            "",
        ),
        Definition(
            "strength",
            _("Strength of a memory"),
            _(
                "Its importance as people or agents set it, falling with the days since it was last recalled, "
                "slower the more often it was. Recalling it or restoring it starts the curve anew; importance "
                "itself is never changed by time."
            ),
            "importance · factor^(days_idle / max(access_count, 1))",
        ),
    ]


def define(*slugs: str) -> list[Definition]:
    """Return some of the definitions, for the lines under a chart."""
    return [item for slug in slugs for item in definitions() if item.slug == slug]
