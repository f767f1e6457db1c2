"""Slurm's topology/block: topology.conf, scontrol show topology, jobs of segments, and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mistakes import lines_said
from real_files import real_file
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.formats.slurm.topology import read_slurm_topology
from topoplace.formats.slurm.topology_conf import topology_conf_of
from topoplace.snapshot.convert import converted
from topoplace.snapshot.hierarchy_state import hierarchy_of, hierarchy_written
from topoplace.snapshot.machines import load_any, load_machine
from topoplace.snapshot.schema import HierarchyModel, TreeModel

CONF = """\
# five blocks, the last one alone in its group
BlockName=b0 Nodes=n[0-3]
blockname=b1 NODES=n[4-7]
BlockName=b2 Nodes=n8,n[9-11]
BlockName=b3 Nodes=n[12-15]
BlockName=b4 Nodes=n[16-17]
BlockSizes=4,8,32
"""
SHOWN = """\
BlockName=b0 BlockIndex=0 Nodes=n[0-3] BlockSize=4
BlockName=b1 BlockIndex=1 Nodes=n[4-7] BlockSize=4
BlockName=b2 BlockIndex=2 Nodes=n[8-11] BlockSize=4
AggregatedBlock=b[0-1] BlockIndex=3 Nodes=n[0-7] BlockSize=8
"""
SHOWN_TREE = """\
SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-3]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[4-7]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-7] Switches=s[0-1]
"""


def written(folder: Path, text: str, name: str = "topology.conf") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def blocks_in(folder: Path, text: str) -> HierarchyModel:
    machine = read_slurm_topology(written(folder, text))
    assert isinstance(machine, HierarchyModel)
    return machine


def test_levels_are_enforced_sizes_of_aligned_groups(tmp_path):
    machine = blocks_in(tmp_path, CONF)
    assert machine.levels == ["block32", "block8", "block", "node"]
    assert machine.block_sizes == [4, 8, 32]
    hierarchy = hierarchy_of(machine)
    assert hierarchy.domain_names[0] == ("b0..b4",)
    assert hierarchy.domain_names[1] == ("b0..b4/b0..b1", "b0..b4/b2..b3", "b0..b4/b4")
    assert [name.rpartition("/")[2] for name in hierarchy.domain_names[2]] == [
        f"b{k}" for k in range(5)
    ]
    assert hierarchy.host_names == tuple(f"n{k}" for k in range(18))
    assert hierarchy.capacity.tolist() == [[1]] * 18


@pytest.mark.parametrize(
    ("name", "levels", "sizes"),
    [
        ("A", ["block16"], [8, 16]),
        ("AL", ["block64", "block32", "block16"], [8, 16, 32, 64]),
        ("AN", ["block64", "block32", "block16"], [8, 16, 32, 64, 128]),
        ("P", [], [17]),
    ],
)
def test_the_real_topologies(name, levels, sizes):
    """Without the line BlockSizes Slurm takes five, of which those after one of all end nothing."""
    path = real_file(f"slurm_block/topology_{name}.conf")
    machine = load_machine(str(path))
    assert isinstance(machine, HierarchyModel)
    assert machine.levels == [*levels, "block", "node"]
    assert machine.block_sizes == sizes
    text = path.read_text()
    assert topology_conf_of(machine).startswith(text.partition("BlockSizes")[0])


def test_the_real_tree():
    tree = load_machine(str(real_file("slurm_block/topology_T.conf")))
    assert isinstance(tree, TreeModel)
    hierarchy = hierarchy_of(hierarchy_written(tree))
    assert hierarchy.levels == ("switch1", "leaf", "node")
    assert [len(names) for names in hierarchy.domain_names] == [2, 8, 64]


def test_switches_that_overlap_are_refused(tmp_path):
    text = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=c Nodes=n3\n"
    text += "SwitchName=t Switches=a,b\nSwitchName=u Switches=b,c\n"
    with pytest.raises(InputError, match=r"share all nodes of one of them or none.*t and u"):
        read_slurm_topology(written(tmp_path, text))


def test_blocks_without_nodes_count_in_their_group(tmp_path):
    text = "BlockName=a Nodes=n[1-2]\nBlockName=b\nBlockName=c Nodes=n[3-4]\nBlockSizes=2,4\n"
    machine = blocks_in(tmp_path, text)
    assert [group.domains for group in machine.hosts] == [["a..b", "a"], ["c", "c"]]
    with pytest.raises(InputError, match="aligned groups"):  # without b, c would be beside a
        topology_conf_of(machine)


def test_what_scontrol_shows_is_read(tmp_path):
    machine = blocks_in(tmp_path, SHOWN)
    assert machine.block_sizes == [4, 8]
    assert machine.levels == ["block8", "block", "node"]
    tree = load_machine(str(written(tmp_path, SHOWN_TREE, "shown")))
    assert isinstance(tree, TreeModel)
    assert [switch.switches for switch in tree.switches] == [None, None, "s[0-1]"]


def test_blocks_are_written_and_read_again(tmp_path):
    source = written(tmp_path, CONF)
    made = converted(source, "slurm-topology")
    assert made.notes == ("domains by level: 1 block32, 3 block8, 5 block, 18 node",)
    machine = written(tmp_path, made.text, "machine.json")
    again = written(tmp_path, converted(machine, "machine", "slurm-topology").text, "again.conf")
    first, second = load_machine(str(source)), load_machine(str(again))
    assert (first.hosts[0], first.levels) == (second.hosts[0], second.levels)
    assert hierarchy_of(first).domain_names == hierarchy_of(second).domain_names
    assert (hierarchy_of(first).domain_of == hierarchy_of(second).domain_of).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("BlockName=a Nodes=n1\nBlockName=a Nodes=n2", "line 2, block a: expected each block once"),
        (
            "BlockName=a Nodes=n1\nBlockName=b Nodes=n[1-2]",
            "line 2, block b: expected each node in one block (it is in a too), found 'n1'",
        ),
        ("BlockName=a Nodes=n[1", "line 1, block a: expected a host list such as"),
        ("BlockName=a,b Nodes=n1", "line 1: expected BlockName=, the name of one block"),
        ("BlockName= Nodes=n1", "line 1: expected BlockName=, the name of one block"),
        ("BlockName=a", "expected at least one block with nodes, found none"),
        ("BlockSizes=4", "expected at least one block with nodes, found none"),
        ("BlockName=a Nodes=n1\nNodes=n2", "line 2: expected BlockName=, the name of one block"),
        ("BlockName=a Nodes=n1 x", "line 1: expected settings such as"),
        ("BlockName=a Nodes=n1\nSwitchName=s Nodes=n2", "line 2: expected blocks alone or"),
        ("BlockName=a Nodes=n1\nBlockSizes=", "line 2, BlockSizes: expected an integer from 1"),
        ("BlockName=a Nodes=n1\nBlockSizes=1,x", "line 2, BlockSizes: expected an integer from 1"),
        (
            "BlockName=a Nodes=n1\nBlockSizes=1,3",
            "line 2, block sizes: expected 1 times a power of two of at most 32768, found 3",
        ),
        ("BlockName=a Nodes=n1\nBlockSizes=2,2", "line 2, block sizes: expected each size once"),
        (
            "BlockName=a Nodes=n1\nBlockSizes=1\nBlockSizes=1",
            "line 3, BlockSizes: expected each setting once (it stands at line 2 too)",
        ),
    ],
)
def test_bad_blocks(tmp_path, text, said, capsys):
    path = written(tmp_path, text)
    (line,) = lines_said(load_machine, str(path))
    assert line.startswith(f"{path}: {said}")
    out = tmp_path / "out.json"
    code = run(["convert", str(path), "--from", "slurm-topology", "-o", str(out)])
    assert code == ExitCode.BAD_INPUT
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_tree_is_no_machine_of_blocks(tmp_path):
    machine = load_machine(str(written(tmp_path, CONF))).model_copy(update={"block_sizes": None})
    with pytest.raises(InputError, match="Slurm's block sizes"):
        topology_conf_of(machine)
    torus = written(tmp_path, '{"name": "t", "shape": [4, 4]}', "torus.json")
    with pytest.raises(InputError, match="a tree machine, or one of blocks"):
        converted(torus, "machine", "slurm-topology")


# ---- Jobs on blocks ------------------------------------------------------------------------------

JOB = {
    "job_state": "PENDING",
    "node_count": 4,
    "nodes": "",
    "comment": "",
    "priority": 5,
    "time_limit": None,
    "submit_time": 1000000,
}


def cluster(folder: Path, *jobs: dict[str, object], conf: str = CONF) -> list[str]:
    """Write a cluster's files and return the options that name them."""
    listed = [JOB | {"job_id": k} | job for k, job in enumerate(jobs, start=1)]
    nodes = "".join(f"NodeName=n{k} State={'DOWN' if k == 17 else 'IDLE'}\n" for k in range(18))
    nodes = nodes.replace("NodeName=n0 State=IDLE", "NodeName=n0 State=ALLOCATED")
    return [
        *("--topology", str(written(folder, conf))),
        *("--nodes", str(written(folder, nodes, "nodes.txt"))),
        *("--jobs", str(written(folder, json.dumps({"jobs": listed}), "squeue.json"))),
    ]


