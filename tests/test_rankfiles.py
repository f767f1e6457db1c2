"""Rank files: what is written is read back, and what is wrong is named with its line."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from baseline_instances import grid, problem_on
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.machine import MatrixMachine
from topoplace.machine.hostlist import expand_host_list
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.rankfiles import FORMATS, node_list_beside, read_mapping, write_mapping


def small():
    """Seven tasks on six routers of two nodes, two tasks per node; node 0 may not be used."""
    return problem_on(grid((7,)), (3, 2), tasks_per_node=2, nodes_per_router=2, nodes="1-11")


UNEVEN = np.array([3, 1, 3, 10, 8, 1, 11])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(FORMATS), st.sampled_from([None, "nid{:05d}", "gpu{}"]))
def test_what_is_written_is_read_back(data, form, named):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    per_router, per_node = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    num_nodes = int(np.prod(shape)) * per_router
    num_tasks = data.draw(st.integers(1, min(num_nodes * per_node, 24)))
    machine = {"tasks_per_node": per_node, "nodes_per_router": per_router}
    names = named and ",".join(named.format(7 * (num_nodes - n)) for n in range(num_nodes))
    machine["names"] = names
    problem = problem_on(grid((num_tasks,), True), shape, **machine)
    places = data.draw(st.permutations(range(num_nodes * per_node)))
    nodes = np.asarray(places[:num_tasks]) // per_node
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mapping"
        write_mapping(path, form, problem, nodes)
        back = read_mapping(path, form, problem)
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
    write_mapping(tmp_path / "hosts", "hostfile", problem, UNEVEN)
    hosts = (tmp_path / "hosts").read_text().splitlines()
    assert hosts[:3] == ["nid00003", "nid00001", "nid00003"]
    write_mapping(tmp_path / "table", "csv", problem, UNEVEN)
    rows = (tmp_path / "table").read_text().splitlines()
    assert rows[:2] + rows[-1:] == ["task,node,c0,c1", "0,3,0,1", "6,11,2,1"]


ORDER = "0,1\n2,3\n4,5\n6,7\n"
TABLE = "task,node\n" + "".join(f"{t},{1 + t // 2}\n" for t in range(7))
PLACED = "task,node,c0,c1\n6,4,1,0\n0,1,0,0\n1,1,0,0\n5,3,0,1\n4,3,0,1\n2,2,0,1\n3,2,0,1\n"
MAPLIB = "title\nx y count tasks\n0 0 1 0\n0 1 2 1 3\n1 0 2 2 4\n2 0 2 5,6\n"
SCOTCH = "7\n" + "".join(f"{t}\t{1 + t // 2}\n" for t in range(7))
RANKS = (
    '{"schema": "topoplace.ranks/1", "hosts": ["nid00001", "nid00002", "nid00003", "nid00004"], '
    '"per_host": 2, "axes": ["x"], "mesh": [0, 1, 2, 3, 4, 5, 6], "groups": {}, "coords": null}'
)
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
        ("rankfile", "rank 0 nid00001\n", "line 1: expected a line such as rank 3=node07 slot=1"),
        ("rankfile", "rank 7=nid00001 slot=0\n", "line 1: expected one of 7 tasks.*7"),
        ("rankfile", "rank 0=n1 slot=0\n", "line 1: expected a host name such as.*'n1'"),
        ("ranks", "{}", "schema: expected .topoplace.ranks/1"),
        ("ranks", RANKS.replace("[0, 1", "[0, 8"), "expected hosts, per_host and a mesh of their"),
        ("ranks", RANKS.replace("[0, 1", "[[0], 1"), "expected hosts, per_host and a mesh of"),
        ("ranks", RANKS.replace("nid00004", "n4"), "mesh, task 6: expected a host name.*'n4'"),
        ("metis", "", "format: .*hostfile, rankfile, ranks, csv, maplib, scotch.*'metis'"),
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
    names = ",".join(f"nid{9 * node:05d}" for node in range(6))
    named = problem_on(grid((2,)), (6,), names=names)
    (tmp_path / "hosts").write_text("nid00009\nnid00010\n")
    with pytest.raises(InputError, match=r"line 2: expected a host of the machine, found .*10"):
        read_mapping(tmp_path / "hosts", "hostfile", named)
    (tmp_path / "hosts").write_text("0,1\n")
    node_list_beside(tmp_path / "hosts").write_text("9\n")
    with pytest.raises(InputError, match="at most 1"):
        read_mapping(tmp_path / "hosts", "rank-order", named)
    node_list_beside(tmp_path / "hosts").write_text("9-10\n")
    with pytest.raises(InputError, match=r"line 1: expected a nid of the machine, found .*10"):
        read_mapping(tmp_path / "hosts", "rank-order", named)


def test_no_mapping_is_ever_written_that_is_none(tmp_path):
    problem = small()
    for wrong in (UNEVEN[:-1], np.zeros(7, dtype=np.int64), np.ones(7, dtype=np.int64)):
        for form in FORMATS:
            with pytest.raises(InputError):
                write_mapping(tmp_path / "none", form, problem, wrong)
    assert not (tmp_path / "none").exists()


# ---- Files of launchers --------------------------------------------------------------------------


def test_ranks_of_a_launcher(tmp_path):
    """Hosts come in the order of tasks, so that a mapping in order keeps every rank."""
    path = tmp_path / "ranks"
    write_mapping(path, "ranks", small(), UNEVEN)
    found = json.loads(path.read_text())
    assert found["hosts"] == ["nid00003", "nid00001", "nid00010", "nid00008", "nid00011"]
    assert (found["per_host"], found["axes"], found["coords"]) == (2, ["x"], None)
    assert found["mesh"] == [0, 2, 1, 4, 6, 3, 8]
    assert found["groups"] == {"x": [found["mesh"]]}
    write_mapping(tmp_path / "rankfile", "rankfile", small(), UNEVEN)
    text = (tmp_path / "rankfile").read_text()
    first = "rank 0=nid00003 slot=0\nrank 1=nid00001 slot=0\nrank 2=nid00003 slot=1\n"
    assert text.startswith(first)


def test_hosts_that_are_blocks_of_chips(tmp_path):
    """A TPU host has the chips of a block; ranks go host by host, as JAX numbers its devices."""
    problem = problem_on(grid((2, 4)), (4, 4))
    nodes = np.array([0, 1, 2, 3, 4, 5, 6, 15])
    write_mapping(tmp_path / "ranks", "ranks", problem, nodes, chips=(2, 2))
    found = json.loads((tmp_path / "ranks").read_text())
    assert (found["hosts"], found["per_host"]) == (["0,0", "0,2", "2,2"], 4)
    assert found["mesh"] == [[0, 1, 4, 5], [2, 3, 6, 11]]
    assert found["groups"]["x"] == [[0, 2], [1, 3], [4, 6], [5, 11]]
    assert found["coords"][:3] + found["coords"][7:] == [
        [0, 0], [0, 1], [1, 0], None, None, None, None, [3, 3],
    ]  # fmt: skip
    assert read_mapping(tmp_path / "ranks", "ranks", problem).tolist() == nodes.tolist()
    for wrong in ((3, 2), (2,)):
        with pytest.raises(InputError, match="--tpu-host: expected extents that divide those"):
            write_mapping(tmp_path / "none", "ranks", problem, nodes, chips=wrong)
    two = problem_on(grid((2, 4)), (4, 4), tasks_per_node=2)
    with pytest.raises(InputError, match="--tpu-host: expected one task on each chip, found 2"):
        write_mapping(tmp_path / "none", "ranks", two, nodes, chips=(2, 2))


SNAPSHOT = {
    "schema": "topoplace.snapshot/1",
    "name": "pod",
    "machine": "hierarchy:2x2x2:4",
    "queue": [{"id": "even", "nodes": 8}, {"id": "uneven", "nodes": 6}],
}


def test_every_file_names_the_hosts(tmp_path, monkeypatch):
    """On trees and hierarchies no file has a bare position in the place of a name."""
    monkeypatch.chdir(tmp_path)
    asked = "map --grid 2x4 --tasks-per-node 2 --on tree:3x2 --subset n[4-5],n[0-1]"
    forms = {"csv": "csv", "hostfile": "hostfile", "rankfile": "rankfile", "ranks": "ranks"}
    written = [word for option, name in forms.items() for word in (f"--{option}", name)]
    assert run([*asked.split(), *written, "--rank-order", "order", "-o", "result.json"]) == 0
    assert (tmp_path / "order.nodes").read_text() == "n0,n1,n4,n5\n"
    assert (tmp_path / "csv").read_text().startswith("task,host\n0,n")
    for name in ("hostfile", "rankfile", "ranks"):
        assert "n4" in (tmp_path / name).read_text()
    assert set(tp.load("result.json").to_frame()["host"]) == {"n0", "n1", "n4", "n5"}
    for form in ("csv", "hostfile", "rankfile", "ranks", "rank-order"):
        path = "order" if form == "rank-order" else form
        given = ["--mapping", path, "--format", form, "-o", "again.json"]
        assert run([*asked.split(), *given]) == 0
        assert tp.load("again.json").solution.nodes == tp.load("result.json").solution.nodes


TORUS = """\
- topology: t
  torus3d:
    toruses:
      - name: p
        dims: {x: 2, y: 4, z: 4}
        nodes: "gpu[100-131]"
