"""A job's result is told in words: its figures by name, what was left out with the reason."""

import pytest
from django.utils import translation

from memoryhub.flows.erase import Erasure
from memoryhub.flows.import_memories import ImportResult as ImportedMemories
from memoryhub.flows.import_transcripts import ImportResult as ImportedTranscripts
from memoryhub.web.job_results import SHOWN_LEFT_OUT, LeftOut, describe


def test_figures_of_an_import_stand_by_their_names_and_bad_lines_with_their_reasons():
    result = ImportedTranscripts(files=2, lines=12_345, created=7)
    result.note_error("a/b.jsonl", 3, "not JSON")

    outcome = describe(result.as_json())

    assert ("Lines", "12,345") in outcome.figures
    assert ("Usage records: Created", "7") in outcome.figures
    assert ("Lines that could not be read", "1") in outcome.figures
    assert outcome.left_out == [LeftOut("a/b.jsonl, line 3", "not JSON")]


def test_memories_that_a_bulk_change_left_out_are_named():
    outcome = describe({"matched": 3, "changed": 2, "skipped": 1, "change_set": "chg_1", "skipped mem_9": "is pinned"})

    assert outcome.figures == [("Matched", "3"), ("Changed", "2"), ("Left out", "1")]
    assert outcome.left_out == [LeftOut("mem_9", "is pinned")]


def test_a_trial_says_so_and_a_real_run_does_not():
    assert ("Trial only", "yes") in describe({"dry_run": True}).figures
    assert describe({"dry_run": False}).figures == []


def test_very_many_left_out_are_cut_and_counted():
    result = ImportedMemories(format="jsonl", dry_run=False)
    for line in range(1, 2_001):
        result.skip(line, "empty", "notes.jsonl")

    outcome = describe(result.as_dict())

    assert ("Left out", "2,000") in outcome.figures
    assert len(outcome.left_out) == SHOWN_LEFT_OUT
    assert outcome.left_out[0] == LeftOut("notes.jsonl, line 1", "empty")


def test_what_nobody_named_is_shown_all_the_same():
    assert describe({"some_figure": 1_000, "other": None}).figures == [("some figure", "1,000"), ("other", "—")]


@pytest.mark.parametrize(
    "result",
    [
        Erasure().as_dict(),
        ImportedTranscripts().as_json(),
        ImportedMemories(format="jsonl", dry_run=True).as_dict(),
    ],
)
def test_chinese_pages_tell_each_figure_in_chinese(result):
    with translation.override("zh-hans"):
        names = [name for name, _ in describe(result).figures]

    assert names
    assert not [name for name in names if name.isascii()]
