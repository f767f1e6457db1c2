"""Jobs whose hosts follow each other in an order (Slurm's ``--contiguous``)."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from few import few_of
from test_hierarchy import in_maximising_sense, solved
from test_slurm_options import NODE, entry, holds, number, snapshot_of
from test_slurm_sharing import USED, by_node, nodes_of, started, whole
from test_slurm_sharing import running as sharing
from tiny_hierarchies import best_of, num_placements, prepared, random_hierarchy
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.result import Status
from topoplace.result.placement import HierarchyResult
from topoplace.solving import Options, solve

LINE: dict[str, Any] = {
    "schema": "topoplace.snapshot/1",
    "name": "line",
    "machine": {
        "kind": "hierarchy",
        "name": "line",
        "levels": ["rack", "host"],
        "hosts": [
            {"hosts": "n[0-3]", "domains": ["r0"]},
            {"hosts": "n[4-7]", "domains": ["r1"]},
        ],
    },
    "sets": {"table": "n[0-7]"},
    "queue": [{"id": "a", "nodes": 4, "contiguous": "table"}],
}


def drawn(name: str, most: int = 20_000) -> dict[str, Any]:
    """Return a tiny hierarchy with a request that is contiguous."""
    for k in itertools.count():
        document = random_hierarchy(random.Random(f"row-{name}-{k}"))
        rows = any("contiguous" in request for request in document["queue"])
        if rows and 1 < num_placements(prepared(document)) <= most:
            return document
    raise AssertionError


@pytest.mark.parametrize("seed", few_of(range(300), 3))
def test_they_are_placed_as_brute_force_places_them(seed: int) -> None:
    document = drawn(str(seed))
    state = prepared(document)
    best, result = best_of(state), solved(document, 120)
    assert in_maximising_sense(result) == (best, best)
    assert result.check().verified
    for method in ("first-fit", "tree-best-fit", "random"):
        other = solve(state, method, Options())
        assert other.check().holds
        assert in_maximising_sense(other)[0] <= best


@pytest.mark.parametrize("seed", few_of(range(200), 1))
def test_the_reference_model_agrees(seed: int) -> None:
    document = drawn(f"mzn-{seed}", 2_000)
    result = solve(prepared(document), "minizinc", Options(time_limit=60))
    assert all(level.status is Status.OPTIMAL for level in result.levels)
    assert in_maximising_sense(result)[0] == best_of(prepared(document))


def test_a_place_with_a_gap_or_a_bound_that_is_too_good_is_refused() -> None:
    busy = LINE | {"running": [{"id": "r", "nodes": "n2"}]}
    result = solved(busy)
    assert result.check().verified
    written = result.model_dump(mode="json", by_alias=True)
    (placed,) = written["solution"]["placements"]
    assert placed["nodes"] == "n[4-7]"
    for hosts in ("n[0-1],n[3-4]", "n[3-5],n7"):
        placed["nodes"] = hosts
        placed["parts"][0]["shares"] = [{"hosts": hosts, "units": 1}]
        report = check_document(HierarchyResult.model_validate(written))
        assert "do not follow each other" in str(report)
    running = {"running": [{"id": "r", "nodes": "n[2,5]"}]}
    waits = solved(LINE | running)
    assert waits.check().verified
    anywhere = {"queue": [{"id": "a", "nodes": 4}]}
    for more in (anywhere, {"sets": {"table": "n[0-1,3-4,6-7,2,5]"}}):  # it could start there
        own = solved(LINE | running | more)
        assert own.objective == 4
        forged = own.model_copy(update={"levels": waits.levels, "solution": waits.solution})
        assert not check_document(forged).holds


def test_who_waits_for_hosts_in_a_row_is_told_how_many_there_are() -> None:
    result = tp.place(tp.load(LINE | {"running": [{"id": "r", "nodes": "n[2,6]"}]}))
    assert result.waits == {"a": "4 hosts in a row wanted, at most 3 in a row have room (n[3-5])"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"contiguous": "other"}, "queue[0].contiguous"),
        ({"segments": [{"size": 2, "level": "rack"}]}, "no segments of a request"),
        ({"spread": {"size": 1, "level": "rack"}}, "no spread of a request"),
        ({"exclusive": "rack"}, "no exclusive of a request"),
    ],
)
def test_what_goes_with_no_row_is_refused(more: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        prepared(LINE | {"queue": [LINE["queue"][0] | more]})
    assert expected in str(caught.value)


# ---- Slurm ---------------------------------------------------------------------------------------


def row(job: int, nodes: int, **more: Any) -> dict[str, Any]:
    return whole(job, nodes, contiguous=True, **more)


def listed(*names: str, **of: str) -> str:
    return "".join(NODE.format(name=name, of=of.get(name, "all")) for name in names)


def busy(job: int, nodes: str, num: int) -> dict[str, Any]:
    return whole(job, num) | {"job_state": ["RUNNING"], "nodes": nodes}


def test_nodes_follow_each_other_as_slurm_lists_them(tmp_path: Path) -> None:
    model = snapshot_of(tmp_path, [busy(9, "n2", 1), row(1, 4), row(2, 2)])
    assert holds(model) == {}
    assert started(model, order="priority") == {"1": "n[4-7]", "2": "n[0-1]"}
    assert started(model, method="slurm-tree") == {"1": "n[3-6]", "2": "n[0-1]"}
    names = [f"n{k}" for k in (0, 4, 1, 5, 2, 6, 3, 7)]
    model = snapshot_of(tmp_path, [busy(9, "n5", 1), row(1, 4)], nodes=listed(*names))
    assert started(model) == {"1": "n[2-3,6-7]"}
    waits = snapshot_of(tmp_path, [busy(9, "n[2,5]", 2), row(1, 3), row(2, 2)])
    assert started(waits, order="backfill") == {"2": "n[0-1]"}


def test_neither_partitions_nor_nodes_that_are_down_are_skipped(tmp_path: Path) -> None:
    names, of = [f"n{k}" for k in range(8)], {"n3": "low"}
    model = snapshot_of(tmp_path, [row(1, 5)], nodes=listed(*names, **of))
    result = tp.place(model)
    assert result.waits["1"] == "5 nodes in a row wanted, at most 4 in a row have room (n[4-7])"
    down = listed(*names).replace("State=IDLE", "State=DOWN", 1)
    assert started(snapshot_of(tmp_path, [row(1, 7)], nodes=down)) == {"1": "n[1-7]"}


def test_jobs_that_share_nodes_get_them_in_a_row(tmp_path: Path) -> None:
    four = by_node(1, 3, tasks_per_node=number(8), tasks=24, contiguous=True)
    model = snapshot_of(tmp_path, [sharing(9, USED), four], nodes=nodes_of(USED))
    assert holds(model) == {}
    assert model.queue[0].contiguous == "scontrol-show-nodes"
    assert started(model) == {"1": "n[4-6]"}
    tasks = entry(2, node_count=number(1), max_nodes=number(0), shared=[], tasks=number(70),
                  cpus=70, cpus_per_task=number(1), tres_req_str="cpu=70,node=1",
                  contiguous=True)  # fmt: skip
    assert holds(snapshot_of(tmp_path, [tasks], nodes=nodes_of({}))) == {"2": ["contiguous"]}


@pytest.mark.parametrize(
    ("fields", "files"),
    [
        ({"required_nodes": "n3"}, {}),
        ({"required_switches": 1}, {}),
        ({}, {"topology": "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\n"}),
        ({}, {"nodes": listed("n0", "x", *(f"n{k}" for k in range(1, 8)), x="low")}),
    ],
)
def test_what_slurm_does_with_rows_otherwise_is_held(
    fields: dict[str, Any], files: dict[str, str], tmp_path: Path
) -> None:
    assert holds(snapshot_of(tmp_path, [row(1, 3, **fields)], **files)) == {"1": ["contiguous"]}


def test_blocks_ignore_it(tmp_path: Path) -> None:
    blocks = "BlockName=b0 Nodes=n[0-3]\nBlockName=b1 Nodes=n[4-7]\nBlockSizes=4\n"
    model = snapshot_of(tmp_path, [busy(9, "n1", 1), row(1, 3)], topology=blocks)
    assert holds(model) == {}
    assert started(model) == {"1": "n[0,2-3]"} or started(model)["1"].startswith("n[4")
    assert model.queue[0].contiguous is None


@pytest.mark.parametrize(
    ("nodes", "verdict"),
    [("n[4-7]", "optimal"), ("n[3-6]", "unjudged"), ("n[0-1,3-4]", "invalid"), ("", "missed")],
)
def test_audits_judge_it(nodes: str, verdict: str, tmp_path: Path) -> None:
    before = snapshot_of(tmp_path, [busy(9, "n2", 1), row(1, 4)])
    own = busy(1, nodes, 4) if nodes else row(1, 4)
    after = snapshot_of(tmp_path, [busy(9, "n2", 1), own | {"contiguous": True}])
    (found,) = tp.audit(before, after=after).rows
    assert found.verdict == verdict
