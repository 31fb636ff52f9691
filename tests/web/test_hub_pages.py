"""Overview, changes, jobs, status, connect and the palette, as a member sees them."""

from datetime import timedelta

import pytest
from django.test import Client

from memoryhub.audit.services import open_change_set
from memoryhub.common import clock
from memoryhub.web import status as status_page
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor
from memoryhub.workspaces.services import ensure_session

AGENT = Actor("key", "abcd1234", "reviewer")


def _write(workspace: Workspace, reason: str = "") -> str:
    return open_change_set(
        workspace=workspace, actor=AGENT, action="remember", reason=reason, door="mcp", subject_count=3
    ).public_id


def test_the_overview_tells_of_what_agents_wrote(viewer: Client, workspace: Workspace) -> None:
    _write(workspace, "learned today")

    page = viewer.get("/").content.decode()

    assert "key reviewer" in page
    assert "learned today" in page


def test_news_are_counted_and_nothing_moves_until_asked(viewer: Client, workspace: Workspace) -> None:
    seen = _write(workspace)
    assert "new, show" not in viewer.get(f"/feed?after={seen}").content.decode()
    _write(workspace)
    _write(workspace)

    assert "2 new, show" in viewer.get(f"/feed?after={seen}").content.decode()


def test_a_change_set_that_is_dated_back_is_no_news(viewer: Client, workspace: Workspace) -> None:
    seen = _write(workspace)
    with clock.frozen(clock.now() - timedelta(days=3)):
        _write(workspace)

    assert "new, show" not in viewer.get(f"/feed?after={seen}").content.decode()


def test_an_empty_hub_teaches_how_to_fill_it(viewer: Client) -> None:
    assert "import_transcripts" in viewer.get("/").content.decode()


def test_changes_are_listed_page_by_page(viewer: Client, workspace: Workspace) -> None:
    written = [_write(workspace) for _ in range(60)]

    first = viewer.get("/changes").content.decode()
    following = viewer.get(_next_link(first)).content.decode()

    assert written[-1] in first
    assert written[0] not in first
    assert written[0] in following


def _next_link(page: str) -> str:
    before = page.split('rel="next"')[0]
    return before.rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")


@pytest.mark.parametrize("cursor", ["nonsense", "e30", "%00", "W1sidiIsMV1d", "W1sieCIsMV0sWyJ2IiwxXV0", "x" * 3000])
def test_a_bad_cursor_is_a_clear_error(viewer: Client, workspace: Workspace, cursor: str) -> None:
    answer = viewer.get(f"/changes?cursor={cursor}")

    assert answer.status_code in (400, 422)


def test_a_change_set_of_others_is_not_found(stranger: Client, workspace: Workspace) -> None:
    assert stranger.get(f"/changes/{_write(workspace)}").status_code == 404


def test_a_job_shows_its_state_and_its_part_refreshes_until_it_ends(viewer: Client, workspace: Workspace) -> None:
    job = enqueue_job(workspace=workspace, kind="decay")

    part = viewer.get(f"/jobs/{job.public_id}", headers={"HX-Request": "true"}).content.decode()
    assert "every 3s" in part
    assert "<html" not in part
    Job.objects.update(state="done", result={"archived": 12_000})

    ended = viewer.get(f"/jobs/{job.public_id}", headers={"HX-Request": "true"}).content.decode()
    assert "every 3s" not in ended
    assert "12,000" in ended


def test_going_back_gets_a_whole_page_and_never_a_fragment(viewer: Client, workspace: Workspace) -> None:
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}

    assert "<html" in viewer.get("/jobs", headers=headers).content.decode()


def test_a_dead_job_is_retried_by_an_editor(editor: Client, viewer: Client, workspace: Workspace) -> None:
    job = enqueue_job(workspace=workspace, kind="housekeeping")
    Job.objects.update(state="dead", error="no luck")

    assert "no luck" in viewer.get("/jobs").content.decode()
    assert viewer.post(f"/jobs/{job.public_id}/retry").status_code == 403
    editor.post(f"/jobs/{job.public_id}/retry")

    assert Job.objects.get().state == "queued"


def test_only_harmless_kinds_are_run_by_hand(editor: Client, workspace: Workspace) -> None:
    assert editor.post("/jobs/run", {"kind": "erase"}).status_code == 422
    assert editor.post("/jobs/run", {"kind": "housekeeping"}).status_code == 302


def test_the_status_page_has_a_word_for_each_sign(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_page, "FULL_DISK_BYTES", 2**60)

    page = viewer.get("/status").content.decode()

    assert "almost full" in page
    assert "Something needs a look" in page


def test_the_connect_page_has_commands_for_this_server(viewer: Client) -> None:
    page = viewer.get("/connect", headers={"Host": "localhost:8123"}).content.decode()

    assert "http://localhost:8123/mcp" in page
    assert "http://localhost:8123/anthropic/k/$MEMORYHUB_KEY" in page


def test_the_connect_page_says_when_something_arrived(viewer: Client, workspace: Workspace) -> None:
    assert "Not yet" in viewer.get("/connect").content.decode()
    ensure_session(workspace=workspace, sid="s1")

    part = viewer.get("/connect/seen", headers={"HX-Request": "true"}).content.decode()

    assert "Yes" in part
    assert "just now" in part


def test_the_palette_finds_pages_in_either_language_and_sessions(viewer: Client, workspace: Workspace) -> None:
    ensure_session(workspace=workspace, sid="s-417", title="Deploy on Tuesday")

    assert "/jobs" in viewer.get("/palette?q=job").content.decode()
    assert "Deploy on Tuesday" in viewer.get("/palette?q=417").content.decode()
    viewer.post("/preferences", {"language": "zh-hans"})
    assert "/jobs" in viewer.get("/palette?q=job").content.decode()


@pytest.mark.parametrize("typed", ["<script>alert(1)</script>", "%00", "'; DROP TABLE", "%", "x" * 5000])
def test_the_palette_takes_any_text(viewer: Client, typed: str) -> None:
    answer = viewer.get("/palette", {"q": typed})

    assert answer.status_code == 200
    assert "<script>alert" not in answer.content.decode()


@pytest.mark.parametrize(
    ("typed", "tidy"),
    [
        ("/sessions?q=", "/sessions"),
        ("/planner?session=", "/planner"),
        ("/tool-cache?tool=grep&q=", "/tool-cache?tool=grep"),
        ("/invalidate?tool=read_*&session=&tag=&path=&event=&key=", "/invalidate?tool=read_%2A"),
        ("/memories/bulk?action=pin&value=", "/memories/bulk?action=pin"),
    ],
)
def test_an_address_says_only_what_a_form_was_filled_with(editor: Client, typed: str, tidy: str) -> None:
    answer = editor.get(typed)

    assert (answer.status_code, answer["Location"]) == (302, tidy)
    assert editor.get(tidy).status_code == 200
