"""Every page and form x everybody. Made from the URL conf, so a new page can't be forgotten."""

import pytest
from django.test import Client
from django.urls import URLPattern

from memoryhub.web.urls import urlpatterns
from memoryhub.workspaces.principals import ROLES

# Open to people who have not signed in: signing in and out, and how a browser wants to see pages.
PUBLIC = {"login", "logout", "preferences"}
PAGES = [
    pytest.param(p, id=str(p.pattern) or "/") for p in urlpatterns if isinstance(p, URLPattern) and p.name not in PUBLIC
]


def address(pattern: URLPattern) -> str:
    from django.urls import reverse

    sample = {
        "int": "987654321",
        "str": "none",
        "path": "none",
        "slug": "none",
        "uuid": "00000000-0000-0000-0000-000000000000",
    }
    kinds = {
        name: type(converter).__name__.removesuffix("Converter").lower()
        for name, converter in pattern.pattern.converters.items()
    }
    return reverse(
        pattern.name,
        kwargs={name: sample.get({"string": "str"}.get(kind, kind), "none") for name, kind in kinds.items()},
    )


def tries(client: Client, pattern: URLPattern) -> list:
    return [client.get(address(pattern)), client.post(address(pattern), {})]


def needed_role(pattern: URLPattern) -> str:
    return pattern.callback.needs_role


@pytest.mark.parametrize("pattern", PAGES)
def test_every_page_says_who_may_see_it(pattern):
    assert needed_role(pattern) in ROLES


@pytest.mark.parametrize("pattern", PAGES)
def test_nobody_sees_it_without_signing_in(db, pattern):
    for response in tries(Client(), pattern):
        assert response.status_code == 405 or (
            response.status_code == 302 and response["Location"].startswith("/login")
        ), response


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("pattern", PAGES)
def test_a_member_sees_what_their_role_may(request, pattern, role):
    allowed = ROLES.index(role) >= ROLES.index(needed_role(pattern))

    for response in tries(request.getfixturevalue(role), pattern):
        assert response.status_code < 500
        assert response.status_code == 405 or (response.status_code == 403) != allowed


@pytest.mark.parametrize("pattern", [row for row in PAGES if row.values[0].pattern.converters])
def test_what_is_not_there_is_404_also_for_admins(admin, pattern):
    for response in tries(admin, pattern):
        assert response.status_code in (404, 405), address(pattern)
