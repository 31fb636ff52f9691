"""Reading what a caller says about a request and its response: {request, usage, started_at, ...} or a bare request body."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from memoryhub.prompt_cache.domain.blocks import Json
from memoryhub.prompt_cache.domain.exchange import Exchange
from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.pricing import Modifiers, Tokens
from memoryhub.prompt_cache.domain.request_body import BadRequestBody, read_prompt
from memoryhub.prompt_cache.domain.rulebook import DEFAULT_SPEED
from memoryhub.prompt_cache.domain.usage import EXCLUDING_FLAGS, UsageError, read_usage

_REQUEST_KEYS = ("messages", "system", "tools")
_LONGEST_WORD = 200


def split_wrapper(body: Json) -> tuple[Json, Mapping[str, Any]]:
    """Return (request body, what stands beside it); a bare body has nothing beside it."""
    if isinstance(body, dict) and "request" in body and not any(key in body for key in _REQUEST_KEYS):
        return body["request"], body
    return body, {}


def read_exchange(body: Json, where: str) -> tuple[Exchange, Modifiers]:
    """Return an exchange and its price modifiers; raises BadRequestBody with a path that begins with `where`."""
    if not isinstance(body, dict):
        raise BadRequestBody(where, "an object")
    request, beside = split_wrapper(body)
    model = str((request or {}).get("model") or beside.get("model") or "") if isinstance(request, dict | None) else ""
    prompt = None
    if request is not None:
        try:
            prompt = read_prompt(request, model=model)
        except BadRequestBody as error:
            path = f"{where}.request.{error.path}" if beside else f"{where}.{error.path}"
            raise BadRequestBody(path.rstrip("."), error.expected) from error
    tokens, modifiers = read_billed(beside.get("usage"), f"{where}.usage", model)
    exchange = Exchange(
        prompt=prompt,
        tokens=tokens,
        model=model,
        started_at=_moment(beside.get("started_at"), f"{where}.started_at"),
        first_byte_at=_moment(beside.get("first_byte_at"), f"{where}.first_byte_at"),
        ended_at=_moment(beside.get("ended_at"), f"{where}.ended_at"),
        workspace=_word(beside.get("workspace", beside.get("workspace_id")), f"{where}.workspace"),
    )
    if prompt is not None and "speed" not in request and modifiers.speed:
        served = replace(prompt, params=replace(prompt.params, speed=modifiers.speed))  # only the response tells
        exchange = replace(exchange, prompt=served)
    elif prompt is not None and prompt.params.speed != DEFAULT_SPEED:
        modifiers = replace(modifiers, speed=modifiers.speed or prompt.params.speed)
    reason, no_change = read_diagnostics(beside, request)
    return replace(exchange, provider_reason=reason, provider_saw_no_change=no_change), modifiers


def read_billed(usage: Json, where: str, model: str) -> tuple[Tokens | None, Modifiers]:
    """Return the counters and modifiers of a usage object; None where it does not speak of the cache."""
    region = normalise_model(model).region if model else ""
    if usage is None or usage == {}:
        return None, Modifiers(region=region)
    try:
        read = read_usage(usage)
    except UsageError as error:
        raise BadRequestBody(f"{where}{error.path.removeprefix('usage')}", error.reason.removeprefix("is ")) from error
    stated = read.parts[0].stated
    if not EXCLUDING_FLAGS.isdisjoint(stated.flags(read.convention)):
        raise BadRequestBody(where, "counters that can be right")
    known = stated.cache_read is not None or stated.cache_write is not None or stated.cache_write_1h is not None
    modifiers = Modifiers(read.service_tier, read.speed, read.inference_geo, region)
    return (stated.tokens() if known else None), modifiers


def read_diagnostics(beside: Mapping[str, Any], request: Json) -> tuple[str | None, bool]:
    """Return (the provider's reason, whether it looked and saw no change).

    A null answer means "no divergence" only if the request named a previous message; an answer without a reason yet
    says nothing.
    """
    usage, response = beside.get("usage"), beside.get("response")
    for holder in (beside, response, usage):
        if isinstance(holder, dict) and "diagnostics" in holder:
            return reason_of(holder["diagnostics"]), holder["diagnostics"] is None and names_previous(request)
    return None, False


def reason_of(diagnostics: Json) -> str | None:
    """Return the type of `cache_miss_reason`, None where there is none."""
    reason = diagnostics.get("cache_miss_reason") if isinstance(diagnostics, dict) else None
    word = reason.get("type") if isinstance(reason, dict) else reason
    return word[:_LONGEST_WORD] if isinstance(word, str) else None


def names_previous(request: Json) -> bool:
    asked = request.get("diagnostics") if isinstance(request, dict) else None
    previous = asked.get("previous_message_id") if isinstance(asked, dict) else None
    return isinstance(previous, str) and previous != ""


def _moment(value: Json, where: str) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRequestBody(where, "a time such as 2026-11-29T10:00:00Z") from error
    if not 1970 <= moment.year <= 2200:
        raise BadRequestBody(where, "between 1970 and 2200")
    return moment


def _word(value: Json, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRequestBody(where, "a text")
    return value[:_LONGEST_WORD]
