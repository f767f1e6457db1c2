"""Slurm's topology.yaml: every kind, choices among several, and what is said of bad ones."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import topoplace as tp
from mistakes import MISTAKES, lines_said
from test_slurm_options import NODE, NOW, PARTITION, entry, number
from topoplace.cli import run
from topoplace.errors import ExitCode, InputError
from topoplace.formats.slurm.topology import read_slurm_topology, topology_yaml_of
from topoplace.formats.yaml_text import parsed_text
from topoplace.machine.hostlist import expand_host_list
from topoplace.options import ConvertOptions
from topoplace.snapshot.convert import converted
from topoplace.snapshot.machines import load_any, load_machine
from topoplace.snapshot.schema import HierarchyModel, TorusModel, TreeModel
from topoplace.snapshot.state import torus_of

SEVERAL = """\
---
# several topologies
- topology: switches
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: "s[1-2]"}
      - {switch: s1, nodes: "n[01-02]"}
      - {switch: s2, nodes: "n[03-04]"}
- topology: blocks
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: 1, nodes: "n[01-02]"}
      - {block: 2, nodes: "n[03-04]"}
      - {block: 3, nodes: "n[05-06]"}
- topology: rings
  ring:
    rings:
      - {ring: r0, nodes: "n[01-04]"}
      - {ring: r1, nodes: "n9,n[05-07]"}
- topology: pod
  torus3d:
    toruses:
      - name: p0
        dims: {x: 2, y: 3, z: 4}
        nodes: "n[01-24]"
        placements:
          - dims: {x: 2, y: 1, z: 2}
          - dims: {x: 1, y: 2, z: 2}
            anchor_seed: {x: 1}
            anchor_spacing: {x: 1, y: 2, z: 2}
          - dims: {x: 2, y: 3, z: 4}
- topology: flat
  flat: {alpha_step_rank: true}
"""


def written(folder: Path, text: str, name: str = "topology.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_kind(tmp_path):
    path = written(tmp_path, SEVERAL)
    tree = read_slurm_topology(path)
    assert isinstance(tree, TreeModel)
    assert (tree.name, tree.switches[0].switches) == ("switches", "s[1-2]")
    blocks = read_slurm_topology(path, "blocks")
    assert isinstance(blocks, HierarchyModel)
    assert blocks.levels == ["block4", "block", "node"]
    assert blocks.hosts[2].domains == ["3", "3"]
    ring = read_slurm_topology(path, "rings/r1")
    source = "a Slurm topology.yaml"
    assert ring == TorusModel(name="rings-r1", shape=[4], names="n[9,05-07]", source=source)
    assert ring.node_names == ("n9", "n05", "n06", "n07")
    flat = read_slurm_topology(path, "flat", ["a1", "a2"])
    assert isinstance(flat, HierarchyModel)
    assert (flat.levels, flat.hosts[0].hosts) == (["node"], "a[1-2]")


def test_x_is_fastest_in_slurm_and_slowest_here(tmp_path):
    pod = read_slurm_topology(written(tmp_path, SEVERAL), "pod")
    assert isinstance(pod, TorusModel)
    torus = torus_of(pod)
    order = itertools.product(range(4), range(3), range(2))
    for k, (z, y, x) in enumerate(order, start=1):
        assert pod.node_names[torus.router((x, y, z))] == f"n{k:02}"
    shapes = [(one.dims, one.seed, one.spacing) for one in pod.anchored]
    assert shapes == [
        ([2, 1, 2], [0, 0, 0], [2, 1, 2]),
        ([1, 2, 2], [1, 0, 0], [1, 2, 2]),
        ([2, 3, 4], [0, 0, 0], [2, 3, 4]),
    ]


REGIONS = """\
- topology: holes
  torus3d:
    toruses:
      - name: p
        dims: {x: 2, y: 2, z: 2}
        regions:
          - {dims: {x: 2, y: 1, z: 1}, nodes: "a[1-2]"}
          - {anchor: {x: 1, y: 0, z: 1}, dims: {x: 1, y: 2, z: 1}, nodes: "b[1-2]"}
