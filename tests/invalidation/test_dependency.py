"""Dependencies as callers describe them: what is understood, and what is refused with a sentence."""

import pytest

from memoryhub.invalidation.domain.dependency import BadDependency, parse_dependencies, parse_dependency


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "file", "path": "/a", "size": 1, "mtime_ns": 2},
        {"kind": "file", "path": "/a", "absent": True},
        {"kind": "directory", "path": "/a", "sha256": "x"},
        {"kind": "url", "url": "https://x", "etag": '"e"'},
        {"kind": "tag", "name": "t"},
        {"kind": "version", "name": "v", "value": "1"},
    ],
)
def test_a_dependency_comes_back_as_it_was_described(raw):
    assert parse_dependency(raw).as_dict() == raw


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"kind": "files", "path": "/a"},
        {"kind": ["file"], "path": "/a"},
        {"kind": "file"},
        {"kind": "file", "path": ""},
        {"kind": "file", "path": 5},
        {"kind": "file", "path": "/a\0"},
        {"kind": "file", "path": "/" + "a" * 3000},
        {"kind": "file", "path": "/a", "size": "3"},
        {"kind": "file", "path": "/a", "size": True},
        {"kind": "file", "path": "/a", "size": 1.5},
        {"kind": "file", "path": "/a", "absent": "yes"},
        {"kind": "file", "path": "/a", "sha256": 7},
        {"kind": "file", "path": "/a", "mtime": 7},
        {"kind": "tag", "path": "/a"},
        {"kind": "url", "url": "https://x", "etag": ["a"]},
        {"kind": "file", "path": "half \ud800"},
    ],
)
def test_what_can_not_be_understood_is_refused(raw):
    with pytest.raises(BadDependency):
        parse_dependency(raw)


def test_the_same_thing_twice_is_one_dependency():
    parsed = parse_dependencies([{"kind": "tag", "name": "t"}, {"kind": "tag", "name": "t"}])

    assert len(parsed) == 1


def test_too_many_are_refused():
    with pytest.raises(BadDependency, match="at most"):
        parse_dependencies({"kind": "tag", "name": str(i)} for i in range(1001))
