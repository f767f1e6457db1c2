"""Slurm's rules decide as the real controller did, where its decisions are recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from real_files import real_file
from tiny_hierarchies import named, problem_of
from topoplace.errors import InputError
from topoplace.formats.decisions import decision_of
from topoplace.placement.hierarchy.contract import (
    blocks_of,
    keeps_contract,
    level_limits,
)
from topoplace.placement.hierarchy.heuristics.queue import serve
from topoplace.placement.hierarchy.heuristics.slurm_block import reason, slurm_block
from topoplace.placement.hierarchy.heuristics.slurm_tree import slurm_tree
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.snapshot.machines import prepare_any

OUTCOMES = {None: "running", "pending": "pending", "refused": "rejected"}


def chosen_by(problem: HierarchyProblem) -> list[str]:
    """Return the names of the nodes that the only request gets; none if it does not start."""
    placed = serve(slurm_block, problem).get(0, ({},))
    return sorted(named(problem, placed[0]))


def recorded(plugin: str) -> Iterator[tuple[HierarchyProblem, dict[str, Any]]]:
    """Yield the problems of recorded decisions without options, and their lines."""
    for text in real_file("slurm_block/decisions.jsonl").read_text().splitlines():
        line = json.loads(text)
        if line["plugin"] == f"topology/{plugin}" and not line["request"]["options"]:
            # the rule has to know itself what Slurm refuses
            snapshot = decision_of(line).snapshot.model_copy(update={"left_out": []})
            yield HierarchyProblem(prepare_any(snapshot)), line


def test_chooses_the_nodes_that_the_recorded_controller_chose() -> None:
    total, wrong = 0, []
    for problem, line in recorded("block"):
        outcome, chosen = OUTCOMES[reason(problem, problem.requests[0])], chosen_by(problem)
        total += 1
        if (outcome, chosen) != (line["outcome"], sorted(line["chosen"] or [])):
            wrong.append((outcome, chosen, line))
        if line["chosen"]:
            numbers = {name: host for host, name in enumerate(problem.machine.host_names)}
            placed = ({numbers[name]: 1 for name in line["chosen"]},)
            assert keeps_contract(problem.machine, problem.requests[0], placed)
    assert (wrong, total) == ([], 126)


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


def test_a_level_of_limited_groups_has_to_be_there() -> None:
    machine = blocks([18, 36, 72], *[18] * 6)["machine"]
    for own in machine["hosts"]:
        own["domains"][1:2] = []
    machine["levels"].remove("two")
    problem = problem_of(machine, {"id": "job", "nodes": 19})
    with pytest.raises(InputError, match="a level of aligned groups of 2 blocks"):
        level_limits(problem.machine, problem.requests[0].parts[0])


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
    for problem, line in recorded("tree"):
        placed = serve(slurm_tree, problem).get(0, ({},))
        total += 1
        if sorted(named(problem, placed[0])) != sorted(line["chosen"] or []):
            wrong.append(line)
    assert (wrong, total) == ([], 55)


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
