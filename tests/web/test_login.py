"""Signing in, and how guessing is slowed down."""

import pytest
from django.test import Client

from memoryhub.web import login
from memoryhub.workspaces.models import User, Workspace
from tests.factories import make_user

PASSWORD = "a long and quiet evening"


@pytest.fixture
def ana(workspace: Workspace) -> User:
    user = make_user("ana", workspace=workspace, role="editor")
    user.set_password(PASSWORD)
    user.save()
    return user


def _try(client: Client, name: str, password: str, **extra: str) -> int:
    return client.post("/login", {"username": name, "password": password}, **extra).status_code  # type: ignore[arg-type]


def test_the_right_password_leads_on_to_the_page_that_was_wanted(client: Client, ana: User) -> None:
    answer = client.post("/login", {"username": ana.username, "password": PASSWORD, "next": "/settings?x=1"})

    assert answer["Location"] == "/settings?x=1"


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_nobody_is_sent_to_another_host(client: Client, ana: User, wanted: str) -> None:
    answer = client.post("/login", {"username": ana.username, "password": PASSWORD, "next": wanted})

    assert answer["Location"] == "/"


def test_a_wrong_password_says_so_and_signs_nobody_in(client: Client, ana: User) -> None:
    answer = client.post("/login", {"username": ana.username, "password": "wrong"})

    assert "correct username and password" in answer.content.decode()
    assert client.get("/settings").status_code == 302


def test_after_five_guesses_even_the_right_password_waits(client: Client, ana: User) -> None:
    for _attempt in range(login.ATTEMPTS_PER_NAME):
        _try(client, ana.username, "wrong")

    answer = client.post("/login", {"username": ana.username.upper(), "password": PASSWORD})

    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0


def test_guesses_at_many_names_are_slowed_by_address(client: Client, ana: User) -> None:
    for attempt in range(login.ATTEMPTS_PER_ADDRESS):
        _try(client, f"name-{attempt}", "wrong")

    assert _try(client, ana.username, PASSWORD) == 429
    assert _try(client, ana.username, PASSWORD, REMOTE_ADDR="192.0.2.7") == 302


def test_a_forged_forwarded_address_does_not_help(client: Client, ana: User) -> None:
    for attempt in range(login.ATTEMPTS_PER_ADDRESS):
        _try(client, f"name-{attempt}", "wrong", HTTP_X_FORWARDED_FOR=f"198.51.100.{attempt}")

    assert _try(client, ana.username, PASSWORD, HTTP_X_FORWARDED_FOR="198.51.100.99") == 429


def test_a_sign_in_clears_the_names_count(client: Client, ana: User) -> None:
    for _attempt in range(login.ATTEMPTS_PER_NAME - 1):
        _try(client, ana.username, "wrong")
    assert _try(client, ana.username, PASSWORD) == 302
    client.post("/logout")

    assert _try(client, ana.username, "wrong") == 200


def test_signing_out_ends_the_session(client: Client, ana: User) -> None:
    _try(client, ana.username, PASSWORD)

    client.post("/logout")

    assert client.get("/").status_code == 302
