"""The house stays as it is drawn: who may import whom is checked by import-linter, the rest here."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "memoryhub"
MODULES = sorted(path for path in HOUSE.rglob("*.py") if "migrations" not in path.parts)
ROOMS = ("prompt_cache", "session_cache", "long_term_memory")
FLOORS = {  # the number of the floor; a foreign key may only point to a lower one, or stay in its room
    "contenttypes": 0,
    "auth": 0,
    "workspaces": 1,
    "audit": 2,
    "work": 2,
    "invalidation": 3,
    "webhooks": 3,
    "prompt_cache": 4,
    "session_cache": 4,
    "long_term_memory": 4,
}
MOST_LINES = 450


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def our_models():
    return [model for model in apps.get_models() if model.__module__.startswith("memoryhub.")]


def test_foreign_keys_point_down_and_never_sideways():
    wrong = []
    for model in our_models():
        here = model._meta.app_label
        for field in model._meta.get_fields():
            if field.is_relation and field.concrete and field.related_model:
                there = field.related_model._meta.app_label
                if there != here and FLOORS[there] >= FLOORS[here]:
                    wrong.append(f"{model.__name__}.{field.name} -> {there}")

    assert wrong == []


def test_every_row_belongs_to_a_workspace_directly_or_through_its_parent():
    without = {
        model.__name__
        for model in our_models()
        if model._meta.app_label not in ("workspaces", "work")
        and not any(
            f.is_relation and f.concrete and f.related_model and f.related_model.__module__.startswith("memoryhub.")
            for f in model._meta.get_fields()
        )
    }

    of_the_hub_itself = {"Price", "EmbeddingModel", "WatchedRoot"}  # list prices, embedders, folders
    assert without <= of_the_hub_itself


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_has_the_same_doors_inside(room):
    for part in ("domain", "models", "queries", "services"):
        assert (HOUSE / room / part).is_dir() or (HOUSE / room / f"{part}.py").is_file(), part
    assert len((HOUSE / room / "__init__.py").read_text().strip().splitlines()) >= 5, "a room says what it is"


def test_the_clock_has_one_reader():
    reads = re.compile(r"\b(?:datetime|date|timezone|time)\.(?:now|today|utcnow|time|time_ns)\(")
    allowed = {"memoryhub.common.clock"}
    wrong = [
        name_of(path)
        for path in MODULES
        if name_of(path) not in allowed and "client" not in path.parts and reads.search(path.read_text())
    ]

    assert wrong == []


def test_the_providers_sdk_is_imported_by_the_gateway_and_the_client_only():
    users = {name_of(path) for path in MODULES if any(name.split(".")[0] == "anthropic" for name in imports_of(path))}

    assert all(name.startswith(("memoryhub.llm", "memoryhub.client")) for name in users), users


def test_no_file_is_imported_by_everything():
    counts: Counter[str] = Counter()
    names = {name_of(path) for path in MODULES}
    for path in MODULES:
        counts.update(
            imports_of(path) & names - {"memoryhub.common", "memoryhub.common.errors", "memoryhub.common.clock"}
        )
    module, users = counts.most_common(1)[0]

    assert users < len(MODULES) / 3, f"{module} is imported by {users} of {len(MODULES)} modules"


def test_files_can_be_read_in_one_sitting():
    long = {
        str(path.relative_to(ROOT)): n for path in MODULES if (n := len(path.read_text().splitlines())) > MOST_LINES
    }

    assert long == {}


def test_doors_hold_no_queries_of_their_own():
    orm = re.compile(r"\.objects\.|\bconnection\.cursor\(|\.filter\(\w+__")
    allowed = {"memoryhub.web.health"}  # asks the database whether it lives
    wrong = [
        name_of(path)
        for door in ("api", "anthropic_api", "mcp_server", "web")
        for path in sorted((HOUSE / door).rglob("*.py"))
        if name_of(path) not in allowed and orm.search(path.read_text())
    ]

    assert wrong == []


def test_templates_carry_no_inline_code_and_escape_everything():
    wrong = []
    for path in sorted((ROOT / "templates").rglob("*.html")):
        text = path.read_text()
        if re.search(r"\sstyle=|\son[a-z]+=\"|\|\s*safe\b|\{%\s*autoescape off", text):
            wrong.append(str(path.relative_to(ROOT)))
        if re.search(r"<script(?![^>]*\b(?:src|nonce|type=\"application/json\"))", text):
            wrong.append(f"{path.relative_to(ROOT)} (script)")

    assert wrong == []


def test_nothing_is_marked_safe_by_hand():
    wrong = [name_of(path) for path in MODULES if re.search(r"\bmark_safe\b|SafeString\(", path.read_text())]

    assert wrong == []


def test_csrf_is_waived_only_where_callers_bring_a_key():
    waived = {name_of(path) for path in MODULES if "csrf_exempt" in path.read_text()}

    assert all(name.startswith(("memoryhub.anthropic_api", "memoryhub.mcp_server")) for name in waived), waived


def test_every_setting_is_documented():
    documented = (ROOT / "docs" / "settings.md").read_text()
    names = set(re.findall(r"\"(MEMORYHUB_[A-Z_]+|DATABASE_URL)\"", (HOUSE / "settings.py").read_text()))

    assert {name for name in names if f"`{name}`" not in documented and "_TEST_" not in name} == set()


def test_every_migration_has_a_name():
    unnamed = [path.name for path in HOUSE.rglob("migrations/0*.py") if "_auto_" in path.name]

    assert unnamed == []