def test_jobs_on_blocks(tmp_path, capsys):
    options = cluster(
        tmp_path,
        {"job_state": "RUNNING", "node_count": 1, "nodes": "n0", "comment": "pattern=rd"},
        {"node_count": 8, "segment_size": 4},
        {"node_count": 6, "comment": "x segment=4", "segment_size": 0},
        {"node_count": 3, "comment": "pattern=rd:30"},
        {"node_count": 5},
        {"node_count": 2, "shared": ["topo"]},
        {"node_count": 19},
    )
    out = tmp_path / "out.json"
    assert run(["convert", "--from", "slurm", *options, "-o", str(out)]) == 0
    state = load_any(out)
    assert state.snapshot.down == "n17"
    assert state.free[:, 0].tolist() == [0, *[1] * 16, 0]
    whole, rest, small, large, alone = state.snapshot.queue
    assert [(s.size, s.level) for s in whole.segments] == [(4, "block")]
    assert [(part.nodes, part.segments[0].size) for part in rest.parts] == [(4, 4), (2, 2)]
    assert (small.required, small.patterns, large.required) == (None, None, None)
    assert (alone.exclusive, alone.required) == ("block", None)
    assert "jobs left out, larger than the machine: 1" in capsys.readouterr().out


def test_the_block_of_a_running_job_that_wants_it_alone_is_closed(tmp_path):
    running = {"job_state": "RUNNING", "node_count": 1, "nodes": "n0"}
    out = tmp_path / "out.json"
    for shared, free in (([], 16), (["topo"], 13)):
        options = cluster(tmp_path, running | {"shared": shared}, {"node_count": 2})
        assert run(["convert", "--from", "slurm", *options, "-o", str(out)]) == 0
        assert load_any(out).free[:, 0].sum() == free


