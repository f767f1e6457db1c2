"""Tiny problems that are packings, for certificates, on all kinds of machines."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from pydantic import ValidationError

import anchored_cases
import dragonfly_cases
import random_certificates
import ring_cases
import tiny_cubes
import tiny_fattrees
import tiny_hierarchies
import tiny_packing
from brute_force import Tiny
from random_certificates import Packing, best_at_least, certificate_of
from soundness.attack import Json, Target, integers, number, replaced
from tiny_instances import random_torus, with_sets
from topoplace.certify.cubes import instance as cubes_instance
from topoplace.certify.cubes.oracle import CubesOracle, Tables
from topoplace.certify.dragonfly.instance import read_dragonfly
from topoplace.certify.dragonfly.oracle import DragonflyOracle
from topoplace.certify.fattree import check as fattree_check
from topoplace.certify.fattree import oracle as fattree_oracle
from topoplace.certify.hierarchy import instance as hierarchy_instance
from topoplace.certify.hierarchy.free import free_oracle
from topoplace.certify.hierarchy.oracle import HierarchyOracle
from topoplace.certify.hierarchy.rows import Rows
from topoplace.certify.packing import CheckingOracle, certified_bound
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.anchored import Anchored, oracle_of
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.errors import InputError
from topoplace.packing.problem import PackingProblem
from topoplace.placement.cubes.packing import CubesPacking
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.placement.dragonfly.packing import DragonflyPacking
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.dragonfly.problem import prepare as prepare_dragonfly
from topoplace.placement.fattree.packing import packed
from topoplace.placement.fattree.state import prepare as prepare_fattree
from topoplace.placement.hierarchy.free import FreePacking
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.placement.torus.anchored_packing import AnchoredPacking
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare
from topoplace.types import BoolArray
from toy_ring import RingOracle, ring_packing
from values import with_value

NOTHING = -(1 << 100)
"""Stands for the bound of a certificate that leaves no packing, below what any packing has."""

_MODES = tuple(Interference)


@dataclass(frozen=True)
class TinyPacking:
    """A tiny problem as brute force, the checker and the solver have it.

    Attributes
    ----------
    packing_of
        Returns it by brute force, with what earlier levels reach.
    unpriced
        Rows that the solver gives no price, and no cover.
    """

    packing_of: Callable[[Sequence[int]], Packing]
    oracle: CheckingOracle
    solver: Callable[[], PackingProblem] | None = None
    unpriced: BoolArray | None = None


def _torus(rng: random.Random, alike: bool) -> TinyPacking:
    snapshot, mode = random_torus(rng, alike=alike), rng.choice(_MODES)
    if rng.random() < 0.3:
        snapshot = with_sets(rng, snapshot)
    snapshot = with_value(snapshot)
    tiny = Tiny(snapshot, mode)
    oracle = TorusOracle(read_instance(snapshot, mode))
    return TinyPacking(partial(tiny_packing.packing_of, tiny), oracle)


def _anchored(rng: random.Random, alike: bool) -> TinyPacking:
    segmented, mode = rng.random() < 0.5, rng.choice(_MODES)
    while not (
        snapshot := with_value(
            anchored_cases.random_anchored(rng.getrandbits(40), 8, segmented=segmented)
        )
    ).queue:
        continue
    if rng.random() < 0.3:
        snapshot = with_sets(rng, snapshot)
    packing_of = partial(anchored_cases.packing_of, anchored_cases.AnchoredTiny(snapshot, mode))
    solver = AnchoredPacking(PlacementProblem(prepare(snapshot), mode))
    oracle = oracle_of(Anchored(read_instance(snapshot, mode)))
    unpriced = np.zeros(solver.num_rows, dtype=bool)
    for name, rows in solver.families.items():
        unpriced[rows] = name not in oracle.rows  # nobody uses these
    return TinyPacking(packing_of, oracle, lambda: solver, unpriced)


def _cubes(rng: random.Random, alike: bool) -> TinyPacking:
    snapshot = with_value(tiny_cubes.random_pod(rng))
    instance = cubes_instance.read_instance(snapshot)
    solver = CubesPacking(CubesProblem(prepare_cubes(snapshot)))
    unpriced = np.zeros(solver.num_rows, dtype=bool)
    unpriced[: instance.free.size] = np.repeat(solver.positions.pool.cubes, instance.volume)
    oracle = CubesOracle(instance.requests, Tables(instance))
    return TinyPacking(partial(tiny_cubes.packing_of, snapshot), oracle, lambda: solver, unpriced)


def _hierarchy(rng: random.Random, alike: bool) -> TinyPacking:
    document = tiny_hierarchies.lively_hierarchy(str(rng.getrandbits(40)), 2_000)
    instance = hierarchy_instance.read_instance(Snapshot.model_validate(document))
    oracle = HierarchyOracle(Rows(instance), instance.queue)
    return TinyPacking(partial(tiny_hierarchies.packing_of, document), oracle)


def _free(rng: random.Random, alike: bool) -> TinyPacking:
    drawn = tiny_hierarchies.lively_hierarchy(str(rng.getrandbits(40)), 2_000)
    document = tiny_hierarchies.freeing(rng, drawn)
    instance = hierarchy_instance.read_instance(Snapshot.model_validate(document))
    oracle = free_oracle(Rows(instance), instance.queue)
    solver = FreePacking(HierarchyProblem(tiny_hierarchies.prepared(document)))
    return TinyPacking(partial(tiny_hierarchies.packing_of, document), oracle, lambda: solver)


def _dragonfly(rng: random.Random, alike: bool) -> TinyPacking:
    document = dragonfly_cases.drawn(rng.getrandbits(40), most=8)
    document["queue"] = document["queue"][:3]
    checker = read_dragonfly(Snapshot.model_validate(document))
    oracle = DragonflyOracle(Rows(checker), checker.queue)
    state = prepare_dragonfly(Snapshot.model_validate(document))
    solver = DragonflyPacking(DragonflyProblem(state.inside, state, Interference.STRICT))
    return TinyPacking(partial(dragonfly_cases.packing_of, document), oracle, lambda: solver)


def _fattree(rng: random.Random, alike: bool) -> TinyPacking:
    snapshot = with_value(tiny_fattrees.random_tree(rng))
    own = fattree_check.read_instance(snapshot)
    oracle = fattree_oracle.oracle_of(own.tree, own.left, own.queue)
    assert oracle.places is not None
    state = prepare_fattree(snapshot)
    return TinyPacking(
        partial(tiny_fattrees.packing_of, snapshot), oracle, lambda: packed(state).packing
    )


def _large_fattree(rng: random.Random, alike: bool) -> TinyPacking:
    """Return a tiny tree as if it were large: limits of costs, and no covers."""
    snapshot = with_value(tiny_fattrees.random_tree(rng))
    own = fattree_check.read_instance(snapshot)
    oracle = fattree_oracle.FatTreeOracle(own.tree, own.left, own.queue)

    def packing_of(earlier: Sequence[int]) -> Packing:
        found = tiny_fattrees.packing_of(snapshot, earlier)
        columns = [replace(column, covers=frozenset()) for column in found.columns]
        return replace(found, columns=columns, coverable=0)

    return TinyPacking(packing_of, oracle)


def _ring(rng: random.Random, alike: bool) -> TinyPacking:
    ring, jobs = ring_cases.random_ring(rng)
    packing_of = partial(ring_cases.packing_of, ring, {job.id: job for job in jobs})
    return TinyPacking(packing_of, RingOracle(ring, tuple(jobs)), lambda: ring_packing(ring, jobs))


MACHINES: dict[str, Callable[[random.Random, bool], TinyPacking]] = {
    "torus": _torus,
    "anchored": _anchored,
    "hierarchy": _hierarchy,
    "free": _free,
    "cubes": _cubes,
    "dragonfly": _dragonfly,
    "fattree": _fattree,
    "ring": _ring,
}

LARGE = {"large-fattree": _large_fattree}
"""Machines whose oracles say no more than limits."""

KINDS = [
    *(f"{name} {kind}" for name in MACHINES for kind in (*random_certificates.KINDS, "later")),
    *(f"{name} {kind}" for name in LARGE for kind in ("leaf", "start", "shared", "later")),
]
"""Machine and kind of certificate; that of a later level may be of any kind."""


def targets(name: str, seed: int) -> Iterator[Target]:
    """Yield tiny problems with what draws certificates of a kind for them."""
    machine, kind = name.split(" ")
    for at in itertools.count():
        rng = random.Random(f"{name}, problem {at} of seed {seed}")
        tiny = (MACHINES | LARGE)[machine](rng, kind == "alike")
        packing, earlier = tiny.packing_of(()), list[int]()
        level_idx = rng.randrange(1, len(packing.largest)) if kind == "later" else 0
        for k in range(level_idx):  # the best that earlier levels can reach, or less
            top = best_at_least(packing, k, earlier)
            assert top is not None
            less = (0, 0, 0, 1, rng.randint(0, max(1, abs(top))), 1 << 31, 1 << 62)
            earlier.append(top - rng.choice(less))
            packing = tiny.packing_of(earlier)
        truth = best_at_least(packing, level_idx, earlier)
        assert truth is not None
        able = {column.request: column.values[0] for column in packing.columns}
        if not level_idx and truth == sum(able.values()) and rng.random() < 0.6:
            continue  # all start

        def draw(rng: random.Random, packing: Packing = packing) -> Json:
            return spoilt(rng, random_certificates.draw(rng, packing, kind))

        yield Target(truth, True, draw, Proving(tiny.oracle, earlier))


class Proving:
    """Tells what documents prove, None of those that are refused."""

    def __init__(self, oracle: CheckingOracle, earlier: list[int]) -> None:
        self._oracle, self._earlier = oracle, earlier

    def __call__(self, document: Json) -> int | None:
        try:
            bound = certified_bound(self._oracle, certificate_of(document), self._earlier)
        except (ValidationError, RefusedError, InputError, OverflowError):
            return None
        except Exception as error:
            error.add_note(f"earlier {self._earlier}: {document} of {self._oracle}")
            raise
        return NOTHING if bound is None else bound.value


def spoilt(rng: random.Random, document: Json) -> Json:
    """Return a document, now and then with one or two integers or one list changed."""
    for _ in range(rng.choice((0, 0, 0, 0, 1, 2))):
        places = list(integers(document))
        if places:
            document = replaced(document, rng.choice(places), number(rng, 0, 1, 2, 3, extremes=0.5))
    if rng.random() < 0.1:
        document = copy.deepcopy(document)
        lists = [some for some in _lists(document) if some]
        if lists:
            some = rng.choice(lists)
            at = rng.randrange(len(some))
            some[at : at + 1] = rng.choice(([], [some[at]] * 2, [some[at - 1]]))
    return document


def _lists(document: Json) -> Iterator[list[Json]]:
    """Yield the lists of a document, but for the runs of prices."""
    if isinstance(document, dict):
        for key, below in document.items():
            yield from _lists(below) if key != "prices" else ()
    elif isinstance(document, list):
        yield document
        for below in document:
            yield from _lists(below)
