"""Kueue's rules decide as the real scheduler did, where its decisions are recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from real_files import real_file
from tiny_hierarchies import named, problem_of, racks
from topoplace.formats.decisions import decision_of
from topoplace.placement.hierarchy.heuristics.kueue import kueue, kueue_least_free
from topoplace.placement.hierarchy.heuristics.kueue_balanced import kueue_balanced
from topoplace.placement.hierarchy.heuristics.queue import Rule, serve
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.snapshot.machines import prepare_any


def decided(problem: HierarchyProblem, rule: Rule) -> dict[str | None, dict[str, int]] | None:
    """Return what the parts of the only request get, by name; None if it waits."""
    placed = serve(rule, problem).get(0)
    if placed is None:
        return None
    parts = problem.requests[0].parts
    return {part.name: named(problem, own) for part, own in zip(parts, placed, strict=True)}


def test_decides_as_the_recorded_scheduler() -> None:
    total, wrong = 0, []
    for text in real_file("kueue_real/decisions.jsonl").read_text().splitlines():
        line = json.loads(text)
        if line["truth"]["class"] != "invalid":
            total += 1
            podsets = line.get("requests") or [line["request"]]
            is_balanced = any(podset.get("balanced") for podset in podsets)
            decision = decision_of(line)
            problem = HierarchyProblem(prepare_any(decision.snapshot))
            if decided(problem, kueue_balanced if is_balanced else kueue) != decision.taken:
                wrong.append(line["id"])
    assert (wrong, total) == ([], 134)


def hosts_of(rule: Rule, machine: Mapping[str, Any], **request: Any) -> dict[str, int] | None:
    found = decided(problem_of(machine, {"id": "job", **request}), rule)
    return None if found is None else found[None]


ONE_RACK = racks([3, 3, 2, 1])


def test_best_fit_splits_over_the_largest_and_ends_with_the_tightest() -> None:
    assert hosts_of(kueue, ONE_RACK, nodes=7, preferred="rack") == {"r0h0": 3, "r0h1": 3, "r0h3": 1}


def test_without_a_level_the_smallest_domains_fill_first() -> None:
    assert hosts_of(kueue, ONE_RACK, nodes=4) == {"r0h3": 1, "r0h2": 2, "r0h0": 1}
    assert hosts_of(kueue, ONE_RACK, nodes=2) == {"r0h2": 2}


def test_least_free_fills_the_smallest_domains_first_whatever_is_asked_for() -> None:
    found = hosts_of(kueue_least_free, ONE_RACK, nodes=7, preferred="rack")
    assert found == {"r0h3": 1, "r0h2": 2, "r0h0": 3, "r0h1": 1}


def test_a_preferred_level_gives_way_and_a_required_one_does_not() -> None:
    two = racks([2, 2], [3, 1])
    assert hosts_of(kueue, two, nodes=6, required="rack") is None
    assert hosts_of(kueue, two, nodes=6, preferred="rack") == {"r0h0": 2, "r1h0": 3, "r1h1": 1}


def test_balanced_placement_evens_out_domains() -> None:
    two = racks([4, 4], [4, 4])
    asked = {"nodes": 6, "preferred": "rack"}
    assert hosts_of(kueue, two, **asked) == {"r0h0": 4, "r0h1": 2}
    assert hosts_of(kueue_balanced, two, **asked) == {"r0h0": 3, "r0h1": 3}


def test_segments_within_segments_stay_whole() -> None:
    two = racks([3, 3], [2, 2, 3])
    segments = [{"size": 4, "level": "rack"}, {"size": 2, "level": "host"}]
    found = hosts_of(kueue, two, nodes=8, segments=segments)
    assert found == {"r0h0": 2, "r0h1": 2, "r1h0": 2, "r1h1": 2}


def test_names_are_sorted_domain_by_domain() -> None:
    hosts = [
        {"hosts": host, "domains": [rack], "capacity": {"slots": 1}}
        for rack, host in (("a", "z"), ("a-", "b"), ("a", "c"))
    ]
    machine = {"kind": "hierarchy", "name": "names", "levels": ["rack", "host"], "hosts": hosts}
    assert hosts_of(kueue, machine, nodes=2) == {"c": 1, "z": 1}


@pytest.mark.parametrize("rule", [kueue, kueue_least_free, kueue_balanced])
def test_what_kueue_does_not_know_waits(rule: Rule) -> None:
    for asked in ({"exclusive": "rack"}, {"spread": {"size": 2, "level": "host"}}):
        assert hosts_of(rule, ONE_RACK, nodes=2, **asked) is None


def test_a_lost_leader_makes_the_group_wait() -> None:
    machine = racks([6, 6, 1])
    parts = [
        {"id": "leader", "nodes": 1, "required": "rack", "group": "g"},
        {"id": "workers", "nodes": 4, "takes": {"slots": 3}, "required": "rack", "group": "g"},
    ]
    request = {"id": "job", "nodes": 5, "parts": parts}
    assert decided(problem_of(machine, request), kueue) is None
