"""Models built step by step: each fault is said at the line that makes it, and changes nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from mistakes import lines_said

Steps = Callable[[tp.Model], object]


def torus() -> tp.Model:
    model = tp.Model("torus:4x4x4")
    model.add_running("old", origin=(0, 0, 0), extents=(1, 1, 4))
    model.add_running("thin", [20, 21])
    model.add_request("waits", 8)
    return model


def hierarchy() -> tp.Model:
    model = tp.Model("hierarchy:2x2x4:2")
    model.add_running("half", "h[0-3]", takes={"slots": 1})
    model.add_running("whole", "h4")
    return model


ON_TORUS: list[tuple[Steps, str]] = [
    (lambda m: m.add_running("old", [50]), "id: expected each job once, found 'old'"),
    (lambda m: m.add_running("waits", [50]), "id: expected each job once, found 'waits'"),
    (lambda m: m.add_request("old", 5), "id: expected each job once, found 'old'"),
    (
        lambda m: m.add_running("new", [50, 20]),
        "nodes: expected nodes no other job holds, found node 20, held by thin",
    ),
    (
        lambda m: m.add_running("new", origin=(0, 0, 0), extents=(1, 1, 1)),
        "nodes: expected nodes no other job holds, found node 0, held by old",
    ),
    (lambda m: m.add_running("new", [64]), "nodes: expected node numbers from 0 to 63, found '64'"),
    (
        lambda m: m.add_running("new", origin=(0, 0, 0), extents=(5, 1, 1)),
        "origin: expected extents from 1 to the machine's, torus 4x4x4, found '5x1x1@0,0,0'",
    ),
    (
        lambda m: m.add_running("new", [50], origin=(1, 1, 1), extents=(1, 1, 1)),
        "origin: expected a prism that holds the job's nodes, found '1x1x1@1,1,1'",
    ),
    (
        lambda m: m.add_request("new", 65),
        "nodes: expected no more nodes than the machine's 64 of class compute, found 65",
    ),
    (
        lambda m: m.add_request("new", 16, shapes="8x2x1"),
        "shapes: expected shapes that fit the machine, torus 4x4x4, found '8x2x1'",
    ),
    (
        lambda m: m.add_request("new", 4, region="left"),
        "region: expected a region of the snapshot, found 'left'",
    ),
    (
        lambda m: m.add_request("new", 4, node_class="gpu"),
        "node_class: expected a class of this machine (compute), found 'gpu'",
    ),
    (
        lambda m: m.add_request("new", 4, application=tp.grid(4, 4)),
        "application: expected at most 4 tasks on the nodes of the request, found 16",
    ),
    (
        lambda m: m.add_request("new", 4, application=5),
        "application: expected an application such as tp.grid(4, 4), found int",
    ),
    (lambda m: m.add_request("new", 2.5), "nodes: expected a whole number, found 2.5"),  # type: ignore[arg-type]
    (lambda m: m.add_down([64]), "nodes: expected node numbers from 0 to 63, found '64'"),
    (lambda m: m.free([20]), "nodes: expected nodes that are down or service nodes, found node 20"),
    (
        lambda m: m.add_region("left", (3, 3, 3), (5, 5, 5)),
        "origin: expected extents from 1 to the machine's, torus 4x4x4, found '5x5x5@3,3,3'",
    ),
    (lambda m: m.add_set("a b", [1]), "name: expected a name without blanks, &, |, ! and parenth"),
    (lambda m: m.remove("other"), "id: expected a job that runs or waits, found 'other'"),
    (lambda m: m.replace("odl", nodes=3), "id: expected a job that runs or waits, found 'odl' (d"),
    (lambda m: m.replace("waits", nodes=99), "nodes: expected no more nodes than the machine's"),
    (lambda m: m.replace("waits", size=9), "size: expected one of the known fields, found 'size'"),
    (lambda m: m.replace("thin", nodes=[2]), "nodes: expected nodes no other job holds, found n"),
    (lambda m: m.copy("a b"), "name: expected a name without blanks, commas and semicolons"),
]

ON_LEVELS: list[tuple[Steps, str]] = [
    (
        lambda m: m.add_running("new", "h[0-1]"),
        "nodes: expected no more than other running jobs leave of host h0, slots=1, found 'h[0-1]'",
    ),
    (
        lambda m: m.add_running("new", "h4", takes={"slots": 1}),
        "takes: expected no more than other running jobs leave of host h4, slots=0, found",
    ),
    (lambda m: m.add_running("new", "x9"), "nodes: expected hosts of the machine, found 'x9'"),
    (lambda m: m.add_request("new", 2, required="rak"), "required: expected one of block, rack, h"),
    (lambda m: m.add_request("new", 2, eligible="fast"), "eligible: expected one of"),
    (lambda m: m.add_set("fast", "h[0-99]"), "nodes: expected hosts of the machine, found 'h16'"),
    (lambda m: m.add_running("new", "h9", ends=0.5), "ends: expected a whole number, found 0.5"),
]


@pytest.mark.parametrize(
    ("make", "step", "line"),
    [
        *((torus, step, line) for step, line in ON_TORUS),
        *((hierarchy, step, line) for step, line in ON_LEVELS),
    ],
)
def test_a_fault_is_told_where_it_is_made(
    make: Callable[[], tp.Model], step: Steps, line: str
) -> None:
    model = make()
    before = model.snapshot
    said = lines_said(step, model)
    assert len(said) == 1
    assert line in said[0]
    assert model.snapshot is before


def test_jobs_that_share_a_host_are_taken_together() -> None:
    model = hierarchy()
    model.add_running("other", "h[3,7]", takes={"slots": 1})
    with pytest.raises(tp.InputError, match="of host h3, slots=0"):
        model.add_running("third", "h3", takes={"slots": 1})
    assert tp.load(model.snapshot.model_dump()).snapshot == model.snapshot


@pytest.mark.parametrize("machine", ["torus:3x3:2", "tree:3x3", "hierarchy:2x3:3", "cubes:3:2x2"])
def test_what_a_model_takes_is_what_the_whole_snapshot_takes(machine: str) -> None:
    """Step by step or all at once, the same is refused."""
    rng = np.random.default_rng(7)
    names = {"tree:3x3": "n", "hierarchy:2x3:3": "h"}
    refused = 0
    for _ in range(30):
        model = tp.Model(machine)
        for k in range(6):
            nodes: Any = rng.choice(9, int(rng.integers(1, 4)), replace=False)
            if machine in names:
                nodes = [f"{names[machine]}{node}" for node in nodes]
            more = {"takes": {"slots": 2}} if machine.startswith("hier") else {}
            try:
                model.add_running(f"j{k % 5}", nodes, **more)
            except tp.InputError:
                refused += 1
                document = model.snapshot.model_dump(mode="json", by_alias=True)
                text = ",".join(map(str, nodes))
                document["running"].append({"id": f"j{k % 5}", "nodes": text, **more})
                with pytest.raises(tp.InputError):
                    tp.load(document)
            else:
                model.prepare()
    assert refused > 20


def test_a_model_is_copied_and_changed() -> None:
    model = torus()
    other = model.copy("other")
    other.replace("waits", nodes=np.int64(12), priority=3)
    other.replace("thin", nodes=[22])
    other.add_running("new", [20, 21])
    other.remove("old")
    other.add_down([0])
    other.add_down([0, 1])
    other.free([0])
    assert (other.name, [job.id for job in other.running]) == ("other", ["thin", "new"])
    assert (other.queue[0].nodes, other.queue[0].priority, other.snapshot.down) == (12, 3, "1")
    assert model.snapshot == torus().snapshot
    other.replace("thin", origin=(2, 2, 2), extents=(1, 1, 2))
    assert other.running[0].nodes == "42-43"
    assert tp.place(other, "first-fit").check().holds


def test_copies_of_the_library_and_pickles_are_models_of_their_own() -> None:
    model = torus()
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.add_running("new", [40, 41])
        assert [job.id for job in model.running] == [job.id for job in torus().running]
        assert [job.id for job in other.running][-1] == "new"
    model.add_running("mine", [40])


def test_sets_of_nodes_are_named() -> None:
    model = tp.Model("hierarchy:2x2x4")
    model.add_set("acc", "h[0-2]")
    model.add_request("one", 3, eligible="acc")
    assert tp.place(model).placements[0].hosts == "h[0-2]"


def test_patterns_and_levels_may_meet_on_a_tree() -> None:
    """What counts is known when the model is solved, and not before."""
    model = tp.Model("tree:2x4")
    model.add_request("together", 4, required="leaf")
    model.add_request("talks", 2, patterns={"ring": np.int64(50)})
    assert tp.place(model, objective="domains").objective == 6


def test_a_machine_that_contradicts_itself_makes_no_model() -> None:
    line = "machine.service: expected node numbers from 0 to 15, found '100'"
    assert lines_said(tp.Model, tp.torus(4, 4, service=[100])) == [line]
