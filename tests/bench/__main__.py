"""`python -m tests.bench [name ...]`: run the benchmarks (all, or those named) and print one JSON line per figure.

Each runs in a process of its own. A line says whether its goal was met and how fast the machine was; the exit code is 0
unless a benchmark crashed, for a goal that was missed on a busy machine is a finding, not a failure. See README.md beside.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_GOAL = re.compile(r"^(<=|>=|<|>|=)\s*(-?[\d.]+)")


def find_benchmarks() -> list[str]:
    """Return the modules of this folder that can be run: those with a `main` of their own."""
    return [file.stem for file in sorted(FOLDER.glob("*.py")) if not file.stem.startswith("_") and _has_main(file)]


def _has_main(file: Path) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def is_met(value: float, goal: str) -> bool | None:
    """Tell whether a figure reaches its goal, None where there is none to reach."""
    match = _GOAL.match(goal)
    if match is None:
        return None
    bound = float(match[2])
    return {
        "<=": value <= bound,
        ">=": value >= bound,
        "<": value < bound,
        ">": value > bound,
        "=": value == bound,
    }[match[1]]


def run(name: str, calibration: dict[str, float]) -> int:
    """Run one benchmark, pass its figures on as they come, and return its exit code."""
    command = [sys.executable, "-m", f"tests.bench.{name}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        for figure in read_figures(process.stdout):
            print(json.dumps(judged(figure, name, calibration), ensure_ascii=False), flush=True)
    return process.returncode


def read_figures(lines: Any) -> Iterator[dict[str, Any]]:
    """Yield the figures among the lines that a benchmark prints; anything else goes to the error output."""
    for line in lines:
        try:
            figure = json.loads(line)
        except ValueError:
            figure = None
        if isinstance(figure, dict) and "figure" in figure:
            yield figure
        elif line.strip():
            sys.stderr.write(line)


def judged(figure: dict[str, Any], name: str, calibration: dict[str, float]) -> dict[str, Any]:
    """Return the figure with whether its goal was met, which benchmark it is of, and the machine's figures."""
    met = None if figure.get("skipped") else is_met(float(figure["value"]), str(figure.get("goal") or ""))
    return {**figure, "met": met, "benchmark": name, "calibration": calibration}


def main(names: list[str]) -> int:
    known = find_benchmarks()
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"There is no benchmark {unknown[0]}; there are: {', '.join(known)}")
    from tests.bench.calibration import calibrate

    crashed = [name for name in names or known if run(name, calibrate())]
    for name in crashed:
        print(f"{name} crashed", file=sys.stderr)
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
