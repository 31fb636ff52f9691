"""Language, appearance and time zone are the viewer's own, and changing them loses no page."""

import re
from datetime import UTC, datetime

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from memoryhub.web import access
from memoryhub.workspaces.models import User


def test_switching_the_language_stays_on_the_page(viewer: Client) -> None:
    answer = viewer.post("/preferences", {"language": "zh-hans", "next": "/jobs?state=dead"})

    assert answer["Location"] == "/jobs?state=dead"
    assert 'lang="zh-hans"' in viewer.get("/jobs").content.decode()


@pytest.mark.parametrize(
    ("referer", "comes_back_to"),
    [
        ("http://testserver/doctor?range=7d", "/doctor?range=7d"),
        ("http://elsewhere.example/doctor", "/"),
        ("http://[broken", "/"),
        ("", "/"),
    ],
)
def test_an_answer_to_a_form_comes_back_to_the_page_that_the_form_stood_on(
    viewer: Client, referer: str, comes_back_to: str
) -> None:
    page = viewer.post("/doctor/check", {"current": "{}"}, headers={"Referer": referer} if referer else None)

    assert set(re.findall(r'name="next" value="([^"]*)"', page.content.decode())) == {comes_back_to}
    assert viewer.get(comes_back_to).status_code == 200


def test_the_language_follows_the_person_to_another_browser(viewer: Client) -> None:
    viewer.post("/preferences", {"language": "zh-hans"})

    elsewhere = Client()
    elsewhere.force_login(User.objects.get(username="viewer-of-home"))

    assert 'lang="zh-hans"' in elsewhere.get("/").content.decode()


def test_somebody_who_is_not_signed_in_keeps_a_choice_in_the_browser(client: Client, db: None) -> None:
    client.post("/preferences", {"language": "zh-hans", "theme": "dark", "next": "/login"})

    page = client.get("/login").content.decode()

    assert 'lang="zh-hans"' in page
    assert 'data-theme="dark"' in page


@pytest.mark.parametrize(
    ("theme", "attribute"), [("dark", 'data-theme="dark"'), ("light", 'data-theme="light"'), ("system", "")]
)
def test_the_theme_is_in_the_page_before_any_script_runs(viewer: Client, theme: str, attribute: str) -> None:
    viewer.post("/preferences", {"theme": theme})

    opening = viewer.get("/").content.decode().split("<head>")[0]

    assert ("data-theme" in opening) == bool(attribute)
    assert attribute in opening


def test_the_browsers_zone_is_used_until_one_is_chosen(viewer: Client) -> None:
    viewer.cookies[access.BROWSER_ZONE_COOKIE] = "Asia%2FShanghai"
    assert "Asia/Shanghai" in viewer.get("/account").content.decode()

    viewer.post("/preferences", {"zone": "Europe/Berlin"})

    assert "Times are shown in Europe/Berlin" in viewer.get("/account").content.decode()


@pytest.mark.parametrize("name", ["../../etc/passwd", "No/Such", "\0", "x" * 500, "posix/../UTC"])
def test_a_zone_that_is_none_is_ignored(viewer: Client, name: str) -> None:
    viewer.cookies[access.ZONE_COOKIE] = name.replace("\0", "%00")

    assert viewer.get("/account").status_code == 200
    assert viewer.post("/preferences", {"zone": name}).status_code == 302
    assert User.objects.get(username="viewer-of-home").time_zone == ""


def test_preferences_send_nobody_to_another_host(client: Client, db: None) -> None:
    assert client.post("/preferences", {"theme": "dark", "next": "//evil.example"})["Location"] == "/"


def test_a_zone_of_one_request_does_not_leak_into_the_next() -> None:
    seen: list[str] = []
    middleware = access.ViewerMiddleware(lambda request: seen.append(timezone.get_current_timezone_name()))  # type: ignore[arg-type, return-value]
    request = RequestFactory().get("/")
    request.COOKIES[access.ZONE_COOKIE] = "Asia/Tokyo"

    middleware(request)

    assert seen == ["Asia/Tokyo"]
    assert timezone.localtime(datetime(2026, 1, 1, tzinfo=UTC)).tzname() == "UTC"
