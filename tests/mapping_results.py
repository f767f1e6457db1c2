"""Correct mapping results of several kinds, for the checker and for mutations of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from baseline_instances import (
    application_of,
    grid,
    matrix_problem,
    problem_on,
    random_graph,
    regular_graph,
)
from topoplace.machine import format_node_set
from topoplace.mapping import onto
from topoplace.mapping.bounds import levels
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.levels import levels_bound
from topoplace.mapping.bounds.recognised import recognised_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.onto import load_places
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.pencils.search import search_pencils
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.schema import SwitchModel, TreeModel
from topoplace.solving import Bound, Options, Outcome, result_of

Document = dict[str, Any]


def result_for(problem: MappingProblem, outcome: Outcome) -> MappingResult:
    """Return the result of an outcome with the best known bound."""
    outcome = replace(outcome, bounds=(best_bound(problem),))
    return result_of(problem, outcome, "by-hand", Options(), 0.5)


def document_of(result: MappingResult) -> Document:
    return result.model_dump(mode="json")


def some_nodes(seed: int, total: int, holes: int) -> str:
    """Return all but a few nodes, as a node set."""
    kept = np.random.default_rng(seed).permutation(total)[holes:]
    return format_node_set(kept.tolist())


def _ordered(problem: MappingProblem) -> Outcome:
    """Fill the nodes in order of the tasks."""
    places = np.repeat(problem.nodes, problem.tasks_per_node)
    return outcome_of(places[: problem.num_tasks])


def _blocks() -> tuple[MappingProblem, Outcome]:
    """Cubes of 8 tasks on a torus, two nodes per router: optimal."""
    problem = problem_on(grid((8, 4, 4), size=3), [4, 2, 2], tasks_per_node=4, nodes_per_router=2)
    assert problem.grid is not None
    x, y, z = problem.grid.coordinates().T
    router = (x // 2 * 2 + y // 2) * 2 + z // 2
    return problem, outcome_of(router * 2 + x % 2)


def _rough() -> tuple[MappingProblem, Outcome]:
    """A closed grid on a mesh with holes and spare places."""
    problem = problem_on(
        grid((6, 5), periodic=True),
        [4, 4],
        tasks_per_node=3,
        wrap=False,
        nodes=some_nodes(1, 16, 3),
    )
    return problem, _ordered(problem)


def _alone() -> tuple[MappingProblem, Outcome]:
    """One task per router."""
    problem = problem_on(grid((3, 3), size=5), [4, 3], nodes=some_nodes(2, 12, 2))
    return problem, _ordered(problem)


def _graph() -> tuple[MappingProblem, Outcome]:
    problem = problem_on(random_graph(np.random.default_rng(3), 6, 20), [4, 2], wrap=False)
    return problem, _ordered(problem)


def _pencils() -> tuple[MappingProblem, Outcome]:
    """A layout with holes in its window."""
    nodes = some_nodes(4, 3 * 3 * 6, 8)
    problem = problem_on(grid((6, 6, 6)), [3, 3, 6], tasks_per_node=8, wrap=False, nodes=nodes)
    return problem, search_pencils(problem, Options())


def _ring_pencils() -> tuple[MappingProblem, Outcome]:
    """A closed grid whose pencils fill the ring, so that some pairs are far."""
    problem = problem_on(grid((4, 4, 8), periodic=True), [2, 2, 8], tasks_per_node=4)
    return problem, search_pencils(problem, Options(max_depth=8))


def _whole() -> tuple[MappingProblem, Outcome]:
    """Four dimensions, one of them whole on every router."""
    problem = problem_on(grid((4, 2, 4, 3)), [2, 2, 3], tasks_per_node=12)
    return problem, search_pencils(problem, Options())


def _folded() -> tuple[MappingProblem, Outcome]:
    """A plane folded into layers."""
    nodes = some_nodes(6, 3 * 2 * 5, 2)
    problem = problem_on(grid((12, 8)), [3, 2, 5], tasks_per_node=4, wrap=False, nodes=nodes)
    return problem, search_pencils(problem, Options())


CASES = {
    "blocks": _blocks,
    "rough": _rough,
    "alone": _alone,
    "graph": _graph,
    "pencils": _pencils,
    "ring": _ring_pencils,
    "folded": _folded,
    "whole": _whole,
}


def _star() -> MappingProblem:
    """A task that talks to four others, on distances that are no torus."""
    distances = np.add.outer(np.arange(8), np.arange(8) ** 2)
    distances = np.minimum(distances, distances.T) + 1
    np.fill_diagonal(distances, 0)
    star = np.zeros((8, 8), dtype=np.int64)
    star[5, :4] = 3, 5, 7, 9
    return matrix_problem(application_of(star), distances)


def _far() -> MappingProblem:
    """A graph without locality on a mesh."""
    graph = regular_graph(np.random.default_rng(5), 60, 3)
    return problem_on(graph, [6, 10], wrap=False)


def _ring() -> MappingProblem:
    """A ring numbered anyhow, two tasks on a router, beside a small message."""
    order = [0, 3, 5, 1, 4, 2]
    sizes = np.zeros((6, 6), dtype=np.int64)
    sizes[order, np.roll(order, 1)] = 40
    sizes[0, 1] = 3
    return problem_on(application_of(sizes), [3], tasks_per_node=2)


def training_on_a_tree() -> MappingProblem:
    """A training job on a tree whose leaves differ in size."""
    switches = [
        SwitchModel(name="a", nodes="n[0-3]"),
        SwitchModel(name="b", nodes="n[4-5]"),
        SwitchModel(name="c", nodes="n[6-9]"),
        SwitchModel(name="ab", switches="a,b"),
        SwitchModel(name="top", switches="ab,c"),
    ]
    places = load_places(TreeModel(kind="tree", name="uneven", switches=switches))
    axes = parallelism("pipeline=2:line:3,data=2:ring:5,tensor=2:all:40")
    return onto.problem_on(places.only("0-6,8-9"), axes)


def graph_on_a_hierarchy() -> MappingProblem:
    """A graph without locality, of whose highest level the spectrum says most."""
    graph = regular_graph(np.random.default_rng(4), 24, 5)
    places = load_places("sharedmap:3:2:4/1:2:90")
    machine = places.machine.model_copy(update={"block_sizes": [3, 6]})
    return onto.problem_on(replace(places, machine=machine), graph)


def spectral_bound(problem: MappingProblem) -> Bound | None:
    """Return the bound of levels without routes, which prove more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "routed", lambda *_: None)
        return levels_bound(problem)


