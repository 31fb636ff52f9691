"""Bodies are read strictly."""

import pytest

from memoryhub.api.parser import NotJson, parse_json
from memoryhub.common.errors import Invalid


def test_broken_json_names_line_and_column():
    with pytest.raises(NotJson) as caught:
        parse_json(b'{"a": 1,\n "b": }')

    assert caught.value.errors == [{"line": 2, "column": 7, "message": "Expecting value"}]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"[NaN]", b"[Infinity]", b"[-Infinity]", b"[" * 100_000, b'{"a":1}x', b"[" + b"9" * 5000 + b"]"],
)
def test_what_is_not_json_is_refused(body):
    with pytest.raises(NotJson):
        parse_json(body)


@pytest.mark.parametrize("body", [rb'{"a": "x\u0000y"}', rb'["\ud800"]', rb'{"\udc00": 1}', rb'[[[["\uD83D"]]]]'])
def test_texts_that_cannot_be_stored_are_refused(body):
    with pytest.raises(Invalid):
        parse_json(body)


def test_whole_surrogate_pairs_and_big_integers_are_kept():
    assert parse_json(rb'["\ud83d\ude00", 123456789012345678901234567890]') == ["😀", 123456789012345678901234567890]


def test_over_http_it_is_a_400_with_the_place(api):
    response = api.put("/sessions/s1", b'{"agent": main}')

    assert response.status_code == 400
    assert response.json()["errors"][0]["line"] == 1
