"""Placements on hierarchies: brute force, real decisions with known optima, commands."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from few import few_of
from real_files import real_file
from tiny_hierarchies import lively_hierarchy, prepared
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.formats.decisions import read_lines
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.hierarchy.contract import under_contract
from topoplace.placement.hierarchy.packing import HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.result import Status
from topoplace.result.hierarchy import HierarchyResult
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA
from topoplace.solving import Options, solve


def solved(document: dict[str, Any], seconds: float | None = 20) -> HierarchyResult:
    """Return the exact method's result."""
    result = solve(prepared(document), "exact", Options(time_limit=seconds))
    assert isinstance(result, HierarchyResult)
    return result


def in_maximising_sense(result: HierarchyResult) -> tuple[list[int | None], list[int | None]]:
    """Return objectives and bounds of all levels."""
    signs = [1 if level.sense == "max" else -1 for level in result.levels]
    values = [s * v.objective for s, v in zip(signs, result.levels, strict=True)]
    bounds = [
        None if v.bound is None else s * v.bound for s, v in zip(signs, result.levels, strict=True)
    ]
    return values, bounds


# ---- Decisions of real schedulers, with what is known of them ------------------------------------


@pytest.mark.parametrize("begin", few_of(range(6), 1))
def test_the_optima_of_all_decisions_of_kueue_are_proven(begin: int) -> None:
    """The truth beside every line: feasible or not, domains by level, room left over."""
    lines = list(read_lines(real_file("kueue_real/decisions.jsonl")))
    for _, line, decision in lines[begin::6]:
        result = solved(decision.snapshot.model_dump(mode="json"))
        truth, levels = line["truth"], {level.name: level for level in result.levels}
        assert result.check().verified, line["id"]
        assert all(level.status == "optimal" for level in result.levels), line["id"]
        assert (result.objective > 0) is truth["feasible"], line["id"]
        if truth["feasible"]:
            assert [levels[name].objective for name in line["levels"]] == truth["domains"]
            if "balance" not in levels and truth.get("stranded") is not None:
                assert levels["stranded"].objective == truth["stranded"]
    assert len(lines) == 137


@pytest.mark.parametrize(
    ("step", "counts"), [(4, (23, 7)), pytest.param(1, (100, 28), marks=pytest.mark.slow)]
)
def test_the_fewest_blocks_of_decisions_of_slurm_are_proven(
    step: int, counts: tuple[int, int]
) -> None:
    """Free and under the contract, which every placement of Slurm keeps."""
    started = above = 0
    for _, line, decision in [*read_lines(real_file("slurm_block/decisions.jsonl"))][::step]:
        if line["plugin"] != "topology/block" or line["request"]["options"]:
            continue
        free = solved(decision.snapshot.model_dump(mode="json"))
        assert free.check().verified
        assert all(level.status == "optimal" for level in free.levels)
        try:
            held = solved(under_contract(decision.snapshot).model_dump(mode="json"))
        except InputError:
            assert line["outcome"] == "rejected"
            continue
        assert held.check().verified
        assert all(level.status == "optimal" for level in held.levels)
        if decision.taken is not None:
            state = prepared(decision.snapshot.model_dump(mode="json"))
            numbers = [state.machine.host_names.index(name) for name in decision.taken[None]]
            used = len({int(state.machine.leaf_of[host]) for host in numbers})
            least = [next(v for v in r.levels if v.name == "block").objective for r in (free, held)]
            assert least[0] <= least[1] <= used
            started, above = started + 1, above + (used > least[0])
        else:
            assert held.objective == 0 or line["how"].startswith("picked")
    assert (started, above) == counts


def test_heuristics_are_the_first_answers_however_short_the_time() -> None:
    for seed in range(12):
        state = prepared(lively_hierarchy(f"no-time-{seed}", 1_000))
        rules = [solve(state, name) for name in ("first-fit", "tree-best-fit")]
        values = [in_maximising_sense(result)[0] for result in rules]
        packing = HierarchyPacking(HierarchyProblem(state))
        starts = itertools.islice(packing.starts(0.0), 2)
        assert [packing.values_of(start).sum(axis=0).tolist() for start in starts] == values
        result = solve(state, "exact", Options(time_limit=1e-9))
        assert result.check().holds
        assert in_maximising_sense(result)[0] >= max(values)


def test_segments_of_twelve_on_blocks_of_seventeen() -> None:
    """36 nodes, segments of 12, three blocks of 17 free nodes: 12 in each (Slurm 225)."""
    hosts = [{"hosts": f"n{b}[01-17]", "domains": [f"b{b}"]} for b in range(3)]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["block", "node"], "hosts": hosts}
    request = {"id": "j", "nodes": 36, "segments": [{"size": 12, "level": "block"}]}
    document = {"schema": SNAPSHOT_SCHEMA, "name": "m", "machine": machine, "queue": [request]}
    result = solved(document)
    assert result.check().verified
    assert [level.objective for level in result.levels] == [36, 3, 36, 0]
    assert result.solution is not None
    (share,) = result.solution.placements[0].parts[0].shares
    counts = [
        sum(name.startswith(f"n{b}") for name in expand_host_list(share.hosts)) for b in range(3)
    ]
    assert counts == [12, 12, 12]


def test_a_group_whose_parts_fit_no_domain_together_waits() -> None:
    """One part fits one host alone, the other another, and both have to be on one host."""
    machine = {
        "kind": "hierarchy",
        "name": "two",
        "levels": ["host"],
        "hosts": [
            {"hosts": "a", "domains": [], "capacity": {"gpus": 2}},
            {"hosts": "b", "domains": [], "capacity": {"memory": 2}},
        ],
    }
    together = {"nodes": 1, "group": "g", "required": "host"}
    parts = [{"id": "x", "takes": {"gpus": 1}}, {"id": "y", "takes": {"memory": 1}}]
    request = {"id": "q", "nodes": 2, "parts": [part | together for part in parts]}
    document = {"schema": SNAPSHOT_SCHEMA, "name": "two", "machine": machine, "queue": [request]}
    result = solve(prepared(document))
    assert (result.status, result.objective) == (Status.OPTIMAL, 0)
    assert check_document(result).verified