"""


def test_hosts_of_a_torus_have_the_names_of_the_source(tmp_path, monkeypatch, capsys):
    """Slurm names cells with x fastest; files and --subset have these names, and --names others."""
    monkeypatch.chdir(tmp_path)
    Path("topology.yaml").write_text(TORUS)
    asked = [
        "map",
        "--grid",
        "4",
        "--on",
        "topology.yaml",
        "--subset",
        "gpu[100-103]",
        "--method",
        "default",
    ]
    forms = ["csv", "hostfile", "rankfile", "ranks"]
    written = [word for form in forms for word in (f"--{form}", form)]
    assert run([*asked, *written, "--rank-order", "order", "-o", "result.json"]) == 0
    assert "names" not in capsys.readouterr().err
    assert Path("hostfile").read_text() == "gpu100\ngpu102\ngpu101\ngpu103\n"
    assert Path("csv").read_text().splitlines()[:2] == [
        "task,node,c0,c1,c2,host",
        "0,0,0,0,0,gpu100",
    ]
    assert Path("rankfile").read_text().startswith("rank 0=gpu100 slot=0\nrank 1=gpu102 ")
    assert json.loads(Path("ranks").read_text())["hosts"][1] == "gpu102"
    assert Path("order.nodes").read_text() == "gpu100,gpu102,gpu101,gpu103\n"
    assert list(tp.load("result.json").to_frame()["host"]) == [
        "gpu100",
        "gpu102",
        "gpu101",
        "gpu103",
    ]
    assert tp.check("result.json").verified
    for form in (*forms, "rank-order"):
        given = ["--mapping", "order" if form == "rank-order" else form, "--format", form]
        assert run([*asked[:-2], *given, "-o", "again.json"]) == 0
        assert tp.load("again.json").solution.nodes == tp.load("result.json").solution.nodes
    Path("other").write_text(Path("csv").read_text().replace("gpu100", "gpu101", 1))
    assert run([*asked[:-2], "--mapping", "other"]) == 2
    assert "line 2: expected the host of the node, found 'gpu101'" in capsys.readouterr().err


def test_a_line_says_that_names_are_not_known(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = [
        "map",
        "--grid",
        "2",
        "--on",
        "torus:2x2",
        "--method",
        "default",
        "--hostfile",
        "hosts",
    ]
    assert run(asked) == 0
    said = "node names are not known: nid00000 stands for node 0 (--names FILE)\n"
    assert capsys.readouterr().err == said
    Path("names").write_text("# by number\na[1-2] b1\nc7\n")
    assert run([*asked, "--names", "names", "--subset", "b1,c7"]) == 0
    assert capsys.readouterr().err == ""
    assert Path("hosts").read_text() == "b1\nc7\n"
    machine = tp.torus(2, 2, names=["a1", "a2", "b1", "c7"])
    assert tp.map(tp.grid(2), machine, "default", subset=["b1", "c7"]).solution.nodes == [2, 3]
    assert tp.map(tp.grid(2), machine, "default", subset=[2, 3]).solution.nodes == [2, 3]
    Path("names").write_text("a[1-2] b1\n")
    assert run([*asked, "--names", "names"]) == 2
    assert "names: expected a name for each of 4 nodes, found 3 names" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"names: expected each node once, found 'a'"):
        tp.map(tp.grid(2), tp.torus(2, names=["a", "a"]))
    for subset in ("b1", "names"):
        assert run([*asked, "--subset", subset]) == 2
    err = capsys.readouterr().err
    assert "expected numbers of nodes such as 0-47,60, as their names are not known" in err
    assert '--subset "$(paste -sd, names)", found the file names' in err


def test_hosts_of_a_placement_have_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    machine = tp.torus(4, names=["a", "b", "c", "d"])
    model = tp.Model(machine)
    model.add_request("j", 2)
    result = tp.place(model)
    hosts = result.to_frame()["hosts"][0]
    assert {*expand_host_list(hosts)} < {"a", "b", "c", "d"}
    assert tp.check(result).verified
    Path("result.json").write_text(result.model_dump_json())
    assert run(["show", "result.json", "--hostfile", "hosts"]) == 2
    said = "--hostfile: expected the result of a mapping with this option, found 'hosts'"
    assert said in capsys.readouterr().err


def test_subsets_by_name_or_by_position(capsys):
    asked = ["map", "--grid", "2", "--on", "tree:2x2", "--subset"]
    for subset in ("n[2-3]", "n2,n3", "2-3"):
        assert run([*asked, subset]) == 0
    assert "in the order" not in capsys.readouterr().err
    for subset in ("n3,n2", "3,2", "n[3,2]"):
        assert run([*asked, subset]) == 0
        said = "--subset: nodes are used in the order of their numbers, not as listed"
        assert said in capsys.readouterr().err
    assert run([*asked, "n2,m3"]) == 2
    said = "--subset: expected nodes of the machine, found 'm3'"
    assert capsys.readouterr().err == f"topoplace: error: {said}\n"


def test_inside_a_job_on_a_hierarchy(tmp_path, monkeypatch, capsys):
    """As many tasks go on a host as the job has units there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.json").write_text(json.dumps(SNAPSHOT))
    assert run(["place", "pod.json", "-o", "placed.json"]) == 0
    placed = tp.load("placed.json")
    found = tp.map(tp.grid(8), on=placed, job="even")
    assert found.instance.tasks_per_node == 4
    (text,) = (start.hosts for start in placed.placements if start.request == "even")
    assert {*found.to_frame()["host"]} == {*_hosts(text)}
    assert run(["map", "--grid", "8", "--on", "placed.json", "--job", "even"]) == 0
    capsys.readouterr()
    uneven = ["map", "--grid", "6", "--on", "placed.json", "--job", "uneven"]
    assert run(uneven) == 2
    said = "--tasks-per-node: expected from 1 to 2, the fewest units of the job on a host (2, 4)"
    assert f"error: {said}, found nothing\n" in capsys.readouterr().err
    assert run([*uneven, "--tasks-per-node", "4"]) == 2
    assert f"error: {said}, found 4\n" in capsys.readouterr().err
    many = ["map", "--grid", "8", "--on", "placed.json", "--job", "even", "--tasks-per-node", "5"]
    assert run(many) == 2
    capsys.readouterr()
    assert run(["map", "--grid", "4", *uneven[3:], "--tasks-per-node", "2"]) == 0
    (text,) = (start.hosts for start in placed.placements if start.request == "uneven")
    most = [part.partition("*")[0] for part in text.split() if part.endswith("*4")]
    large = ["map", "--grid", "4", *uneven[3:], "--subset", ",".join(most)]
    assert run(large) == 0  # as many as the units that those have
    assert tp.map(tp.grid(4), on=placed, job="uneven", subset=most).instance.tasks_per_node == 4


def _hosts(text):
    return [name for part in text.split(",") for name in expand_host_list(part.partition("*")[0])]
