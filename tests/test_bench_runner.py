"""The runner of the benchmarks: what it finds, and what it says of a figure."""

import json

import pytest

from tests.bench import __main__ as runner


def test_every_benchmark_of_the_folder_is_found_and_helpers_are_not() -> None:
    found = runner.find_benchmarks()

    assert "ledger" in found
    assert not {"throwaway", "calibration", "bare_endpoint", "transcripts", "__main__"} & set(found)


@pytest.mark.parametrize(
    ("value", "goal", "met"),
    [
        (1.0, "<= 1.0", True),
        (1.01, "<= 1.0", False),
        (60, ">= 60", True),
        (59, ">= 60 MB/s", False),
        (300, "< 300", False),
        (0, "= 0", True),
        (7, "", None),
    ],
)
def test_a_goal_is_met_or_not_or_not_there(value: float, goal: str, met: bool | None) -> None:
    assert runner.is_met(value, goal) is met


def test_a_skipped_figure_meets_nothing() -> None:
    figure = {"figure": "x", "value": -1, "unit": "ratio", "goal": "<= 1", "skipped": "no npm"}

    assert runner.judged(figure, "b", {})["met"] is None


def test_other_lines_are_kept_out_of_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["hello\n", json.dumps({"figure": "x", "value": 1}) + "\n", "[1]\n"]

    assert [figure["figure"] for figure in runner.read_figures(lines)] == ["x"]
    assert capsys.readouterr().err == "hello\n[1]\n"
