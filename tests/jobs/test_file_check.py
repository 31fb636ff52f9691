"""Before the hub serves its file is read; a large one goes on being read while it serves, and damage still stops the hub."""

import os
import sqlite3
from contextlib import closing

import pytest
from django.core.management.base import CommandError

from memoryhub.jobs import database_file
from memoryhub.jobs.file_check import FileCheck, find_damage
from memoryhub.jobs.management.commands import up

PAGE = 4096


@pytest.fixture
def file(tmp_path, settings, monkeypatch):
    path = tmp_path / "memory#hub?50%.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
        database.executemany("INSERT INTO note (text) VALUES (?)", [("x" * 500,)] * 200)
        database.commit()
    settings.DATA_DIR = tmp_path
    named = {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
    monkeypatch.setitem(settings.DATABASES, "default", named)
    return path


def damage(path):
    with path.open("r+b") as stream:
        stream.seek(5 * PAGE)
        stream.write(os.urandom(PAGE))


def test_a_whole_file_is_let_through_whatever_its_name(file):
    assert find_damage(file) == ""
    assert database_file.check_before_start() is None


def test_damage_in_the_middle_of_a_file_stops_the_start(file):
    damage(file)

    with pytest.raises(CommandError, match=r"50%\.sqlite3 is damaged .*backup"):
        database_file.check_before_start()


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr(database_file, "START_SECONDS", 0)
    monkeypatch.setattr(up, "COMMANDS", {})
    monkeypatch.setattr(up.signal, "signal", lambda number, handler: None)


def test_damage_that_a_long_check_finds_stops_the_hub(file, slow):
    damage(file)
    check = database_file.check_before_start()
    assert check is not None

    with pytest.raises(CommandError, match="is damaged"):
        up.Supervisor(check).run()


def test_a_long_check_that_finds_nothing_lets_the_hub_be(file, slow, monkeypatch):
    check = database_file.check_before_start()
    supervisor = up.Supervisor(check)
    monkeypatch.setattr(up.time, "sleep", lambda seconds: setattr(supervisor, "stopping", supervisor.check is None))

    supervisor.run()

    assert check.is_over()


def test_a_check_ends_with_the_hub(file, slow):
    check = FileCheck(file)
    supervisor = up.Supervisor(check)
    supervisor.stopping = True

    supervisor.run()

    assert check.is_over()


def test_a_check_that_broke_off_says_nothing_about_the_file(file, slow, capsys):
    check = FileCheck(file)
    check.end()

    database_file.refuse_damage(check)

    assert "ended with -9. `manage.py verify` reads it again" in capsys.readouterr().err
