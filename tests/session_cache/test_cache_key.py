"""Canonical parameters after RFC 8785, with whole numbers kept exact; and the key's parts."""

import pytest

from memoryhub.session_cache.domain.cache_key import (
    Uncacheable,
    canonical_json,
    redacted,
    session_scope,
    tool_key,
    with_normal_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # The RFC's own numbers that are below 2^53, and those around its borders.
        (333333333.33333329, "333333333.3333333"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (1e-27, "1e-27"),
        (0.000001, "0.000001"),
        (0.0000015, "0.0000015"),
        (0.00001, "0.00001"),
        (1e-7, "1e-7"),
        (-1e-7, "-1e-7"),
        (-1.5e-5, "-0.000015"),
        (1.0, "1"),
        (-0.0, "0"),
        (1e15, "1000000000000000"),
        (2**53 - 1, "9007199254740991"),
        (float(2**53 - 1), "9007199254740991"),
        (10**30, "1000000000000000000000000000000"),
        (True, "true"),
        (None, "null"),
        ({"b": 1, "a": [1, {}]}, '{"a":[1,{}],"b":1}'),
        ("\u20ac$\u000f\nA'\"\\/", '"€$\\u000f\\nA\'\\"\\\\/"'),
        # Sorted by UTF-16 code units: the emoji (a surrogate pair) comes before U+FB33.
        ({"\ufb33": 1, "\U0001f600": 2, "\u0080": 3, "1": 4}, '{"1":4,"\u0080":3,"\U0001f600":2,"\ufb33":1}'),
    ],
)
def test_canonical_text(value, text):
    assert canonical_json(value) == text


@pytest.mark.parametrize(
    "pair", [(2**53, float(2**53)), (10**22, 1e22), (1, True), (0, False), (1, "1"), ([], {}), (2**53, 2**53 + 1)]
)
def test_different_values_have_different_texts(pair):
    assert canonical_json(pair[0]) != canonical_json(pair[1])


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1: "a"}, {None: 1}, b"bytes", {"a": {1, 2}}, object(), "\ud800"],
)
def test_what_has_no_canonical_text_is_refused(value):
    with pytest.raises(Uncacheable):
        canonical_json(value)


def test_a_number_without_end_is_refused():
    with pytest.raises(Uncacheable, match="digits"):
        canonical_json(10**5000)


def test_a_circle_ends():
    circle = []
    circle.append(circle)
    with pytest.raises(Uncacheable, match="nested"):
        canonical_json(circle)


def test_the_key_is_the_whole_digest_of_every_part():
    base = {"scope": session_scope("s"), "tool": "t", "params_json": "{}", "tool_version": "1", "root": "r"}
    keys = {tool_key(**base)}
    for name in base:
        keys.add(tool_key(**{**base, name: base[name] + "x"}))
    keys.add(tool_key(**base, env_json='{"A":"1"}'))
    keys.add(tool_key(**{**base, "tool": "tx", "tool_version": ""}))

    assert len(keys) == 8
    assert all(len(key) == 64 for key in keys)
    assert tool_key(**base) == tool_key(**base)


def test_a_session_can_not_be_named_like_the_workspace():
    assert session_scope("workspace") != "workspace"


def test_secrets_are_hidden_wherever_they_stand():
    params = {
        "q": "a", "API-Key": "x", "auth_token": "y", "tokens": 5, "list": [{"password": "p", "user": "u"}], "own": "z",
    }  # fmt: skip

    assert redacted(params, ["own"]) == {
        "q": "a", "API-Key": "[redacted]", "auth_token": "[redacted]", "tokens": 5,
        "list": [{"password": "[redacted]", "user": "u"}], "own": "[redacted]",
    }  # fmt: skip


def test_normal_text_is_opt_in_per_parameter():
    params = {"q": "cafe\u0301", "path": "cafe\u0301"}

    assert with_normal_text(params, []) == params
    assert with_normal_text(params, ["q"]) == {"q": "caf\u00e9", "path": "cafe\u0301"}
