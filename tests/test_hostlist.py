"""Host lists and sets of node numbers: what they stand for, what is refused, and the way back."""

from __future__ import annotations

import itertools
import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakes import MISTAKES, lines_said
from topoplace.certify.cubes import instance as cubes
from topoplace.certify.hierarchy import instance as hierarchy
from topoplace.certify.report import RefusedError
from topoplace.certify.torus import instance as torus
from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.hostlist import MAX_HOSTS, expand_host_list, format_host_list
from topoplace.result import Interference
from topoplace.snapshot.machines import load_machine, prepare_any
from topoplace.snapshot.schema import CubesModel, HierarchyModel, Snapshot, TorusModel, TreeModel

TEXT = st.text("abz_.-", max_size=3)
DIGITS = st.text("0123456789", max_size=4)
NAMES = st.lists(st.tuples(TEXT, DIGITS, TEXT, DIGITS, TEXT).map("".join).filter(bool), max_size=30)
RANGES = st.tuples(TEXT, st.integers(0, 200), st.integers(0, 30), st.integers(0, 4), TEXT)

SHORTEST = {
    "": "",
    "login": "login",
    "n[1-3,5]": "n1 n2 n3 n5",
    "n[09-11]": "n09 n10 n11",
    "n[9-10]": "n9 n10",
    "n[3,2,1]": "n3 n2 n1",
    "n[1-2]-ib": "n1-ib n2-ib",
    "r[1-2]n1": "r1n1 r2n1",
    "r1n[1-2],r2n[1-2]": "r1n1 r1n2 r2n1 r2n2",
    "a1,b2": "a1 b2",
    "n[8-10,3]": "n8 n9 n10 n3",
    "n[1,01]": "n1 n01",
    "n123456789012345678901234567890": "n123456789012345678901234567890",
    "tnode[0779-0780,0871-0872]": "tnode0779 tnode0780 tnode0871 tnode0872",
}
OTHERS = {
    "  ": "",
    "n1,n3, n2": "n1 n3 n2",
    "r[1-2]n[01-02]-ib": "r1n01-ib r1n02-ib r2n01-ib r2n02-ib",
    "n1,n1": "n1 n1",
}


@pytest.mark.parametrize("text", [*SHORTEST, *OTHERS])
def test_what_a_list_stands_for_and_its_shortest_form(text):
    expected = (SHORTEST | OTHERS)[text].split()
    assert expand_host_list(text) == expected
    assert text in OTHERS or format_host_list(expected) == text


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Host lists"])
def test_malformed_and_long_lists_are_refused(text, lines):
    assert lines_said(expand_host_list, text, "down") == lines


def test_what_is_too_long_in_all_and_names_that_no_list_can_hold():
    with pytest.raises(InputError, match=f"at most {MAX_HOSTS} names"):
        expand_host_list(",".join(["n[1-300000]"] * 9))
    for name in ("", "n 1", "n,1", "n[1]"):
        with pytest.raises(InputError):
            format_host_list(["n1", name])


@given(NAMES)
def test_formatting_loses_nothing(expanded):
    assert expand_host_list(format_host_list(expanded)) == expanded


@given(st.lists(RANGES, max_size=5))
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
def test_sets_of_numbers_survive_in_the_shortest_text(nodes):
    text = format_node_set(nodes)
    assert parse_node_set(text, 201).tolist() == sorted(nodes)
    assert len(text.split(",")) == max(1, sum(n - 1 not in nodes for n in nodes))


def test_order_and_blanks_do_not_matter():
    assert parse_node_set(" 7-8, 3 ,0-1", 9).tolist() == [0, 1, 3, 7, 8]
    assert parse_node_set("  ", 9).tolist() == []


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Node sets"])
def test_bad_sets_are_refused(text, lines):
    assert lines_said(parse_node_set, text, 9, "down") == lines


# ---- Many lists of one document ------------------------------------------------------------------

WIDE = "n[1-60]"
SNAPSHOT = {"schema": "topoplace.snapshot/1", "name": "s", "queue": []}


def twice_on(machine: object, nodes: str) -> dict[str, object]:
    running = [{"id": f"r{k}", "nodes": nodes} for k in range(2)]
    return {**SNAPSHOT, "machine": machine, "running": running}


def tree_of_lists(*lists: str) -> dict[str, object]:
    switches = [{"name": f"s{k}", "nodes": nodes} for k, nodes in enumerate(lists)]
    return {"kind": "tree", "name": "t", "switches": switches}


HIERARCHY = {"kind": "hierarchy", "name": "h", "levels": ["host"], "hosts": [{"hosts": WIDE}]}
TORUS = {"name": "t", "shape": [60]}
TOO_LONG = {
    "switches": twice_on(tree_of_lists(WIDE, "m[1-60]"), "n1"),
    "jobs on a tree": twice_on(tree_of_lists(WIDE), WIDE),
    "hosts": twice_on(HIERARCHY | {"hosts": [{"hosts": WIDE}, {"hosts": "m[1-60]"}]}, "n1"),
    "jobs on a hierarchy": twice_on(HIERARCHY, WIDE),
    "classes": twice_on(TORUS | {"classes": {"a": "0-59", "b": "0-59"}}, "0"),
    "jobs on a torus": twice_on(TORUS, "0-59"),
    "jobs on a pod": twice_on({"kind": "cubes", "name": "c", "cubes": 1}, "0-59"),
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_the_lists_of_a_document_are_limited_in_all_before_they_are_expanded(case, monkeypatch):
    snapshot = Snapshot.model_validate(TOO_LONG[case])
    monkeypatch.setattr("topoplace.machine.hostlist.MAX_HOSTS", 100)
    with pytest.raises(InputError, match="at most 100 n"):
        prepare_any(snapshot)
    with pytest.raises((InputError, RefusedError), match="at most 100 n"):
        READ_BY_CHECKER[type(snapshot.machine)](snapshot)


READ_BY_CHECKER = {
    TreeModel: hierarchy.read_instance,
    HierarchyModel: hierarchy.read_instance,
    TorusModel: partial(torus.read_instance, interference=Interference.STRICT),
    CubesModel: cubes.read_instance,
}


def test_a_topology_of_some_kilobytes_expands_no_more_than_one_limit(tmp_path, monkeypatch):
    """Each of its lines may name two million nodes; expanded one by one they took a minute."""
    made, whole = [], itertools.product

    def product(*choices):
        made.append(math.prod(map(len, choices)))
        return whole(*choices)

    monkeypatch.setattr("topoplace.machine.hostlist.MAX_HOSTS", 1000)
    monkeypatch.setattr(itertools, "product", product)
    for line in ("SwitchName=s{} Nodes=m{}n[1-900]", "BlockName=b{} Nodes=m{}n[1-900]"):
        made.clear()
        path = tmp_path / "topology.conf"
        path.write_text("\n".join(line.format(k, k) for k in range(100)))
        with pytest.raises(InputError, match="at most 1000 names"):
            load_machine(str(path))
        assert sum(made) < 1200
