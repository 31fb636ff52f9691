"""Near duplicates that can't both be right."""

import pytest

from memoryhub.long_term_memory.domain.contradictions import contradicts


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Logs are kept for 30 days; access logs for a year.", "Logs are kept for 90 days; access logs for a year."),
        ("Use the serial comma.", "Do not use the serial comma."),
        ("Deploys may run on Fridays.", "Deploys may never run on Fridays."),
        ("Backups run at 02:30 UTC.", "Backups run at 03:30 UTC."),
        ("日志保留三十天。", "日志保留九十天。"),
        ("手册使用感叹号。", "手册不使用感叹号。"),
    ],
)
def test_a_number_or_a_denial_that_differs_is_a_contradiction(older: str, newer: str) -> None:
    assert contradicts(older, newer)
    assert contradicts(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Backups run at 02:30 UTC on Sundays.", "Backups run at 02:30 UTC on every Sunday."),
        ("Never deploy on the last day of a month.", "Never deploy on a month's last day."),
        (
            "The suite must pass on PostgreSQL 16; CI runs both.",
            "The suite must pass on PostgreSQL 16; CI runs them both.",
        ),
        ("不要在标题里用感叹号。", "标题里不要用感叹号。"),
        ("Prefers tea.", "Prefers tea."),
    ],
)
def test_other_words_for_the_same_are_none(older: str, newer: str) -> None:
    assert not contradicts(older, newer)
