"""Domains that stay free as a whole as a level: brute force, trade-offs, every door, refusals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import topoplace as tp
from few import few_of
from tiny_hierarchies import freeing, num_placements, outcomes, prepared, random_hierarchy
from topoplace.cli.app import app
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.placement.several import traded_off
from topoplace.result.placement import HierarchyResult
from topoplace.solving import Options, solve

Document = dict[str, Any]
MOST = 20_000
"""Placements of a tiny machine at most."""


def racks(**more: Any) -> Document:
    """Return four racks of four hosts, two of them free; two jobs of two hosts and a wide one."""
    hosts = [
        {"hosts": f"r{r}h[0-3]", "domains": [f"r{r}"], "capacity": {"gpus": 4}} for r in range(4)
    ]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts}
    whole = {"gpus": 4}
    running = [{"id": "a", "nodes": "r0h[0-1]"}, {"id": "b", "nodes": "r1h[0-1]"}]
    queue: list[Document] = [{"id": f"j{k}", "nodes": 2, "takes": whole} for k in range(2)]
    spread = {"level": "rack", "size": 1}
    queue.append({"id": "wide", "nodes": 3, "takes": whole, "spread": spread})
    named = {"schema": "topoplace.snapshot/1", "name": "free", "machine": machine}
    return named | {"running": running, "queue": queue} | more


def figures(result: HierarchyResult) -> list[int]:
    """Return the objectives in maximising sense; all levels are proven."""
    assert all(level.status == "optimal" for level in result.levels)
    return [(1 if v.sense == "max" else -1) * v.objective for v in result.levels]


@pytest.mark.parametrize("seed", few_of(range(320), 6))
def test_free_domains_of_tiny_machines_equal_brute_force(seed: int) -> None:
    rng = random.Random(f"free-{seed}")
    state = prepared(freeing(rng, random_hierarchy(rng)))
    if num_placements(state) > MOST:
        pytest.skip("too many placements")
    best = list(max(outcomes(state)))
    result = solve(state, "exact", Options(time_limit=60))
    assert figures(result) == best
    assert result.check().verified, result.check()
    assert figures(solve(state, "cp-sat", Options(time_limit=60))) == best


@pytest.mark.parametrize("seed", few_of(range(100), 2))
def test_free_domains_are_traded_off_as_by_brute_force(seed: int) -> None:
    rng = random.Random(f"traded-{seed}")
    state = prepared(freeing(rng, random_hierarchy(rng)))
    if num_placements(state) > MOST:
        pytest.skip("too many placements")
    problem = HierarchyProblem(state)
    assert problem.free_level is not None
    reached = {(values[0], values[problem.free_level]) for values in outcomes(state)}
    best = {
        p
        for p in reached
        if not any(o != p and min(o[0] - p[0], o[1] - p[1]) >= 0 for o in reached)
    }
    found = traded_off(
        state,
        [name for name, _ in (problem.levels[0], problem.levels[problem.free_level])],
        Options(time_limit=60),
    )
    assert found.complete
    assert {(p.values[0], p.values[problem.free_level]) for p in found.points} == best
    assert found.check().verified, found.check()


def test_every_door_keeps_racks_free(tmp_path: Path) -> None:
    """The wide job needs three racks, so one stays free; without it the others fit in two."""
    result = tp.place(racks(), objective="nodes,free_racks")
    names = [level.name for level in result.levels]
    assert names == ["nodes", "free_racks", "rack", "host", "stranded"]
    assert (figures(result)[:2], result.instance.free) == ([7, 1], "rack")
    assert figures(tp.place(racks(free="rack")))[:2] == [7, 1]
    assert [v.name for v in tp.place(racks()).levels] == ["nodes", "rack", "host", "stranded"]
    points = tp.frontier(racks(), levels=["nodes", "free_racks"]).points
    assert [tuple(p.values[:2]) for p in points] == [(7, 1), (4, 2)]
    path, written = tmp_path / "s.json", tmp_path / "r.json"
    path.write_text(json.dumps(racks()))
    for more in ("--objective nodes,free_hosts --set free_hosts>=5", "--pareto nodes,free_racks"):
        done = CliRunner().invoke(app, ["place", str(path), *more.split(), "-o", str(written)])
        assert done.exit_code == 0, done.output
        assert CliRunner().invoke(app, ["check", str(written)]).exit_code == 0
    tree = {
        "kind": "tree",
        "name": "t",
        "switches": [
            {"name": "top", "switches": "s[0-1]"},
            *({"name": f"s{k}", "nodes": f"{n}[0-1]"} for k, n in enumerate("ab")),
        ],
    }
    by_patterns = {"id": "q", "nodes": 1, "patterns": [{"pattern": "ring", "share": 50}]}
    document = racks(machine=tree, running=[], queue=[by_patterns])
    found = tp.place(document, objective="nodes,free_leaves")
    assert (found.levels[1].name, found.levels[1].objective) == ("free_leaves", 1)


def test_a_host_of_a_pool_is_free_only_if_nobody_is_there() -> None:
    """Of two hosts with room for one unit each, the one on which a job runs gets it."""
    hosts = {"hosts": "h[0-1]", "domains": ["r"], "capacity": {"gpus": 4}}
    machine = racks()["machine"] | {"hosts": [hosts]}
    running = [{"id": "a", "nodes": "h1", "takes": {"gpus": 1}}]
    queue = [{"id": "q", "nodes": 1, "takes": {"gpus": 3}}]
    result = tp.place(racks(machine=machine, running=running, queue=queue, free="host"))
    assert (figures(result)[:2], result.placements[0].hosts) == ([1, 1], "h1")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"free": "block"}, "free: expected one of rack, host, found 'block'"),
        ({"free": "rack", "order": "priority"}, "order: expected value where free domains count"),
        (
            {
                "free": "host",
                "queue": [{"id": "q", "nodes": 1, "takes": {"gpus": 1}, "exclusive": "rack"}],
            },
            "queue[0].exclusive: expected no level above host, of which free ones count",
        ),
        (
            {"free": "rack", "machine": "torus:2x2", "running": [], "queue": []},
            "free: expected no level but on",
        ),
    ],
)
def test_what_has_no_free_domains_is_told_in_a_line(change: Document, told: str) -> None:
    with pytest.raises(tp.InputError) as error:
        tp.place(racks(**change))
    assert told in str(error.value)


def test_options_that_do_not_fit_are_told_in_a_line() -> None:
    with pytest.raises(tp.InputError, match="expected one of free_racks, free_hosts, found"):
        tp.place(racks(), objective="nodes,free_blocks")
    with pytest.raises(tp.InputError, match="expected one of domains, contention, found"):
        tp.compare([racks()], methods=["first-fit"], objective="nodes,free_racks")
    with pytest.raises(tp.InputError, match="free: expected none where jobs move, but room"):
        tp.repack(racks(free="rack"), ["wide"])
    with pytest.raises(tp.InputError, match="a hierarchy or tree for free domains of a level"):
        tp.place(racks(machine="torus:2x2", running=[], queue=[]), objective="nodes,free_racks")
    with pytest.raises(tp.InputError, match="no level of free domains in the MiniZinc model"):
        tp.place(racks(free="rack"), method="minizinc")
