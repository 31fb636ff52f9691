"""Memories by path over HTTP."""

from typing import Any
from urllib.parse import quote

import pytest

from memoryhub.workspaces.principals import Binding


def create(api: Any, path: str, content: str = "text\n", **scope: str) -> Any:
    return api.post("/memories/files", {"path": path, "content": content, "scope": scope})


def read(api: Any, path: str) -> Any:
    return api.get(f"/memories/files/content?path={quote(path)}")


def test_a_file_is_created_read_written_and_forgotten(api: Any) -> None:
    created = create(api, "/memories/深色.md", "one\n")
    written = api.put(
        "/memories/files/content", {"path": "/memories/深色.md", "content": "two\n"}, If_Match=created["ETag"]
    )
    found = read(api, "/memories/深色.md")
    forgotten = api.delete(f"/memories/files/content?path={quote('/memories/深色.md')}")

    assert (created.status_code, created["ETag"], created.json()["size_bytes"]) == (201, '"v1"', 4)
    assert (written.status_code, written["ETag"]) == (200, '"v2"')
    assert (found.json()["content"], found.json()["version"]) == ("two\n", 2)
    assert forgotten.json() == {"forgotten": 1}
    assert read(api, "/memories/深色.md").status_code == 404


def test_the_same_row_has_an_id_and_a_default_scope(api: Any) -> None:
    created = create(api, "/memories/a.txt").json()

    assert created["id"].startswith("mem_")
    assert read(api, "/memories/a.txt").json()["id"] == created["id"]
    assert create(api, "/memories/a.txt", agent="other").status_code == 201


@pytest.mark.parametrize(("path", "slug"), [("/m/a", "path-taken"), ("/m", "path-taken"), ("/m/a/b", "path-blocked")])
def test_a_place_that_is_not_free_is_a_conflict(api: Any, path: str, slug: str) -> None:
    create(api, "/m/a")

    response = create(api, path)

    assert (response.status_code, response.json()["type"]) == (409, f"/problems/{slug}")
    assert response.json()["conflicting_path"] == "/m/a"


def test_a_write_needs_the_current_version(api: Any) -> None:
    create(api, "/a")
    body = {"path": "/a", "content": "new"}

    assert api.put("/memories/files/content", body).status_code == 428
    assert api.put("/memories/files/content", body, If_Match='"v7"').status_code == 412
    assert api.put("/memories/files/content", body, If_Match="v1").status_code == 400
    assert api.put("/memories/files/content", body, If_Match='W/"v1"').status_code == 200
    assert api.put("/memories/files/content", {**body, "path": "/b"}, If_Match="*").status_code == 404


def test_a_directory_is_listed_page_by_page_moved_and_forgotten(api: Any) -> None:
    for name in ("a", "b/c", "b/d", "e"):
        create(api, f"/m/{name}")
    create(api, "/m2/x")

    first = api.get("/memories/files?prefix=/m/&limit=3").json()
    second = api.get(f"/memories/files?prefix=/m/&limit=3&cursor={first['next_cursor']}").json()
    renamed = api.post("/memories/files/rename", {"from": "/m/b", "to": "/n"}).json()
    forgotten = api.delete("/memories/files/content?path=/m").json()

    assert [item["path"] for item in first["items"] + second["items"]] == ["/m/a", "/m/b/c", "/m/b/d", "/m/e"]
    assert second["next_cursor"] is None
    assert all(item["content"] is None for item in first["items"])
    assert (renamed, forgotten) == ({"renamed": 2}, {"forgotten": 2})
    assert [item["path"] for item in api.get("/memories/files").json()["items"]] == ["/m2/x", "/n/c", "/n/d"]


@pytest.mark.parametrize(
    ("source", "target", "status", "slug"),
    [
        ("/m", "/m/b", 409, "moved-into-itself"),
        ("/none", "/x", 404, "unknown-file"),
        ("/m/a", "/m/b", 409, "path-taken"),
        ("/m/a", "/m/b/c", 409, "path-blocked"),
        ("/m/a", "/../x", 422, "invalid-memory"),
    ],
)
def test_moves_that_are_refused(api: Any, source: str, target: str, status: int, slug: str) -> None:
    create(api, "/m/a")
    create(api, "/m/b")

    response = api.post("/memories/files/rename", {"from": source, "to": target})

    assert (response.status_code, response.json()["type"]) == (status, f"/problems/{slug}")


def test_a_bound_key_has_its_own_files(api: Any, api_with: Any) -> None:
    bound = api_with("memories:write", binding=Binding(agent="a1"))
    create(api, "/a")
    create(bound, "/b")

    assert [item["path"] for item in bound.get("/memories/files").json()["items"]] == ["/b"]
    assert create(bound, "/c", agent="a2").status_code == 403
    assert bound.get("/memories/files?agent=a2").status_code == 403


def test_a_stranger_sees_no_file_of_ours(api: Any, stranger_api: Any) -> None:
    create(api, "/a")

    assert read(stranger_api, "/a").status_code == 404
    assert stranger_api.get("/memories/files").json()["items"] == []
    assert stranger_api.delete("/memories/files/content?path=/a").status_code == 404


def test_large_and_bad_contents_are_refused(api: Any) -> None:
    assert create(api, "/a", "x" * 102_401).status_code == 413
    assert create(api, "/a", "深" * 34_133).status_code == 201
    assert create(api, "/b", "token ghp_" + "a" * 36).status_code == 422
    assert api.get("/memories/files?prefix=/m").status_code == 422
    assert api.get("/memories/files?cursor=zzz").status_code == 422


@pytest.mark.parametrize("path", ["%00", "/a%00b", "/%ED%A0%80", "/%FF", "/a%0Ab", "%2e%2e", "/" + "x" * 2000])
def test_a_path_that_can_not_be_is_not_there(api: Any, path: str) -> None:
    assert api.get(f"/memories/files/content?path={path}").status_code == 404
    assert api.delete(f"/memories/files/content?path={path}").status_code in (404, 422)
    assert api.get(f"/memories/files?prefix=/{path}/").status_code in (200, 404)
