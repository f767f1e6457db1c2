"""Models of topograph, scenarios of slice-packer-torus, traces of RFold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bending import bent
from mistakes import lines_said
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.formats.slices import read_rfold, read_slice_scenario
from topoplace.options import ConvertOptions
from topoplace.snapshot.convert import converted
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.machines import load_any, load_machine
from topoplace.snapshot.schema import HierarchyModel, TreeModel

# ---- topograph -----------------------------------------------------------------------------------

MODEL = """\
# two leaves, one of them in two domains, and one without nodes
switches:
  core:
    labels: {topology.kubernetes.io/region: here}
    switches: [leaf-a, leaf-b, leaf-c]
  leaf-b:
    annotations: {accelerator.topology.test/domain: nvl3}
blocks:
- switch: leaf-a
  nodes: ["n[01-02]", n9]
  annotations: {accelerator.topology.test/domain: nvl1}
- switch: leaf-a
  nodes: ["n[03-05]"]
  annotations: {accelerator.topology.test/domain: nvl2}
- switch: leaf-b
  nodes: ["m[1-2]"]
"""


def written(folder: Path, text: str, name: str = "model.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_switches_of_topograph(tmp_path):
    machine = load_machine(str(written(tmp_path, MODEL)))
    assert isinstance(machine, TreeModel)
    tree = hierarchy_of(machine)
    assert tree.host_names == ("n01", "n02", "n9", "n03", "n04", "n05", "m1", "m2")
    assert [switch.name for switch in machine.switches] == ["leaf-a", "leaf-b", "core"]
    assert tree.leaf_names == ("leaf-a", "leaf-b")


def test_domains_of_topograph(tmp_path):
    path = written(tmp_path, MODEL)
    blocks = load_machine(f"{path}:block")
    assert isinstance(blocks, HierarchyModel)
    assert [(group.domains[-1], group.hosts) for group in blocks.hosts] == [
        ("nvl1", "n[01-02,9]"),
        ("nvl2", "n[03-05]"),
        ("nvl3", "m[1-2]"),
    ]
    assert blocks.levels == ["block12", "block6", "block", "node"]
    alone = written(tmp_path, MODEL[MODEL.index("blocks:") :].replace("- switch", "- # "), "b.yaml")
    assert alone.read_text().count("switch") == 0
    out = tmp_path / "out.json"
    args = ["convert", str(path), "--from", "topograph", "--topology", "block", "-o", str(out)]
    assert run(args) == 0
    assert load_machine(str(out)) == blocks


@pytest.mark.parametrize(
    ("old", "new", "form", "said"),
    [
        ("[leaf-a,", "[[leaf-a,", "", "line 6, column 3: expected YAML ("),
        ("blocks:", "block:", "", "blocks: expected a value, found nothing"),
        ("n9]", "n02]", "", "line 10, blocks[0].nodes[1]: expected each node once (it stands at"),
        ("n[01-02]", "n[01", "", "line 10, blocks[0].nodes[0]: expected a host list such as"),
        ('["m[1-2]"]', "[]", "", "line 16, blocks[2].nodes: expected a list of at least 1 entry"),
        ('["m[1-2]"]', '"m1"', "", "line 16, blocks[2].nodes: expected a list, found 'm1'"),
        ("- switch: leaf-b", "- switch: leaf-d", "", "line 15, blocks[2].switch: expected a sw"),
        ("- switch: leaf-b", "-", "", "line 16, blocks[2].switch: expected a switch"),
        ("leaf-b, leaf-c", "leaf-b, leaf-b", "", "line 5, switches.core.switches[2]: expe"),
        ("leaf-b, leaf-c", "leaf-b, core", "", "line 4, switches.core: expected no cycle"),
        ("- switch: leaf-b", "- switch: core", "", "line 4, switches.core: expected either"),
        ("  leaf-b:\n", "  leaf-b:\n    name: leaf\n", "", "line 7, switches.leaf-b.name: expe"),
        ("    annotations: {acc", "    labels: {acc", "block", "line 15, blocks[2]: expected the"),
        ("nvl1}", "3}", "", "line 11, blocks[0].annotations.accelerator.topology.test/domain: exp"),
        ("domain: nvl1", "domain: a b", "block", "block a b: expected a name of at most 128 char"),
        ("# two", "# 2", "ring", "--topology: expected one of tree, block, found 'ring'"),
    ],
)  # fmt: skip
def test_bad_models(tmp_path, old, new, form, said):
    assert old in MODEL
    path = written(tmp_path, MODEL.replace(old, new, 1))
    line = lines_said(load_machine, f"{path}:{form}" if form else str(path))[0]
    assert line.startswith(f"{path}: {said}")


# ---- slice-packer-torus --------------------------------------------------------------------------


def scenario(**more: Any) -> dict[str, Any]:
    return {
        "_comment": "a pod of 4 x 4 x 4",
        "pod": {"k": 4, "n": 3, "wrap": True},
        "domains": {"axis": 0, "width": 1, "label": "rack"},
        "allocations": {"a": {"origin": [2, 0, 0], "extent": [1, 4, 4], "tenant": "t"}},
        "unhealthy": [[0, 0, 1]],
        "demand": [
            {"job_id": "b", "chips": 8, "tenant": "u"},
            {"job_id": "c", "chips": 16, "shape": [1, 4, 4]},
            {"job_id": "d", "chips": 16, "min_torus_dims": 2},
            {"job_id": "e", "chips": 7},
        ],
    } | more


def scenario_file(folder: Path, raw: Any) -> Path:
    return written(folder, json.dumps(raw), "pod.json")


def test_a_scenario(tmp_path):
    path = scenario_file(tmp_path, scenario())
    snapshot, notes = read_slice_scenario(path)
    assert (snapshot.machine.shape, snapshot.machine.wrap) == ([4] * 3, [True] * 3)
    assert (snapshot.down, snapshot.running[0].nodes) == ("1", "32-47")
    assert [(one.id, one.nodes, one.application) for one in snapshot.queue] == [
        ("b", 8, "u"),
        ("c", 16, None),
        ("d", 16, None),
    ]
    assert sorted(snapshot.queue[0].shapes.split("/")) == sorted(
        ["1x2x4", "1x4x2", "2x1x4", "2x4x1", "4x1x2", "4x2x1", "2x2x2"]
    )
    assert snapshot.queue[1].shapes == "1x4x4"
    assert snapshot.queue[2].shapes == "1x4x4/4x1x4/4x4x1"
    assert notes[1:] == ("jobs left out, of a size or shape that the pod has not: 1",)
    assert load_any(path).snapshot == snapshot
    assert converted(path, "slice-packer").document == snapshot


def left_out_of(folder: Path, raw: dict[str, Any]) -> dict[str, str]:
    snapshot, _ = read_slice_scenario(scenario_file(folder, raw))
    assert all(one.request is None for one in snapshot.left_out)
    return {one.option: one.value for one in snapshot.left_out}


def test_what_a_scenario_says_and_prisms_do_not(tmp_path):
    said = {
        "seam": "of rings, which no slice crosses",
        "domains": "of tenants",
        "order": "of the list, or by priority",
    }
    assert left_out_of(tmp_path, scenario()) == said
    alone = scenario()
    alone["demand"], alone["pod"]["wrap"] = scenario()["demand"][1:2], False
    assert left_out_of(tmp_path, alone) == {}
    odd = bent(scenario(), "demand[0].reserved = true & more = 1")
    assert left_out_of(tmp_path, odd) == said | {"unknown-fields": "demand[].reserved, more"}


def test_pods_of_extents(tmp_path):
    raw = scenario(pod={"extents": [2, 4, 6], "wrap": [False, True, True]})
    raw["allocations"], raw["demand"] = {}, []
    snapshot, _ = read_slice_scenario(scenario_file(tmp_path, raw))
    assert (snapshot.machine.shape, snapshot.machine.wrap) == ([2, 4, 6], [False, True, True])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("pod = 4", "schema: expected a snapshot"),
        ('pod.k = "4"', "pod.k: expected an integer, found '4'"),
        ("del pod.n", "pod: expected k and n, or extents, found neither"),
        ("pod.k = 2", "pod.wrap[0]: expected no ring of fewer than 3 chips, found one of 2"),
        ("pod.wrap = [true]", "pod.wrap: expected 3 entries, one for each dimension, found 1"),
        ("pod = {\"k\": 4096, \"n\": 8}", "pod, machine.shape: expected at most 2097152 routers"),
        ("unhealthy[0] = [0, 0, 4]", "unhealthy[0]: expected coordinates of the pod, 4x4x4"),
        ("unhealthy[0] = [0, 0]", "unhealthy[0]: expected coordinates of the pod, 4x4x4"),
        ("allocations.a.origin[0] = -1", "allocations.a.origin[0]: expected an integer of at lea"),
        ("allocations.a.extent[0] = 3", "allocations.a.extent: expected a slice inside the pod"),
        ("allocations.a.extent = [1]", "allocations.a.extent: expected 3 dimensions"),
        ("del allocations.a.extent", "allocations.a.extent: expected a value, found nothing"),
        ("allocations.f = @allocations.a", "running[1].nodes: expected nodes no other job holds"),
        ("demand[0].chips = 0", "demand[0].chips: expected an integer of at least 1, found 0"),
        ('demand[0].job_id = "b c"', "demand[0].job_id: expected a name without blanks"),
        ("demand[1].job_id = @demand[0].job_id", "queue[1].id: expected"),
        ("demand[1].shape = [4, 4]", "demand[1].shape: expected 3 extents that hold the 16 chips"),
        ("demand = {}", "demand: expected a list, found {}"),
    ],
)  # fmt: skip
def test_bad_scenarios(tmp_path, changes, said, capsys):
    path = scenario_file(tmp_path, bent(scenario(), changes))
    assert lines_said(load_any, path)[0].startswith(f"{path}: {said}")
    code = run(["convert", str(path), "--from", "slice-packer"])
    assert code == ExitCode.BAD_INPUT
    assert len(capsys.readouterr().err.splitlines()) >= 1


# ---- RFold ---------------------------------------------------------------------------------------

TRACE = """\
#job id,arrival time (sec),topology,shape,size,duration (sec)
0,0.0,T3D_NT,1x2x4,8,3.5
1,1.5,T2D,2x2,4,10
2,2,CLOS,4+4,8,1.0
3,3,T3D_T,8x8x8,512,1
4,3,T3D_NT,1x1x6,6,1
5,4,CLOS,0.46,0.46,7.0
"""


def test_a_trace(tmp_path):
    path = written(tmp_path, TRACE, "trace.csv")
    made = converted(path, "rfold", options=ConvertOptions(machine="torus:4x4x4"))
    assert made.notes == (
        "4 jobs queued",
        "left out, larger than the machine: 1",
        "left out, of a shape that does not fit: 1",
    )
    rows = [(r.id, r.nodes, r.shapes, r.walltime, r.submitted) for r in made.document.queue]
    assert rows == [
        ("0", 8, "1x2x4/1x4x2/2x1x4/2x4x1/4x1x2/4x2x1", 4, 0),
        ("1", 4, None, 10, 2),
        ("2", 8, None, 1, 2),
        ("5", 1, None, 7, 4),
    ]
    first, _ = read_rfold(path, load_machine("torus:4x4x4"), limit=2)
    assert len(first.queue) == 2


def test_a_trace_needs_a_torus(tmp_path):
    path = written(tmp_path, TRACE, "trace.csv")
    (line,) = lines_said(converted, path, "rfold")
    assert line.startswith("--on: expected the machine the jobs are for")
    options = ConvertOptions(machine="tree:4x4")
    assert "a torus or mesh" in lines_said(converted, path, "rfold", None, options)[0]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,2,T2D,2x2,4", "line 2: expected 6 columns (job id,arrival time (sec),topology,shape"),
        ("x,2,T2D,2x2,4,1", "line 2, job id: expected a number, found 'x'"),
        ("-1,2,T2D,2x2,4,1", "line 2, job id: expected a number from 0"),
        ("1,nan,T2D,2x2,4,1", "line 2, arrival time (sec): expected a number, found 'nan'"),
        ("1,2,RING,2x2,4,1", "line 2, topology: expected one of MESH2D, T2D, MESH3D, T3D_NT"),
        ("1,2,T2D,2x2x1,4,1", "line 2, shape: expected 2 extents that hold the size, 4"),
        ("1,2,T2D,2x3,4,1", "line 2, shape: expected 2 extents that hold the size, 4"),
        ("1,2,T2D,2xa,4,1", "line 2, shape: expected a number, found 'a'"),
        ("1,2,CLOS,4,0,1", "line 2, size: expected a number from 1"),
        ("1,2,CLOS,4,4,inf", "line 2, duration (sec): expected a number, found 'inf'"),
        ("1,2,CLOS,4,4,1\n1,2,CLOS,4,4,1", "line 3, job id: expected each job once"),
    ],
)
def test_bad_traces(tmp_path, row, said):
    path = written(tmp_path, f"# job id\n{row}\n", "trace.csv")
    options = ConvertOptions(machine="torus:4x4x4")
    assert lines_said(converted, path, "rfold", None, options)[0].startswith(f"{path}: {said}")
