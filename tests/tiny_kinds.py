"""Tiny problems of every kind, each with what all its placements are worth, by trying them."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import tiny_cubes
import tiny_hierarchies
from anchored_cases import AnchoredTiny, random_anchored
from brute_force import Choice, Tiny, brute_force
from random_instances import random_snapshot
from test_defragment import asked, best_rooms
from tiny_instances import tiny_allocation, tiny_placement, with_sets
from tiny_joint import Joint, random_joint
from tiny_repacks import TinyRepack, tiny_repack
from tiny_trees import Truth as DomainsTruth
from tiny_trees import random_snapshot as random_tree
from topoplace.placement.repack.problem import repack_problem
from topoplace.result import Interference
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.machines import prepare_any
from topoplace.snapshot.schema import Room, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options
from topoplace.solving.solve import Problem, problem_of
from tree_brute_force import Truth
from values import with_value

Values = tuple[int | Fraction, ...]

MOST_PLACEMENTS = 3_000
"""Of a problem that is tried; larger ones are only checked."""

MOVES = 40
"""Seeds of machines whose jobs may move: their brute force is slow, and kept."""


@dataclass(frozen=True)
class Drawn:
    """A tiny problem.

    Attributes
    ----------
    options
        Its rule of interference, and whether applications are mapped.
    totals
        What placements are worth on every level, all maximised, the best ones at least; None if
        there are too many.
    snapshot
        Of tori and meshes, for what tells placements apart.
    """

    kind: str
    problem: Problem
    options: Options
    totals: Collection[Values] | None
    snapshot: Snapshot | None = None


def _totals(
    queue: Iterable[Sequence[Choice]], worth: Callable[[list[Choice]], Values]
) -> set[Values] | None:
    """Return what all placements are worth; None if they are too many."""
    found: list[list[Choice]] = [[]]
    for choices in queue:
        for chosen in list(found):
            found += [
                [*chosen, choice]
                for choice in choices
                if not any(choice.meets(other) for other in chosen)
            ]
            if len(found) > MOST_PLACEMENTS:
                return None
    return set(map(worth, found))


def _torus(rng: random.Random, rule: Interference) -> Drawn:
    snapshot = random_snapshot(rng, 10)
    if rng.random() < 0.4:
        snapshot = tiny_placement(rng.getrandbits(40))
    if rng.random() < 0.3:
        snapshot = with_sets(rng, snapshot)
    snapshot = with_value(snapshot)
    tiny, options = Tiny(snapshot, rule), Options(interference=rule)

    def worth(chosen: list[Choice]) -> Values:
        return tuple(
            sum(level) for level in zip((0, 0, 0), *(c.values for c in chosen), strict=True)
        )

    totals = _totals(map(tiny.choices, snapshot.queue), worth)
    return Drawn("torus", problem_of(prepare(snapshot), options), options, totals, snapshot)


def _larger(rng: random.Random, rule: Interference) -> Drawn:
    """Return a torus of which the best placement alone is known."""
    snapshot, options = random_snapshot(rng, 24), Options(interference=rule)
    totals = {brute_force(snapshot, rule)}
    return Drawn("larger", problem_of(prepare(snapshot), options), options, totals)


def _anchored(rng: random.Random, rule: Interference) -> Drawn:
    snapshot = with_value(random_anchored(rng.getrandbits(40), 8, segmented=rng.random() < 0.3))
    if rng.random() < 0.3:
        snapshot = with_sets(rng, snapshot)
    tiny, options = AnchoredTiny(snapshot, rule), Options(interference=rule)

    def worth(chosen: list[Choice]) -> Values:
        taken = set().union(*(c.routers for c in chosen))
        return sum(c.values[0] for c in chosen), -tiny.fragmentation(taken)

    totals = _totals(map(tiny.choices, snapshot.queue), worth)
    return Drawn("anchored", problem_of(prepare(snapshot), options), options, totals)


def _joint(rng: random.Random, rule: Interference) -> Drawn:
    snapshot = random_joint(rng.getrandbits(30), holes=rng.random() < 0.3)
    value, hop_bytes = Joint(snapshot, rule).optimum()
    options = Options(interference=rule, maps=True)
    return Drawn("joint", problem_of(prepare(snapshot), options), options, {(value, -hop_bytes)})


def _tree(rng: random.Random, _: Interference) -> Drawn:
    state = prepare_contention(with_value(tiny_allocation(rng.getrandbits(40))))
    totals = {(worth, -cost) for worth, cost in Truth(state).costs.items()}
    return Drawn("tree", problem_of(state, Options()), Options(), totals)


def _domains(rng: random.Random, _: Interference) -> Drawn:
    """Return a switch tree of whose domains the fewest are used."""
    snapshot = with_value(random_tree(f"domains-{rng.getrandbits(40)}"))
    problem = problem_of(prepare_any(snapshot), Options())
    return Drawn("domains", problem, Options(), {DomainsTruth(snapshot).best()})


def _hierarchy(rng: random.Random, _: Interference) -> Drawn:
    state = tiny_hierarchies.prepared(tiny_hierarchies.random_hierarchy(rng))
    few = tiny_hierarchies.num_placements(state) <= MOST_PLACEMENTS
    totals = tiny_hierarchies.outcomes(state) if few else None
    return Drawn("hierarchy", problem_of(state, Options()), Options(), totals)


def _cubes(rng: random.Random, _: Interference) -> Drawn:
    snapshot = with_value(tiny_cubes.random_pod(rng))
    problem = problem_of(prepare_cubes(snapshot), Options())
    return Drawn("cubes", problem, Options(), tiny_cubes.outcomes(snapshot))


def _repack(rng: random.Random, _: Interference) -> Drawn:
    instance, rule = tiny_repack(rng.randrange(MOVES))
    placed, cost, nodes = TinyRepack(instance, rule).best()
    options = Options(interference=rule)
    return Drawn("repack", repack_problem(instance, rule), options, {(placed, -cost, -nodes)})


def _defragment(rng: random.Random, _: Interference) -> Drawn:
    instance, rule = asked(rng.randrange(MOVES), rng.choice([Room.QUEUE, Room.PRISM]))
    problem = repack_problem(instance, rule)
    rooms = best_rooms(instance, rule)
    totals = {(problem.num_movers, -cost, room) for cost, room in enumerate(rooms)}
    return Drawn("defragment", problem, Options(interference=rule), totals)


KINDS: dict[str, tuple[float, Callable[[random.Random, Interference], Drawn]]] = {
    "torus": (4, _torus),
    "larger": (0.3, _larger),
    "anchored": (4, _anchored),
    "hierarchy": (4, _hierarchy),
    "cubes": (4, _cubes),
    "tree": (1, _tree),
    "domains": (0.3, _domains),
    "joint": (0.3, _joint),
    "repack": (1, _repack),
    "defragment": (1, _defragment),
}
"""By kind how often it is drawn, and what draws it."""


def drawn(seed: str, kind: str | None = None) -> Drawn:
    """Return a tiny problem of a kind, or of any."""
    rng = random.Random(f"kind-{seed}")
    weights = [weight for weight, _ in KINDS.values()]
    _, make = KINDS[kind or rng.choices([*KINDS], weights)[0]]
    return make(rng, rng.choice([*Interference]))
