"""Node sets: text to numbers and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set


@given(st.sets(st.integers(0, 200)))
def test_round_trip(nodes):
    text = format_node_set(nodes)
    assert parse_node_set(text, 201).tolist() == sorted(nodes)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_text_is_as_short_as_can_be(nodes):
    runs = sum(1 for n in nodes if n - 1 not in nodes)
    assert format_node_set(nodes).count(",") == runs - 1


def test_order_and_blanks_do_not_matter():
    assert parse_node_set(" 7-8, 3 ,0-1", 9).tolist() == [0, 1, 3, 7, 8]
    assert parse_node_set("  ", 9).tolist() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,,2", "ranges such as"),
        ("-1", "ranges such as"),
        ("1-2-3", "ranges such as"),
        ("9999999999", "ranges such as"),
        ("5-4", "ranges that ascend"),
        ("8-9", "node numbers from 0 to 8"),
        ("3,1-3", "each node once"),
    ],
)
def test_bad_text_is_refused(text, expected):
    with pytest.raises(InputError, match=expected) as caught:
        parse_node_set(text, 9, "down")
    assert str(caught.value).startswith("down: ")
