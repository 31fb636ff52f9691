"""A new memory that says nearly what an older one of its scope says waits in the inbox, however large the scope is."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from memoryhub.long_term_memory.models import Memory, ReviewItem
from memoryhub.long_term_memory.services import proposing
from memoryhub.long_term_memory.services.revisions import update_document_facts

OLD = "The staging deploy runs every Tuesday after the stand-up meeting"
NEW = "The staging deploy runs every Tuesday after the stand-up"


@pytest.fixture(params=["by sketch", "among the newest"])
def either_way(request, monkeypatch):
    if request.param == "among the newest":
        monkeypatch.setattr(proposing, "MOST_SKETCHES", 0)


def store(api, text, **more):
    return api.post("/memories", {"content": text, "scope": {"user": "ana"}, **more}).json()["items"][0]["id"]


def pairs():
    items = ReviewItem.objects.filter(kind__in=["duplicate", "contradiction"])
    return [(item.memory.public_id, item.other.public_id) for item in items.select_related("memory", "other")]


@pytest.mark.usefixtures("either_way")
class TestInOneScope:
    def test_the_newer_is_shown_beside_the_older(self, api):
        for number in range(30):
            store(api, f"Something else entirely, number {number}, about gardens and rain")
        ReviewItem.objects.all().delete()
        older = store(api, OLD)
        newer = store(api, NEW)

        assert pairs() == [(newer, older)]

    def test_what_nobody_recalls_any_more_is_not_asked_about(self, api):
        for leave in ({"state": "archived"}, {"state": "forgotten"}, {"superseded_at": "2026-01-01T00:00:00Z"}):
            older = store(api, f"{OLD} {len(pairs())}")
            Memory.objects.filter(public_id=older).update(**leave)
            update_document_facts(list(Memory.objects.filter(public_id=older)))
        ReviewItem.objects.all().delete()
        store(api, NEW)

        assert pairs() == []

    def test_other_scopes_are_not_looked_at(self, api):
        store(api, OLD, scope={"user": "ben"})
        store(api, NEW)

        assert pairs() == []


def test_keys_of_before_are_made_anew(api):
    older = store(api, OLD)
    right = Memory.objects.get(public_id=older).dedupe_key
    Memory.objects.update(dedupe_key="0" * 64)
    migration = import_module("memoryhub.long_term_memory.migrations.0006_sketches_in_keys")
    migration.rewrite_keys(apps, SimpleNamespace(connection=connection))

    assert Memory.objects.get(public_id=older).dedupe_key == right
    assert len(right) == 64


def test_two_that_say_the_same_do_not_stop_the_upgrade(api):
    first, second = store(api, OLD), store(api, "Something else")
    Memory.objects.filter(public_id=first).update(dedupe_key="0" * 64)
    Memory.objects.filter(public_id=second).update(dedupe_key="1" * 64, content=OLD)
    migration = import_module("memoryhub.long_term_memory.migrations.0006_sketches_in_keys")
    migration.rewrite_keys(apps, SimpleNamespace(connection=connection))

    keys = dict(Memory.objects.values_list("public_id", "dedupe_key"))
    assert keys[first] not in (keys[second], "0" * 64)
    assert keys[second] == "1" * 64


def test_a_scope_of_before_finds_near_duplicates_again(api):
    older = store(api, OLD)
    Memory.objects.update(dedupe_key="0" * 64)
    migration = import_module("memoryhub.long_term_memory.migrations.0006_sketches_in_keys")
    migration.rewrite_keys(apps, SimpleNamespace(connection=connection))

    assert pairs() == []
    newer = store(api, NEW)
    assert pairs() == [(newer, older)]
