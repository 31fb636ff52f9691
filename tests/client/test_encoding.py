"""Values come back equal and of their type, or are refused."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memoryhub.client.encoding import Uncacheable, dumps, encode, loads


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, 1, 1.0, 10**30, "", "é\u2028", b"\x00\xff", bytearray(b"x"), [], {}, (1, (2,)), {1, 2},
        frozenset({"a"}), datetime(2026, 11, 29, tzinfo=UTC), date(2026, 11, 29), Path("/a/b"),
        {"a": [b"x", (Path("y"),)]}, [{"deep": {"deeper": {None: 1}.__len__()}}],
    ],
)  # fmt: skip
def test_a_value_comes_back_equal(value):
    back = loads(dumps(encode(value)))

    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), {1: "a"}, {None: 1}, {(1,): 2}, object(), {"a": object()}, lambda: 1,
        {"__memoryhub__": "bytes"}, 1j,
    ],
)  # fmt: skip
def test_what_can_not_come_back_equal_is_refused(value):
    with pytest.raises(Uncacheable):
        encode(value)


def test_every_reader_gets_a_value_of_their_own():
    text = dumps(encode({"list": [1]}))

    first, second = loads(text), loads(text)
    first["list"].append(2)

    assert second == {"list": [1]}


def test_a_circle_ends():
    circle = []
    circle.append(circle)

    with pytest.raises(Uncacheable):
        encode(circle)