CERTIFIED: dict[str, tuple[Callable[[], MappingProblem], Callable[..., Bound | None]]] = {
    "star": (_star, star_bound),
    "classes": (
        lambda: problem_on(random_graph(np.random.default_rng(5), 16, 40), [4, 4]),
        distance_classes_bound,
    ),
    "cuts": (_far, cuts_bound),
    "recognised": (_ring, recognised_bound),
    "levels": (training_on_a_tree, levels_bound),
    "spectral": (graph_on_a_hierarchy, spectral_bound),
    "routes of levels": (graph_on_a_hierarchy, levels_bound),
}
"""Problems whose certificate of a kind proves more than simpler ones."""


@cache
def solved(name: str) -> MappingResult:
    """Return the result of a case."""
    if name in CERTIFIED:
        make, bounded = CERTIFIED[name]
        problem = make()
        bound = bounded(problem)
        assert bound is not None
        places = np.repeat(problem.nodes, problem.tasks_per_node)
        outcome = outcome_of(places[: problem.num_tasks], bound=bound)
        return result_of(problem, outcome, "by-hand", Options(), 0.5)
    problem, outcome = CASES[name]()
    assert outcome.solution is not None
    assert hop_bytes(problem, outcome.solution.nodes) > 0
    return result_for(problem, outcome)
