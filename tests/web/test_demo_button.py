"""The demo at the push of a button, and its banner."""

import pytest
from django.test import Client

from memoryhub.flows.demo import load
from memoryhub.flows.demo.load import find_demo, load_demo
from memoryhub.jobs.tasks import run_now
from memoryhub.work.models import Job, JobState
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace


@pytest.fixture(autouse=True)
def _only_the_first_act(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace and its sessions are enough here; tests/flows looks at the whole story."""
    monkeypatch.setattr(load, "ACTS", load.ACTS[:1])


def test_the_button_leaves_a_job_and_only_admins_may(admin: Client, editor: Client) -> None:
    assert editor.post("/demo/load").status_code == 403

    answer = admin.post("/demo/load")

    job = Job.objects.get(kind="load_demo")
    assert answer.status_code == 302
    assert answer["Location"] == f"/jobs/{job.public_id}"
    assert job.workspace is None
    admin.post("/demo/load")
    assert Job.objects.filter(kind="load_demo").count() == 1


def test_the_job_loads_the_demo(workspace: Workspace) -> None:
    job = enqueue_job(workspace=None, kind="load_demo")

    run_now(job.pk)

    job.refresh_from_db()
    assert (job.state, job.error) == (JobState.DONE, "")
    assert find_demo() is not None


def test_the_banner_stands_on_the_demos_pages_and_its_button_removes_it(admin: Client, workspace: Workspace) -> None:
    assert "demo/remove" not in admin.get("/").content.decode()
    assert admin.post("/demo/remove").status_code == 409
    load_demo()

    assert "demo/remove" in admin.get("/").content.decode()
    answer = admin.post("/demo/remove")

    assert answer.status_code == 302
    assert find_demo() is None
    assert Workspace.objects.filter(pk=workspace.pk).exists()
