"""Rank files: what is written is read back, and what is wrong is named with its line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baseline_instances import grid, problem_on
from topoplace.errors import InputError
from topoplace.machine import MatrixMachine
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.rankfiles import FORMATS, node_list_beside, read_mapping, write_mapping


def small():
    """Seven tasks on six routers of two nodes, two tasks per node; node 0 may not be used."""
    return problem_on(grid((7,)), (3, 2), tasks_per_node=2, nodes_per_router=2, nodes="1-11")


UNEVEN = np.array([3, 1, 3, 10, 8, 1, 11])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(FORMATS), st.booleans())
def test_what_is_written_is_read_back(data, form, named):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    per_router, per_node = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    num_nodes = int(np.prod(shape)) * per_router
    num_tasks = data.draw(st.integers(1, min(num_nodes * per_node, 24)))
    machine = {"tasks_per_node": per_node, "nodes_per_router": per_router}
    problem = problem_on(grid((num_tasks,), True), shape, **machine)
    places = data.draw(st.permutations(range(num_nodes * per_node)))
    nodes = np.asarray(places[:num_tasks]) // per_node
    node_of_nid = {7 * (num_nodes - node): node for node in range(num_nodes)} if named else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mapping"
        write_mapping(path, form, problem, nodes, node_of_nid)
        back = read_mapping(path, form, problem, node_of_nid)
    # MapLib's lines say on which router a task is, not on which of its nodes
    kept = problem.routers_of if form == "maplib" else np.asarray
    assert kept(back).tolist() == kept(nodes).tolist()
    assert hop_bytes(problem, back) == hop_bytes(problem, nodes)


def test_idle_ranks_come_last_and_fill_every_node(tmp_path):
    problem = small()
    order = tmp_path / "MPICH_RANK_ORDER"
    node_list = node_list_beside(order)
    write_mapping(order, "rank-order", problem, UNEVEN)
    assert node_list.read_text() == "1,3,8,10,11\n"
    assert order.read_text() == "1,5\n0,2\n4,7\n3,8\n6,9\n"
    assert read_mapping(order, "rank-order", problem).tolist() == UNEVEN.tolist()


def test_hosts_and_tables_as_they_look(tmp_path):
    problem = small()
    write_mapping(tmp_path / "hosts", "hostfile", problem, UNEVEN, {100 + n: n for n in range(12)})
    hosts = (tmp_path / "hosts").read_text().splitlines()
    assert hosts[:3] == ["nid00103", "nid00101", "nid00103"]
    write_mapping(tmp_path / "table", "csv", problem, UNEVEN)
    rows = (tmp_path / "table").read_text().splitlines()
    assert rows[:2] + rows[-1:] == ["task,node,c0,c1", "0,3,0,1", "6,11,2,1"]


ORDER = "0,1\n2,3\n4,5\n6,7\n"
TABLE = "task,node\n" + "".join(f"{t},{1 + t // 2}\n" for t in range(7))
PLACED = "task,node,c0,c1\n6,4,1,0\n0,1,0,0\n1,1,0,0\n5,3,0,1\n4,3,0,1\n2,2,0,1\n3,2,0,1\n"
MAPLIB = "title\nx y count tasks\n0 0 1 0\n0 1 2 1 3\n1 0 2 2 4\n2 0 2 5,6\n"
SCOTCH = "7\n" + "".join(f"{t}\t{1 + t // 2}\n" for t in range(7))
HOSTS = "".join(f"nid{1 + t // 2:05d}\n" for t in range(7))


@pytest.mark.parametrize(
    ("form", "text", "nodes"),
    [
        ("rank-order", "# a comment\n0-1, 2\n3 4\n\n5\n6,7", [1, 1, 2, 2, 3, 3, 4]),
        (
            "hostfile",
            "nid00001\nnid1:1\n# two more\nnid00002 slots=2\nnid0003\nnid3\nnid4\n",
            [1, 1, 2, 2, 3, 3, 4],
        ),
        ("scotch", "7\n7 4\n1\t1\n2\t1\n6 3\n5 3\n3 2\n4 2\n", [1, 1, 2, 2, 3, 3, 4]),
        ("csv", "task, node\n6,4\n0,1\n1,1\n5,3\n4,3\n2,2\n3,2\n", [1, 1, 2, 2, 3, 3, 4]),
        ("csv", PLACED, [1, 1, 2, 2, 3, 3, 4]),
        ("maplib", MAPLIB, [1, 2, 4, 3, 5, 8, 9]),  # spread over the nodes of a router
    ],
)
def test_other_ways_to_write_the_same(tmp_path, form, text, nodes):
    path = tmp_path / "given"
    path.write_text(text)
    node_list_beside(path).write_text("1-3\n4\n")
    assert read_mapping(path, form, small()).tolist() == nodes


@pytest.mark.parametrize(
    ("text", "nodes", "message"),
    [
        (ORDER.replace("5", "x"), "1-4", r"given: line 3: expected an integer.*'x'"),
        (ORDER.replace("5", "4"), "1-4", r"given: line 3: expected each task once.*4"),
        (ORDER.replace("5", "9"), "1-4", r"given: line 3: expected one of 8 tasks.*9"),
        (ORDER + "8", "1-4", r"given: expected the same number .* node .*9 ranks"),
        ("0,1,2,3", "1-4", r"given: expected the same number .* at least 7"),
        (ORDER, "", r"given: expected the same number .* node of .*[(]0[)]"),
        (ORDER, "1-3,2", r"given\.nodes: line 1: expected each node once.*2"),
        (ORDER, "1-3\n5-4", r"given\.nodes: line 2: expected an integer from 5.*4"),
        (ORDER, "1-99999999999", r"given\.nodes: line 1: expected at most"),
        (ORDER, "1-3,0", r"given: line 4, rank 6: expected a node that tasks.*0"),
        (ORDER, "1-3,12", r"given: line 4, rank 6: expected a node that tasks.*12"),
        ("0-2,3-5,6-8", "1-3", r"given: line 1, rank 2: expected at most 2 tasks.*node 1"),
    ],
)
def test_bad_rank_orders_are_refused_with_file_line_and_value(tmp_path, text, nodes, message):
    node_list_beside(tmp_path / "given").write_text(nodes)
    test_bad_files_are_refused_with_line_and_value(tmp_path, "rank-order", text, message)


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("hostfile", HOSTS.replace("4", "x"), "line 7: expected a host name.*'nid0000x'"),
        ("hostfile", HOSTS + "nid00005\n", "line 8: expected one of 7 tasks.*7"),
        ("hostfile", "nid00001 slots=0", "line 1: expected an integer from 1.*'0'"),
        ("hostfile", "nid00001 slots=99", "line 1: expected one of 7 tasks"),
        ("hostfile", HOSTS[9:], "given: expected every task.*no task 6"),
        ("hostfile", HOSTS.replace("3", "2"), "line 5: expected at most 2.*4 on node 2"),
        ("csv", TABLE.replace("task", "rank"), "line 1: expected a header.*rank,node"),
        ("csv", "", "given: expected a header"),
        ("csv", TABLE + "7,5\n", "line 9: expected one of 7 tasks.*7"),
        ("csv", TABLE + "6,5\n", "line 9: expected each task once.*6"),
        ("csv", TABLE[:-4], "given: expected every task.*no task 6"),
        ("csv", TABLE.replace("6,4", "6,4,0"), "line 8: expected 2 columns.*3"),
        ("csv", TABLE.replace("6,4", "6,-4"), "line 8: expected an integer from 0.*'-4'"),
        ("csv", TABLE.replace("6,4", "6,0"), "line 8: expected a node that tasks.*0"),
        ("csv", PLACED.replace("5,3,0,1", "5,3,2,1"), r"line 5: .* the coordinates.*\[2, 1\]"),
        ("maplib", MAPLIB.replace("2 1 3", "2 1"), r"line 4: expected 2 coordinates,.*2 1'"),
        ("maplib", MAPLIB.replace("0 1 2", "3 1 2"), r"line 4: .* coordinates inside.*\[3, 1\]"),
        ("maplib", MAPLIB.replace("0 1 2", "0 0 2"), r"line 4: .* each router once.*\[0, 0\]"),
        ("maplib", MAPLIB.replace("2 0 2 5,6", "2 0 1 6"), "expected every task.*no task 5"),
        ("maplib", MAPLIB.replace("1 3", "1 4"), "line 5: expected each task once.*4"),
        ("maplib", MAPLIB.replace("1 3", "1 7"), "line 4: expected one of 7 tasks.*7"),
        ("maplib", "0 0 3 0 1 2\n", "line 1: expected at most 2 tasks, the places.*3"),
        ("maplib", "title\ncolumns\nmore\n", "line 3: expected an integer.*'more'"),
        ("scotch", SCOTCH.replace("\n6", "\n5"), "line 8: expected each task once.*5"),
        ("scotch", SCOTCH.replace("\n6", "\n9"), "line 8: expected one of 7 tasks.*9"),
        ("scotch", SCOTCH.replace("\t4", "\t-1"), "line 8: expected an integer from 0.*'-1'"),
        ("scotch", SCOTCH.replace("\t4", "\t12"), "line 8: expected a node that tasks.*12"),
        ("scotch", SCOTCH.replace("\t4", ""), "line 8: expected a task and a node.*'6'"),
        ("scotch", SCOTCH.replace("7\n0", "6\n0"), "7 lines, one for each.*6, and 7"),
        ("scotch", "1 2\n", "line 1: expected the number of lines.*'1 2'"),
        ("scotch", "", "given: expected the number of lines"),
        ("metis", "", "format: .*rank-order, hostfile, csv, maplib, scotch.*'metis'"),
    ],
)
def test_bad_files_are_refused_with_line_and_value(tmp_path, form, text, message):
    path = tmp_path / "given"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_mapping(path, form, small())
    assert "\n" not in str(caught.value)


def test_maplib_needs_coordinates(tmp_path):
    machine = MatrixMachine(np.array([[0, 1], [1, 0]]))
    problem = replace(problem_on(grid((2,)), (2,)), machine=machine)
    with pytest.raises(InputError, match="a torus or mesh"):
        write_mapping(tmp_path / "given", "maplib", problem, np.array([1, 0]))
    assert not (tmp_path / "given").exists()


def test_missing_files_and_nids_are_bad_input(tmp_path):
    problem = small()
    with pytest.raises(InputError, match="nowhere"):
        read_mapping(tmp_path / "nowhere", "csv", problem)
    with pytest.raises(InputError, match="every node of the mapping"):
        write_mapping(tmp_path / "hosts", "hostfile", problem, UNEVEN, {5: 1})
    with pytest.raises(InputError, match="one nid for each node"):
        write_mapping(tmp_path / "hosts", "hostfile", problem, UNEVEN, {5: 1, 6: 1})
    write_mapping(tmp_path / "hosts", "hostfile", problem, UNEVEN)
    with pytest.raises(InputError, match=r"line 2: expected a nid of the machine.*, found .*1"):
        read_mapping(tmp_path / "hosts", "hostfile", problem, {3: 3})


def test_no_mapping_is_ever_written_that_is_none(tmp_path):
    problem = small()
    for wrong in (UNEVEN[:-1], np.zeros(7, dtype=np.int64), np.ones(7, dtype=np.int64)):
        for form in FORMATS:
            with pytest.raises(InputError):
                write_mapping(tmp_path / "none", form, problem, wrong)
    assert not (tmp_path / "none").exists()