"""


def test_regions_leave_service_nodes(tmp_path):
    torus = read_slurm_topology(written(tmp_path, REGIONS))
    assert torus.node_names == ("a1", "", "", "", "a2", "b1", "", "b2")
    assert torus.service == "1-3,6"


@pytest.mark.parametrize("name", ["switches", "blocks", "rings/r0", "pod"])
def test_what_is_written_is_read_again(tmp_path, name):
    machine = read_slurm_topology(written(tmp_path, SEVERAL), name)
    assert read_slurm_topology(written(tmp_path, topology_yaml_of(machine))) == machine


def test_regions_are_written_and_read_again(tmp_path):
    torus = read_slurm_topology(written(tmp_path, REGIONS))
    assert read_slurm_topology(written(tmp_path, topology_yaml_of(torus))) == torus


def test_a_torus_of_ours_keeps_its_numbers(tmp_path):
    ours = TorusModel(name="ours", shape=[2, 3, 4], service="5,7")
    source = written(tmp_path, ours.model_dump_json(), "machine.json")
    path = written(tmp_path, converted(source, "machine", "slurm-yaml").text)
    named = read_slurm_topology(path)
    assert named.node_names == tuple("" if k in (5, 7) else f"n{k}" for k in range(24))
    assert (named.shape, named.service) == ([2, 3, 4], "5,7")
    assert load_machine(str(path)) == named


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"shape": [4, 4]}, "shape: expected 3 dimensions"),
        ({"shape": [4, 4, 4], "wrap": [True, True, False]}, "wrap: expected a torus that wraps"),
        ({"shape": [4, 4, 4], "nodes_per_router": 2}, "nodes_per_router: expected one node on"),
        (
            {"kind": "hierarchy", "levels": ["host"], "hosts": [{"hosts": "a"}]},
            "block_sizes: expected a machine with Slurm's block sizes",
        ),
    ],
)
def test_machines_that_slurm_has_not(tmp_path, machine, said):
    path = written(tmp_path, json.dumps({"name": "m", **machine}), "machine.json")
    (line,) = lines_said(converted, path, "machine", "slurm-yaml")
    assert line.startswith(f"{path}: {said}")


def test_a_machine_is_named_where_machines_are_taken(tmp_path):
    path = written(tmp_path, SEVERAL)
    assert load_machine(str(path)).name == "switches"
    assert load_machine(f"{path}:blocks").name == "blocks"
    assert load_machine(f"{path}:rings/r0").shape == [4]
    (line,) = lines_said(load_machine, f"{path}:block")
    assert line.endswith("rings, pod, flat, found 'block' (did you mean 'blocks'?)")


def test_convert_takes_the_name_beside_the_file(tmp_path, capsys):
    path, out = written(tmp_path, SEVERAL), tmp_path / "out.json"
    args = ["convert", str(path), "--from", "slurm-topology", "-o", str(out)]
    assert run([*args, "--topology", "pod"]) == 0
    assert json.loads(out.read_text())["shape"] == [2, 3, 4]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "24 nodes on 2x3x4 routers"
    assert [one["dims"] for one in json.loads(out.read_text())["anchored"]][1] == [1, 2, 2]
    assert run([*args, "--topology", "flat"]) == ExitCode.BAD_INPUT
    assert "or the nodes in --nodes FILE, found flat" in capsys.readouterr().err
    conf = written(tmp_path, "SwitchName=s Nodes=n1\n", "topology.conf")
    assert run(["convert", str(conf), "--from", "slurm-topology", "--topology", "x"]) == 2
    assert "--topology: expected a topology.yaml, if one of its" in capsys.readouterr().err


def test_a_cluster_on_a_torus(tmp_path):
    """Jobs have the shapes of their size, and nodes the numbers of their places."""
    job = {"job_state": "PENDING", "nodes": "", "comment": "", "priority": 5, "node_count": 4}
    jobs = [
        job | {"job_id": 1, "job_state": "RUNNING", "node_count": 2, "nodes": "n[01-02]"},
        job | {"job_id": 2},
        job | {"job_id": 3, "node_count": 5},
        job | {"job_id": 4, "node_count": 8, "segment_size": 4},
        job | {"job_id": 5, "segment_size": 8},
        job | {"job_id": 6, "node_count": 8, "segment_size": 3},
        job | {"job_id": 7, "node_count": 4, "comment": "segment=1"},
    ]
    states = "".join(f"NodeName=n{k:02} State=IDLE\n" for k in range(1, 25))
    options = ConvertOptions(
        topology="pod",
        nodes=written(tmp_path, states.replace("24 State=IDLE", "24 State=DOWN"), "nodes.txt"),
        jobs=written(tmp_path, json.dumps({"jobs": jobs}), "squeue.json"),
    )
    made = converted(written(tmp_path, SEVERAL), "slurm", None, options)
    state = load_any(written(tmp_path, made.text, "now.json"))
    assert (state.snapshot.down, state.snapshot.running[0].nodes) == ("23", "0,12")
    queue = [(one.id, one.shapes, one.segment) for one in state.snapshot.queue]
    assert queue == [("2", None, None), ("4", None, 4), ("5", None, None)]
    assert "jobs left out, of a size without placement: 3 (3, 6, 7)" in made.notes


def test_partitions_that_differ_are_sets_of_which_a_job_has_one(tmp_path):
    nodes = "".join(NODE.format(name=f"n{k:02}", of="all") for k in range(1, 25))
    halves = {"low": "n[01-12]", "high": "n[13-24]"}
    lines = [PARTITION.format(name=name, nodes=own) for name, own in halves.items()]
    partitions = "\n".join(f"{line} Topology=pod" for line in lines)
    size = {"node_count": number(4), "max_nodes": number(4), "tres_req_str": "cpu=4,node=4"}
    jobs = [entry(k, partition="low,high", **size) for k in range(1, 4)]
    texts = {
        "nodes": nodes,
        "partitions": partitions,
        "jobs": json.dumps({"jobs": jobs, "last_update": number(NOW)}),
    }
    files = {name: written(tmp_path, text, name) for name, text in texts.items()}
    made = converted(
        written(tmp_path, SEVERAL), "slurm", None, ConvertOptions(topology="pod", **files)
    )
    snapshot = load_any(written(tmp_path, made.text, "now.json")).snapshot
    assert not [one for one in snapshot.left_out if one.request]
    assert [one.one_of for one in snapshot.queue] == [["partition:low", "partition:high"]] * 3
    found = tp.place(snapshot)
    assert found.check().verified
    halves = [{n[1:] for n in expand_host_list(start.hosts, "")} for start in found.placements]
    assert all(max(own) <= "12" or min(own) > "12" for own in halves)


# ---- What is said of bad files -------------------------------------------------------------------


def changed(old: str, new: str) -> str:
    assert old in SEVERAL
    return SEVERAL.replace(old, new, 1)


@pytest.mark.parametrize(("change", "lines"), MISTAKES["Topologies in YAML"])
def test_bad_files(tmp_path, change, lines):
    """A change ``OLD => NEW`` of the example, or a text; after ``|`` the topology."""
    change, _, name = change.partition(" | ")
    old, _, new = change.replace("¶", "\n").partition(" => ")
    text = changed(old, new) if " => " in change else old
    path = written(tmp_path, text)
    assert lines_said(read_slurm_topology, path, name or None) == [f"{path}: {lines[0]}"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("z: 1}, dims", "z: 2}, dims"), "regions[1].anchor.z: expected a region inside the 2"),
        (("a[1-2]", "a[1-3]"), "regions[0].nodes: expected 2 nodes, as dims has, found 3"),
        (("b[1-2]", "a[1-2]"), "regions[1].nodes: expected each node once, found 'a1'"),
        (("x: 1, y: 0, z: 1", "x: 1, y: 0, z: 0"), "regions[1].anchor: expected regions that do"),
        (
            ("        regions", "        nodes: x\n        regions"),
            "nodes: expected either nodes or",
        ),
    ],
)
def test_bad_regions(tmp_path, change, said):
    path = written(tmp_path, REGIONS.replace(*change))
    (line,) = lines_said(read_slurm_topology, path)
    assert f"[0].torus3d.toruses[0].{said}" in line


def test_values_are_those_of_yaml_1_2():
    text = "a: [no, 012, 12, 1.5, 1e5, ~, true, 1:30, '7', 2026-01-01]"
    assert parsed_text(text)[0].value == {
        "a": ["no", "012", 12, 1.5, "1e5", None, True, "1:30", "7", "2026-01-01"]
    }


def test_aliases_are_counted_and_depth_is_limited():
    assert parsed_text("a: &x [1, {b: c}]\nd: *x")[0].value["d"] == [1, {"b": "c"}]
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 10)]
    with pytest.raises(InputError, match="at most 20000000 values, aliases written out"):
        parsed_text("\n".join(laughs))
    with pytest.raises(InputError, match="line 1, column 101: expected YAML of at most 100 lev"):
        parsed_text("[" * 200)
    with pytest.raises(InputError, match="YAML"):
        parsed_text("[" * 100_000)


def test_documents_of_json_may_follow_one_another():
    assert [one.value for one in parsed_text('{"a": 1}\n{"b": 2}')] == [{"a": 1}, {"b": 2}]
    for text in ('{"a": 1}\n{"b": ', '{"a": 1} x', "", "# nothing\n"):
        with pytest.raises(InputError):
            parsed_text(text)
