"""The demo's story can be told at any hour of a day."""

import pytest

from memoryhub.flows.demo.background import _planned
from memoryhub.flows.demo.stage import Stage
from tests.factories import NOON


@pytest.mark.parametrize("hour", [0, 3, 6, 12, 23])
def test_every_conversation_has_a_session_of_its_own(workspace, hour):
    stage = Stage(workspace, NOON.replace(hour=hour, minute=5), {})

    sids = [chain.sid for chain, _, _ in _planned(stage)]

    assert len(sids) == len(set(sids)) > 60
    assert all(chain.begins_at < stage.now for chain, _, _ in _planned(stage))
