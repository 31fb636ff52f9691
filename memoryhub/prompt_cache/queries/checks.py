"""Judging requests that a caller sends along: validate, plan, diagnose, simulate. Nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from memoryhub.common import clock, errors
from memoryhub.prompt_cache.domain.doctor import Diagnosis, diagnose
from memoryhub.prompt_cache.domain.exchange import Exchange, Tariff, find_tariff
from memoryhub.prompt_cache.domain.exchange_body import read_exchange, split_wrapper
from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.planner import Plan, plan
from memoryhub.prompt_cache.domain.pricing import USUAL_READ, Modifiers
from memoryhub.prompt_cache.domain.request_body import BadRequestBody
from memoryhub.prompt_cache.domain.rulebook import rules_at
from memoryhub.prompt_cache.domain.validator import Finding, validate
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.workspaces.models import Workspace

MOST_HISTORY = 500  # earlier requests that one call may bring along


class BadRequestBodyError(errors.Invalid):
    slug = "bad-request-body"
    title = "This is not a Messages request"


class TooMuchHistoryError(errors.Invalid):
    slug = "too-much-history"
    title = "Too many earlier requests"


@dataclass(frozen=True, slots=True)
class GivenCase:
    """A request with its wrapper, read."""

    body: Any
    exchange: Exchange
    modifiers: Modifiers
    history: tuple[Exchange, ...]
    batch: bool


def check_request(workspace: Workspace, given: Any) -> list[Finding]:
    """Return everything the rules have to say about a request body, or about {request, history, batch}."""
    case = read_case(given)
    return validate(
        case.body,
        exchange=case.exchange,
        history=case.history,
        rules=rules_at(case.exchange.started_at),
        batch=case.batch,
        read_ratio=read_ratio(workspace, case.exchange, case.modifiers),
    )


def plan_request(workspace: Workspace, given: Any) -> Plan:
    """Return the body with markers where they pay."""
    case = read_case(given)
    ratio = read_ratio(workspace, case.exchange, case.modifiers)
    return plan(case.body, history=case.history, rules=rules_at(case.exchange.started_at), read_ratio=ratio)


def diagnose_requests(workspace: Workspace, *, previous: Any, current: Any, history: Sequence[Any] = ()) -> Diagnosis:
    """Return why `current` missed what `previous` had left in the cache, priced by the workspace's price book."""
    try:
        before = None if previous is None else read_exchange(previous, "previous")[0]
        after, modifiers = read_exchange(current, "current")
        if after.prompt is None and after.tokens is None:
            raise BadRequestBody("current", "a request, or an object with a request or its usage")
        earlier = read_history(history)
    except BadRequestBody as error:
        raise as_invalid(error) from error
    return diagnose(before, after, earlier, tariff_of(workspace, after, modifiers))


def read_case(given: Any) -> GivenCase:
    """Return a request with what stands beside it; raises BadRequestBodyError naming the place."""
    body, beside = split_wrapper(given)
    try:
        if beside:
            exchange, modifiers = read_exchange(given, "")
        else:
            exchange, modifiers = read_exchange({"request": body}, "")
        history = read_history(beside.get("history") or ())
    except BadRequestBody as error:
        path = error.path.lstrip(".")
        raise as_invalid(
            BadRequestBody(path if beside else path.removeprefix("request").lstrip("."), error.expected)
        ) from error
    if exchange.prompt is None:
        raise as_invalid(BadRequestBody("request", "a Messages request body"))
    return GivenCase(body, exchange, modifiers, history, beside.get("batch") is True)


def read_history(items: Any) -> tuple[Exchange, ...]:
    """Return the earlier requests in order of start."""
    if not isinstance(items, list | tuple):
        raise BadRequestBody("history", "a list")
    if len(items) > MOST_HISTORY:
        raise TooMuchHistoryError(f"history takes at most {MOST_HISTORY} requests.")
    read = [read_exchange(item, f"history[{index}]")[0] for index, item in enumerate(items)]
    return tuple(sorted(read, key=lambda item: item.started_at.timestamp() if item.started_at else 0.0))


def as_invalid(error: BadRequestBody) -> BadRequestBodyError:
    entry = {"in": "body", "field": error.path, "message": f"must be {error.expected}"}
    return BadRequestBodyError(str(error), errors=[entry])


def tariff_of(workspace: Workspace, exchange: Exchange, modifiers: Modifiers) -> Tariff | None:
    """Return what the model cost at that moment, None where the price book does not say."""
    if not exchange.model:
        return None
    model = normalise_model(exchange.model).name
    size = exchange.tokens.prompt if exchange.tokens else exchange.prompt.estimated_tokens if exchange.prompt else 0
    return find_tariff(get_price_book(workspace), model, exchange.started_at or clock.now(), size, modifiers)


def read_ratio(workspace: Workspace, exchange: Exchange, modifiers: Modifiers) -> Fraction:
    """Return the price of a read in input tokens; the usual tenth where the model has no price."""
    tariff = tariff_of(workspace, exchange, modifiers)
    return tariff.rates.read_ratio if tariff else USUAL_READ
