"""Money is never a float: not in the tables, not in Python, not in JSON, not in a file."""

import ast
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import models

from memoryhub.prompt_cache import models as room
from memoryhub.workspaces.models import Workspace
from tests.conftest import ApiClient
from tests.prompt_cache.makers import make_report
from tests.prompt_cache.rules.cases import make_body, next_turn

ROOT = Path(room.__file__).resolve().parents[3]
AMOUNT = re.compile(r"-?\d+(\.\d+)?")
NO_AMOUNTS = {"hit_rate", "calibration_error", "rebuilt_share", "threshold"}
MONEY_NAME = re.compile(r"(^|_)(usd|pico|cost|price)$")


def test_no_column_of_the_room_can_hold_a_fraction() -> None:
    fields = [field for model in apps.get_app_config("prompt_cache").get_models() for field in model._meta.get_fields()]

    assert [field for field in fields if isinstance(field, models.FloatField | models.DecimalField)] == []
    amounts = [field for field in fields if field.name.endswith(("_pico", "_rate"))]
    assert len(amounts) >= 12
    assert all(isinstance(field, models.BigIntegerField) for field in amounts)


def money_annotations() -> Iterator[tuple[str, str]]:
    """(place, annotation) of every annotated name that means money."""
    for path in sorted((ROOT / "memoryhub").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else ""
            if isinstance(node, ast.FunctionDef | ast.arg):
                name = node.name if isinstance(node, ast.FunctionDef) else node.arg
            annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
            if MONEY_NAME.search(name) and annotation is not None:
                yield f"{path.name}:{node.lineno} {name}", ast.unparse(annotation)


def test_no_annotation_of_money_says_float() -> None:
    found = list(money_annotations())

    assert len(found) > 60
    assert [place for place, annotation in found if "float" in annotation] == []


class Fraction(str):
    """A number with a point in JSON."""


def fractions(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fractions(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from fractions(inner, name)
    elif isinstance(value, Fraction):
        yield name


def amounts(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from amounts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from amounts(inner, name)
    elif name.endswith("_usd"):
        yield name, value


def exchanges() -> list[dict[str, Any]]:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 4_601, "output_tokens": 1}
    return [
        {"request": body, "usage": usage, "started_at": f"2026-11-29T10:0{minute}:00Z"}
        for minute, body in enumerate([make_body(), next_turn(make_body())])
    ]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/prompt-cache/usage", make_report("m2")),
        ("get", "/prompt-cache/report?group_by=day,model", None),
        ("get", "/prompt-cache/prices", None),
        ("put", "/prompt-cache/prices?dry_run=true", {"model": "claude-opus-5-5", "input_usd": 3.3, "output_usd": 1}),
        ("post", "/prompt-cache/diagnose", dict(zip(("previous", "current"), exchanges(), strict=True))),
        ("post", "/prompt-cache/simulate", {"requests": exchanges(), "plans": ["none", "auto-5m", "actual"]}),
        ("post", "/prompt-cache/validate", {"request": make_body(), "history": exchanges()}),
        ("post", "/prompt-cache/plan", make_body()),
    ],
)
def test_no_amount_in_json_is_a_number(api: ApiClient, method: str, path: str, body: Any) -> None:
    api.post("/prompt-cache/usage", make_report())

    response = api.call(method.upper(), path, body)
    answer = json.loads(response.content, parse_float=Fraction)

    assert response.status_code < 300, response.content
    assert set(fractions(answer)) <= NO_AMOUNTS
    assert all(value is None or (type(value) is str and AMOUNT.fullmatch(value)) for _, value in amounts(answer))
    assert any(amounts(answer)) or path.endswith(("validate", "plan"))


def test_every_file_holds_amounts_as_exact_decimals(api: ApiClient, viewer: Any, workspace: Workspace) -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 7, "output_tokens": 0}
    for number in range(2):
        api.post("/prompt-cache/usage", make_report(f"m{number}", model="claude-haiku-5-5", usage=usage))
    files = {
        "report": api.get("/prompt-cache/report?format=csv"),
        "requests": viewer.get("/requests?from=2026-11-10&to=2026-11-10&format=csv"),
        "planner": viewer.get("/planner?session=s1&format=csv"),
        "prices": viewer.get("/prices?format=csv"),
        "misses": viewer.get("/doctor?from=2026-11-10&to=2026-11-10&format=csv"),
    }

    assert [response.status_code for response in files.values()] == [200] * 5
    for name, response in files.items():
        comment, header, *rows = csv.reader(io.StringIO(response.content.decode()))
        assert comment[0].startswith("#"), name
        columns = [index for index, title in enumerate(header) if title.endswith("_usd")]
        assert columns
        assert rows or name == "misses"
        cells = [row[index] for row in rows if not row[0].startswith("#") for index in columns]
        assert all(AMOUNT.fullmatch(cell) for cell in cells if cell), (name, cells)


def test_an_amount_finer_than_a_float_survives_every_step(api: ApiClient) -> None:
    """0.1 + 0.2 in prices: a float would say 0.30000000000000004."""
    api.put("/prompt-cache/prices", {"model": "m", "input_usd": 0.1, "output_usd": 0.2})
    usage = {"input_tokens": 1, "output_tokens": 1}

    api.post("/prompt-cache/usage", make_report(model="m", usage=usage))

    assert api.get("/prompt-cache/report").json()["totals"]["cost_usd"] == "0.0000003"
