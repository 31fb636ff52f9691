"""What agents import from the package, in whatever order."""

import memoryhub.client


def test_asking_for_the_memory_tool_hides_no_other_name() -> None:
    assert memoryhub.client.MemoryTool

    for name in memoryhub.client.__all__:
        assert callable(getattr(memoryhub.client, name)), name
