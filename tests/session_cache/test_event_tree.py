"""The rules of the tree: order of a batch, what a node sees, what a rewind leaves."""

import pytest

from memoryhub.session_cache.domain import event_tree
from memoryhub.session_cache.domain.event_tree import BrokenBatch, Link, order_batch


def ids(links):
    return [(link.event_id, link.parent_id) for link in links]


@pytest.mark.parametrize(
    ("links", "known", "expected"),
    [
        pytest.param([Link("a", None), Link("b", None)], [], [("a", None), ("b", "a")], id="a list is a chain"),
        pytest.param([Link("b", "a"), Link("a", "x")], ["x"], [("a", "x"), ("b", "a")], id="a child before its parent"),
        pytest.param([Link("a", "x"), Link("b", "x")], ["x"], [("a", "x"), ("b", "x")], id="two children of one"),
        pytest.param(
            [Link("a", None), Link("n", None, is_note=True), Link("b", None)],
            [],
            [("a", None), ("n", "a"), ("b", "a")],
            id="a note is nobody's parent",
        ),
    ],
)
def test_parents_come_first(links, known, expected):
    assert ids(order_batch(links, known)) == expected


@pytest.mark.parametrize(
    ("links", "known", "sentence"),
    [
        ([Link("a", "nowhere")], [], "is not in this session"),
        ([Link("a", "b"), Link("b", "a")], [], "form a circle"),
        ([Link("a", "a")], [], "form a circle"),
        ([Link("a", "c"), Link("b", "a"), Link("c", "b")], [], "form a circle"),
        ([Link("n", None, is_note=True), Link("a", "n")], [], "is a note"),
        ([Link("a", None), Link("a", None)], [], "stands twice"),
    ],
)
def test_what_can_not_be_ordered_is_refused(links, known, sentence):
    with pytest.raises(BrokenBatch, match=sentence):
        order_batch(links, known)


def test_a_long_chain_backwards_needs_no_recursion():
    links = [Link(str(i), str(i - 1)) for i in range(5000, 0, -1)]

    ordered = order_batch(links, ["0"])

    assert [link.event_id for link in ordered] == [str(i) for i in range(1, 5001)]


def test_a_node_sees_its_own_stretches_only():
    path = ((1, 4), (2, 2))

    assert event_tree.sees(path, 1, 4)
    assert not event_tree.sees(path, 1, 5)
    assert event_tree.sees(path, 2, 1)
    assert not event_tree.sees(path, 3, 1)


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        pytest.param(((1, 6),), ((1, 2),), [(1, 3, 6)], id="back in one branch"),
        pytest.param(((1, 4), (2, 3)), ((1, 2),), [(1, 3, 4), (2, 1, 3)], id="back below a fork"),
        pytest.param(((1, 4), (2, 3)), ((1, 6),), [(2, 1, 3)], id="over to the other branch"),
        pytest.param(((1, 4),), ((1, 4), (2, 3)), [], id="forward leaves nothing"),
        pytest.param(((1, 4),), ((7, 2),), [(1, 1, 4)], id="to another root"),
        pytest.param(((1, 4), (2, 5), (3, 1)), ((1, 4), (2, 2), (4, 9)), [(2, 3, 5), (3, 1, 1)], id="cousins"),
    ],
)
def test_a_rewind_leaves_exactly_what_the_new_node_does_not_see(old, new, gone):
    assert event_tree.abandoned(old, new) == gone


def test_the_hash_of_a_sequence_knows_every_part_and_its_borders():
    def link(parent=event_tree.EMPTY_PREFIX, kind="message", role="user", call="", sha=b"x" * 32):
        return event_tree.chain_hash(parent, kind=kind, role=role, tool_call_id=call, content_sha256=sha)

    variants = {
        link(),
        link(parent=link()),
        link(kind="tool_use"),
        link(role="assistant"),
        link(call="c"),
        link(sha=b"y" * 32),
        link(role="userc"),
        link(role="us", call="er"),
    }

    assert len(variants) == 8
    assert link() == link()
