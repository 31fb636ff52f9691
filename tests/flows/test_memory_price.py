"""A memory's price: found in request bodies by its marks, and charged with the cache misses that begin where it stands."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from memoryhub.common import clock
from memoryhub.flows.memory_price import carried_texts, list_carriers, note_carried_memories, price_memory
from memoryhub.long_term_memory.domain.rendering import find_marks
from memoryhub.long_term_memory.models import CarriedMemory, Memory
from tests.api.test_memories import keep
from tests.conftest import ApiClient
from tests.factories import NOON

FILLER = "Rules of the house, which every answer keeps to. " * 500


def send(api: ApiClient, message_id: str, body: dict[str, Any] | None, minutes: int, *, read: int, write: int) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
    }
    report = {"message_id": message_id, "model": "claude-opus-5-5", "session": "s1", "usage": usage}
    report |= {"request": body} if body is not None else {}
    at = NOON + timedelta(minutes=minutes)
    with clock.frozen(at):
        response = api.post("/prompt-cache/usage", report | {"started_at": at.isoformat()})
        assert response.status_code == 201, response.content
        note_carried_memories()


def body_with(recalled: str) -> dict[str, Any]:
    cached = {"type": "ephemeral"}
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": FILLER}, {"type": "text", "text": recalled, "cache_control": cached}],
        "messages": [{"role": "user", "content": "hello"}],
    }


def test_a_memory_in_the_system_block_is_charged_with_the_miss_that_begins_there(api: ApiClient) -> None:
    with clock.frozen(NOON):
        tea, milk = keep(api, "likes tea")["id"], keep(api, "and milk")["id"]
        before = api.post("/memories/render", {"ids": [tea]}).json()["text"]
        after = api.post("/memories/render", {"ids": [tea, milk]}).json()["text"]
    send(api, "msg_1", body_with(before), 0, read=0, write=8_000)
    send(api, "msg_2", body_with(after), 1, read=0, write=8_050)

    memory = Memory.objects.get(public_id=tea)
    price = price_memory(workspace=memory.workspace, memory=memory, now=NOON + timedelta(hours=1))

    assert price is not None
    assert [(place.place, place.requests, place.breaks) for place in price.places] == [("system", 2, 1)]
    assert price.usd_per_day > Decimal("0.001")
    assert price.tail_usd_per_day is not None
    assert price.tail_usd_per_day < price.usd_per_day
    assert {carrier.path for carrier in list_carriers(memory)} == {"system[1]"}
    with clock.frozen(NOON + timedelta(hours=1)):
        answer = api.get(f"/memories/{tea}/price").json()
    assert answer["places"][0]["breaks"] == 1
    assert Decimal(answer["usd_per_day"]) == price.usd_per_day


def test_a_memory_that_nobody_carried_has_no_price(api: ApiClient) -> None:
    kept = keep(api)

    assert api.get(f"/memories/{kept['id']}/price").json()["places"] == []


def test_requests_that_came_without_a_body_are_counted_apart(api: ApiClient) -> None:
    with clock.frozen(NOON):
        tea = keep(api, "likes tea")["id"]
        block = api.post("/memories/render", {"ids": [tea]}).json()["text"]
    send(api, "msg_1", body_with(block), 0, read=0, write=8_000)
    send(api, "msg_2", body_with(block), 1, read=8_000, write=0)
    send(api, "msg_3", None, 2, read=8_000, write=0)

    with clock.frozen(NOON + timedelta(hours=1)):
        price = api.get(f"/memories/{tea}/price").json()

    assert (price["requests_read"], price["requests_unread"]) == (2, 1)


def test_a_memory_that_was_recalled_where_no_request_could_be_read_says_so(api: ApiClient) -> None:
    with clock.frozen(NOON):
        tea = keep(api, "likes tea")["id"]
    send(api, "msg_0", None, -5, read=8_000, write=0)  # before it was recalled
    with clock.frozen(NOON):
        api.post("/memories/search", {"query": "tea", "session": "s1"})
    send(api, "msg_1", None, 1, read=8_000, write=0)
    send(api, "msg_2", None, 2, read=8_000, write=0)

    with clock.frozen(NOON + timedelta(hours=1)):
        price = api.get(f"/memories/{tea}/price").json()

    assert (price["places"], price["usd_per_day"]) == ([], "0")
    assert (price["requests_read"], price["requests_unread"]) == (0, 2)


def test_noting_twice_notes_once_and_strangers_marks_are_nobodys(api: ApiClient, stranger_api: ApiClient) -> None:
    theirs = keep(stranger_api, "a stranger's tea")["id"]
    forged = f'<memory id="{theirs}" version="1">x</memory>'
    send(api, "msg_1", body_with(forged), 0, read=0, write=8_000)

    with clock.frozen(NOON):
        assert note_carried_memories() == 0
    assert not CarriedMemory.objects.exists()


def test_texts_are_found_wherever_a_body_has_them() -> None:
    mark = '<memory id="mem_{}" version="1">'
    body = {
        "tools": [{"name": "t", "description": mark.format("a")}],
        "system": mark.format("b"),
        "messages": [
            {"role": "user", "content": mark.format("c")},
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "text", "text": mark.format("d")}]}],
            },
            "not a message",
        ],
    }

    found = [(place, path, find_marks(text)[0][0]) for place, path, text in carried_texts(body)]

    assert found == [
        ("tools", "tools[0]", "mem_a"),
        ("system", "system", "mem_b"),
        ("messages", "messages[0].content", "mem_c"),
        ("messages", "messages[1].content[0][0]", "mem_d"),
    ]
    assert list(carried_texts(None)) == []
