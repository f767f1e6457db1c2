"""Slurm's rules decide as the real controller did, where its decisions are recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from hierarchy_decisions import named, problem_of, problem_of_decision
from real_files import real_file
from topoplace.errors import InputError
from topoplace.formats.decisions import read_lines
from topoplace.placement.hierarchy.contract import (
    LevelLimits,
    Limits,
    blocks_of,
    keeps_contract,
    level_limits,
    level_of_groups,
    limits_of,
)
from topoplace.placement.hierarchy.heuristics.queue import serve
from topoplace.placement.hierarchy.heuristics.slurm_block import reason, slurm_block
from topoplace.placement.hierarchy.heuristics.slurm_tree import slurm_tree
from topoplace.placement.hierarchy.problem import HierarchyProblem

OUTCOMES = {None: "running", "pending": "pending", "refused": "rejected"}


def chosen_by(problem: HierarchyProblem) -> list[str]:
    """Return the names of the nodes that the only request gets; none if it does not start."""
    placed = serve(slurm_block, problem).get(0, ({},))
    return sorted(named(problem, placed[0]))


def recorded(plugin: str) -> Iterator[tuple[int, dict[str, Any], HierarchyProblem]]:
    """Yield decisions without options on switches or blocks: number, line and problem."""
    for number, line, decision in read_lines(real_file("slurm_block/decisions.jsonl")):
        if line["plugin"] == plugin and not line["request"]["options"]:
            yield number, line, problem_of_decision(decision)


def decided(line: Mapping[str, Any], problem: HierarchyProblem) -> tuple[str, list[str]]:
    """Return the outcome and the nodes; segments that do not divide the job are refused."""
    wanted = line["request"]
    if wanted["segment"] and wanted["nodes"] % wanted["segment"]:
        return "rejected", []
    return OUTCOMES[reason(problem, problem.requests[0])], chosen_by(problem)


def test_chooses_the_nodes_that_the_recorded_controller_chose() -> None:
    total: Counter[str] = Counter()
    wrong = []
    for number, line, problem in recorded("topology/block"):
        kind = f"{line['config']} {line['outcome']}"
        total[kind] += 1
        if decided(line, problem) != (line["outcome"], sorted(line["chosen"] or [])):
            wrong.append(f"line {number} ({kind})")
    assert not wrong, f"{len(wrong)} differ: {', '.join(wrong)}; of {dict(total)}"
    assert total.total() == 126


def test_what_the_controller_chose_keeps_the_contract() -> None:
    seen = 0
    for _, line, decision in read_lines(real_file("slurm_block/decisions.jsonl")):
        if line["plugin"] == "topology/block" and line["chosen"]:
            problem = problem_of_decision(decision)
            numbers = {name: host for host, name in enumerate(problem.machine.host_names)}
            placed = ({numbers[name]: 1 for name in line["chosen"]},)
            assert keeps_contract(problem.machine, problem.requests[0], placed)
            seen += 1
    assert seen == 112


def blocks(sizes: list[int] | None, *free: int, nodes: int = 18) -> dict[str, Any]:
    """Return a machine of base blocks and its state, by block the nodes that are up."""
    hosts = [
        {"hosts": f"b{k}n[1-{nodes}]", "domains": [f"g{k // 4}", f"h{k // 2}", f"b{k}"]}
        for k in range(len(free))
    ]
    down = [f"b{k}n[{up + 1}-{nodes}]" for k, up in enumerate(free) if up < nodes]
    machine = {"kind": "hierarchy", "name": "blocks", "hosts": hosts}
    machine |= {"levels": ["four", "two", "block", "node"]}
    machine |= {"block_sizes": sizes} if sizes else {}
    return {"machine": machine, "down": ",".join(down)}


def per_block(given: dict[str, Any], nodes: int, segment: int | None = None) -> str | list[int]:
    """Return how many nodes of every block a job gets, or why it does not start."""
    request: dict[str, Any] = {"id": "job", "nodes": nodes}
    if segment:
        request["segments"] = [{"size": segment, "level": "block"}]
    problem = problem_of(given["machine"], request, down=given["down"])
    why = reason(problem, problem.requests[0])
    if why is not None:
        assert not chosen_by(problem)
        return str(why)
    placed = serve(slurm_block, problem)[0]
    assert keeps_contract(problem.machine, problem.requests[0], placed)
    block_of = problem.machine.domain_of[-2]
    return np.bincount(block_of[list(placed[0])], minlength=int(block_of.max()) + 1).tolist()


def test_worked_examples_of_the_planning_base() -> None:
    assert per_block(blocks([18], 17, 17, 17, nodes=17), 36) == "refused"
    given = blocks([18, 36, 72], 17, 17, 17, 18, 18, 18)
    assert per_block(given, 36) == [0, 0, 0, 0, 18, 18]
    assert per_block(blocks([18, 36, 72], 17, 17, 17, 0, 0, 0), 36) == "pending"
    assert per_block(blocks([16, 32], 17, 17, 17, 0, 0, 0), 36) == [17, 17, 2, 0, 0, 0]
    assert per_block(blocks([18, 36, 72], *[18] * 6), 73) == "refused"
    assert per_block(blocks([18, 36, 72, 144], *[18] * 6), 73)[0] != "r"
    assert per_block(blocks([18, 36, 72], *[18] * 6), 90, segment=18) != "refused"


def test_a_lower_group_in_use_with_a_full_block_ends_the_search() -> None:
    assert per_block(blocks([16, 32], 0, 0, 18, 0, 18, 0), 34) == "pending"
    assert per_block(blocks([16, 32], 0, 0, 18, 18, 18, 0), 34) == [0, 0, 16, 18, 0, 0]


def test_segments_go_into_the_scraps_of_many_blocks() -> None:
    given = blocks([8, 16], 8, 8, 4, 0, 8, 2, 0, 0, nodes=8)
    assert per_block(given, 8, segment=2) == [0, 0, 4, 0, 2, 2, 0, 0]
    assert per_block(given, 8) == [0, 0, 0, 0, 8, 0, 0, 0]
    assert per_block(given, 18, segment=9) == "refused"


def test_limits_are_levels_of_the_machine() -> None:
    given = blocks([18, 36, 72], *[18] * 6)
    machine = problem_of(given["machine"], {"id": "job", "nodes": 1}).machine
    found = blocks_of(machine)
    assert [limits_of(found, n) for n in (18, 19, 40, 73)] == [
        Limits(18),
        Limits(36),
        Limits(72),
        Limits(None, 72, 2),
    ]
    assert [level_of_groups(machine, found, size) for size in (18, 36, 72, 144)] == [2, 1, 0, None]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"nodes": 18}, LevelLimits(2, None)),
        ({"nodes": 19}, LevelLimits(1, None)),
        ({"nodes": 40}, LevelLimits(0, None)),
        ({"nodes": 73}, LevelLimits(None, (0, 2))),
        ({"nodes": 40, "segments": [{"size": 10, "level": "block"}]}, LevelLimits(None, None)),
        ({"nodes": 40, "segments": [{"size": 20, "level": "block"}]}, None),
        ({"nodes": 40, "segments": [{"size": 10, "level": "two"}]}, None),
    ],
)
def test_limits_of_parts(asked: dict[str, Any], expected: LevelLimits | None) -> None:
    given = blocks([18, 36, 72], *[18] * 6)
    problem = problem_of(given["machine"], {"id": "job", **asked})
    assert level_limits(problem.machine, problem.requests[0].parts[0]) == expected


def test_a_level_of_limited_groups_has_to_be_there() -> None:
    machine = blocks([18, 36, 72], *[18] * 6)["machine"]
    for own in machine["hosts"]:
        own["domains"][1:2] = []
    machine["levels"].remove("two")
    problem = problem_of(machine, {"id": "job", "nodes": 19})
    with pytest.raises(InputError, match="a level of aligned groups of 2 blocks"):
        level_limits(problem.machine, problem.requests[0].parts[0])


def test_without_sizes_the_smallest_block_is_the_base() -> None:
    machine = problem_of(blocks(None, 18, 18)["machine"], {"id": "job", "nodes": 1}).machine
    assert blocks_of(machine).sizes == (18, 36, 72, 144, 288)


def test_a_size_that_is_no_multiple_of_the_base_is_refused() -> None:
    given = blocks([8, 12], 8, 8, nodes=8)
    with pytest.raises(InputError, match="multiple of the base"):
        blocks_of(problem_of(given["machine"], {"id": "job", "nodes": 1}).machine)


@pytest.mark.parametrize(
    "asked",
    [
        {"required": "block"},
        {"exclusive": "block"},
        {"spread": {"size": 1, "level": "block"}},
        {"segments": [{"size": 2, "level": "two"}]},
    ],
)
def test_what_slurm_does_not_know_waits(asked: dict[str, Any]) -> None:
    given = blocks([18, 36, 72], *[18] * 6)
    problem = problem_of(given["machine"], {"id": "job", "nodes": 4, **asked})
    assert not serve(slurm_block, problem)


def test_chooses_the_leaves_that_the_recorded_controller_chose() -> None:
    total, wrong = 0, []
    for number, line, problem in recorded("topology/tree"):
        placed = serve(slurm_tree, problem).get(0, ({},))
        total += 1
        if sorted(named(problem, placed[0])) != sorted(line["chosen"] or []):
            wrong.append(f"line {number}")
    assert not wrong, f"{len(wrong)} of {total} differ: {', '.join(wrong)}"
    assert total == 55


def tree(*free: int) -> dict[str, Any]:
    """Return a machine of leaves of 8, four to a spine, and its state."""
    hosts = [
        {"hosts": f"l{k}n[1-8]", "domains": ["top", f"s{k // 4}", f"l{k}"]}
        for k in range(len(free))
    ]
    down = [f"l{k}n[{up + 1}-8]" for k, up in enumerate(free) if up < 8]
    machine = {"kind": "hierarchy", "name": "tree", "hosts": hosts}
    return {
        "machine": machine | {"levels": ["top", "spine", "leaf", "node"]},
        "down": ",".join(down),
    }


@pytest.mark.parametrize(
    ("free", "nodes", "expected"),
    [
        ((3, 8, 4, 4, 8, 8, 8, 8), 4, [0, 0, 4, 0, 0, 0, 0, 0]),
        ((3, 8, 4, 4, 8, 8, 8, 8), 13, [1, 8, 4, 0, 0, 0, 0, 0]),
        ((0, 2, 6, 2, 8, 1, 0, 0), 15, [0, 2, 6, 2, 5, 0, 0, 0]),
        ((7, 0, 3, 8, 8, 6, 5, 1), 33, [7, 0, 0, 8, 8, 6, 4, 0]),
        ((1, 0, 0, 0, 1, 0, 0, 0), 3, None),
    ],
)
def test_leaves_by_hand(free: tuple[int, ...], nodes: int, expected: list[int] | None) -> None:
    given = tree(*free)
    problem = problem_of(given["machine"], {"id": "job", "nodes": nodes}, down=given["down"])
    placed = serve(slurm_tree, problem).get(0)
    if placed is None:
        assert expected is None
        return
    leaf_of = problem.machine.domain_of[-2]
    assert np.bincount(leaf_of[list(placed[0])], minlength=8).tolist() == expected
