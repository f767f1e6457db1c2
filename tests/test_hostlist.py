"""Host lists and sets of node numbers: what they stand for, what is refused, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.hostlist import MAX_HOSTS, expand_host_list, format_host_list

TEXT = st.text("abz_.-", max_size=3)
DIGITS = st.text("0123456789", max_size=4)
NAMES = st.lists(st.tuples(TEXT, DIGITS, TEXT, DIGITS, TEXT).map("".join).filter(bool), max_size=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("n1", ["n1"]),
        ("n1,n3, n2", ["n1", "n3", "n2"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[8-10,3]", ["n8", "n9", "n10", "n3"]),
        ("n[99-101]", ["n99", "n100", "n101"]),
        ("r[1-2]n[01-02]-ib", ["r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"]),
        ("a.b_c-d", ["a.b_c-d"]),
        ("n[1,01]", ["n1", "n01"]),
        ("n1,n1", ["n1", "n1"]),
        ("n123456789012345678901234567890", ["n123456789012345678901234567890"]),
    ],
)
def test_expansion(text, expected):
    assert expand_host_list(text) == expected


def test_the_list_of_a_real_leaf():
    expected = [f"tnode{n:04}" for n in (*range(773, 781), *range(871, 881))]
    assert expand_host_list("tnode[0773-0780,0871-0880]") == expected
    assert format_host_list(expected) == "tnode[0773-0780,0871-0880]"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("n[1-3", "n[1-3"),
        ("m1,n1-3]", "n1-3]"),
        ("n[]", "[]"),
        ("n[1-]", "1-"),
        ("n[a-c]", "a-c"),
        ("n[3-1]", "3-1"),
        ("n[1-02]", "1-02"),
        ("n[[1-2]]", "n[[1-2]]"),
        ("m,,n", ",n"),
        ("m,", ""),
        ("m n", "m n"),
        ("m$", "m$"),
        ("n[1-2,,4]", "[]"),
        ("n[1-9999999999999999999]", "1-9999999999999999999"),
    ],
)
def test_malformed_lists_are_refused_with_the_part(text, part):
    with pytest.raises(InputError) as caught:
        expand_host_list(text, "down")
    assert (caught.value.field, caught.value.value) == ("down", part)


@pytest.mark.parametrize(
    "text",
    [
        "n[0-999999999999999999]",
        "n[1-2000]m[1-2000]",
        f"n[1-{MAX_HOSTS}],m",
        ",".join(["n[1-300000]"] * 9),
    ],
)
def test_long_lists_are_refused(text):
    with pytest.raises(InputError, match=f"at most {MAX_HOSTS} names"):
        expand_host_list(text)


@pytest.mark.parametrize(
    ("expanded", "expected"),
    [
        ([], ""),
        (["login"], "login"),
        (["n1", "n2", "n3", "n5"], "n[1-3,5]"),
        (["n09", "n10", "n11"], "n[09-11]"),
        (["n9", "n10"], "n[9-10]"),
        (["n3", "n2", "n1"], "n[3,2,1]"),
        (["n1-ib", "n2-ib"], "n[1-2]-ib"),
        (["r1n1", "r2n1"], "r[1-2]n1"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r1n[1-2],r2n[1-2]"),
        (["a1", "b2"], "a1,b2"),
    ],
)
def test_compact_form(expanded, expected):
    assert format_host_list(expanded) == expected
    assert expand_host_list(expected) == expanded


@pytest.mark.parametrize("name", ["", "n 1", "n,1", "n[1]"])
def test_names_that_no_list_can_hold(name):
    with pytest.raises(InputError):
        format_host_list(["n1", name])


@given(NAMES)
def test_formatting_loses_nothing(expanded):
    assert expand_host_list(format_host_list(expanded)) == expanded


@given(
    st.lists(
        st.tuples(TEXT, st.integers(0, 200), st.integers(0, 30), st.integers(0, 4), TEXT),
        max_size=5,
    )
)
def test_formatting_what_was_expanded_is_stable(parts):
    text = ",".join(
        f"{before}[{low:0{digits}}-{low + more:0{digits}}]{after}"
        for before, low, more, digits, after in parts
    )
    once = format_host_list(expand_host_list(text))
    assert expand_host_list(once) == expand_host_list(text)
    assert format_host_list(expand_host_list(once)) == once


# ---- Sets of node numbers ------------------------------------------------------------------------


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