def test_a_request_with_segments_is_held_on_trees_and_flat_machines(tmp_path, capsys):
    tree = "SwitchName=s0 Nodes=n[0-17]\n"
    flat = "- topology: all\n  flat: true\n"
    for conf in (tree, flat):
        options = cluster(tmp_path, {"segment_size": 2}, conf=conf)
        out = tmp_path / "out.json"
        assert run(["convert", "--from", "slurm", *options, "-o", str(out)]) == 0
        (request,) = load_any(out).snapshot.queue
        assert request.segments is None
        said = capsys.readouterr().out
        assert "1 of 1 request held (segment 1; see place --ignore)" in said


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"segment_size": -1}, "jobs[0].segment_size: expected an integer from 0, found -1"),
        ({"segment_size": 1 << 40}, "jobs[0].segment_size: expected at most 2097152 nodes"),
        ({"comment": "segment=x"}, "jobs[0].comment: expected an integer from 1 to 2097152"),
        (
            {"job_state": "RUNNING", "node_count": 1, "nodes": "m0"},
            "job 1: expected nodes on a switch, found 'm0'",
        ),
    ],
)
def test_bad_jobs_on_blocks(tmp_path, job, said, capsys):
    options = cluster(tmp_path, job)
    assert run(["convert", "--from", "slurm", *options]) == ExitCode.BAD_INPUT
    assert f"squeue.json: {said}" in capsys.readouterr().err
