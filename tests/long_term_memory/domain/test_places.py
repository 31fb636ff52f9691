"""Paths and scopes: what is refused, and what lies inside what."""

import pytest

from memoryhub.long_term_memory.domain.paths import check_path
from memoryhub.long_term_memory.domain.scoping import ScopeClash, ScopeNames


@pytest.mark.parametrize("path", ["/a", "/a/b.md", "/深色/主题.md", "/A b/ä", "/" + "/".join("x" * 20)])
def test_good_paths_pass(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "/",
        "/a//b",
        "/a/",
        "/../x",
        "/a/./b",
        "/a\x00b",
        "/a\nb",
        "/" + "x" * 1024,
        "/" + "/".join("x" * 21),
        "/e\u0301",
    ],
)
def test_bad_paths_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        check_path(path)


def test_a_binding_fills_what_is_not_named_and_refuses_what_is_another() -> None:
    assert ScopeNames(user="ana").within(agent="coder", user=None, project=None) == ScopeNames("coder", "ana")
    with pytest.raises(ScopeClash, match="agent"):
        ScopeNames(agent="other").within(agent="coder", user=None, project=None)


def test_a_scope_covers_what_has_all_its_names() -> None:
    assert ScopeNames(user="ana").covers(ScopeNames("coder", "ana", "web"))
    assert not ScopeNames(user="ana", project="web").covers(ScopeNames("coder", "ana"))
