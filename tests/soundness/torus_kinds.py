"""Tiny torus problems for certificates of packings, many of them extreme in some way."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

import random_certificates
from brute_force import Tiny, brute_force
from random_certificates import best_at_least, certificate_of
from random_instances import random_snapshot
from soundness.attack import Json, Target, integers, number, replaced
from tiny_packing import packing_of
from topoplace.certify.packing import CheckingOracle, certified_bound
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.errors import InputError
from topoplace.result import Interference
from topoplace.snapshot import Snapshot
from topoplace.snapshot.schema import (
    MAX_PRIORITY,
    MAX_WEIGHT,
    Communication,
    Request,
    ShapeWeights,
    TorusModel,
)

KINDS = (*random_certificates.KINDS, "level 2", "level 3")

NOTHING = -(1 << 100)
"""Stands for the bound of a certificate that leaves no packing, below what any packing has."""

_MODES = tuple(Interference)


def targets(kind: str, seed: int) -> Iterator[Target]:
    """Yield tiny problems with what draws certificates of a kind for them."""
    level_idx = {"level 2": 1, "level 3": 2}.get(kind, 0)
    for at in range(1 << 30):
        rng = random.Random(f"{kind}, problem {at} of seed {seed}")
        snapshot, mode = _snapshot(rng, kind), _MODES[at % 3]
        tiny, best = Tiny(snapshot, mode), brute_force(snapshot, mode)
        able = [r for r in snapshot.queue if tiny.choices(r)]
        contended = best[0] < sum(r.priority * r.nodes for r in able)
        if not contended and snapshot.name != "full" and rng.random() < 0.75:
            continue
        earlier = list(best[:level_idx])
        packing = packing_of(tiny, earlier)
        if level_idx and rng.random() < 0.5:  # what earlier levels can reach together, but less
            for k in range(level_idx):
                top = best_at_least(packing, k, earlier[:k])
                assert top is not None
                less = (0, 0, 1, rng.randint(0, max(1, abs(top))), 1 << 31, 1 << 62)
                earlier[k] = top - rng.choice(less)
            packing = packing_of(tiny, earlier)
        truth: int | None = best[level_idx]
        if earlier != list(best[:level_idx]):
            truth = best_at_least(packing, level_idx, earlier)
        assert truth is not None

        def draw(rng: random.Random, packing: random_certificates.Packing = packing) -> Json:
            return spoilt(rng, random_certificates.draw(rng, packing, kind))

        oracle = TorusOracle(read_instance(snapshot, mode))
        yield Target(truth, True, draw, Proving(oracle, earlier))


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


def _snapshot(rng: random.Random, kind: str) -> Snapshot:
    """Return a tiny snapshot, often one that is extreme in some way."""
    way = rng.choice(("any", "any", "any", "ring", "one", "open", "full"))
    if way == "full" or (kind == "alike" and rng.random() < 0.3):
        return _full(rng)
    snapshot = random_snapshot(rng, max_routers=rng.choice((2, 4, 6, 9)))
    if way in ("ring", "one"):
        shapes = {"ring": ([11], [8], [2, 5], [3, 4]), "one": ([1], [2], [1, 2], [2, 2], [1] * 3)}
        snapshot = _bare(rng, rng.choice(shapes[way]))
    if way == "open":
        snapshot = snapshot.model_copy(update={"running": [], "down": ""})
    queue = list(snapshot.queue)
    if queue and rng.random() < (0.9 if kind == "alike" else 0.4):
        queue = _look_alikes(rng, snapshot, rng.choice(queue))
    if rng.random() < 0.3:
        priorities = (1, MAX_PRIORITY - 1, MAX_PRIORITY)
        queue = [r.model_copy(update={"priority": rng.choice(priorities)}) for r in queue]
    if rng.random() < 0.1:
        nodes = rng.choice(((1 << 31) - 1, 1 << 31))
        queue.append(Request(id="vast", nodes=nodes, priority=rng.choice((1, MAX_PRIORITY))))
    weights = snapshot.weights
    if rng.random() < 0.3:
        of = rng.choice(((0,), (MAX_WEIGHT,), (0, 1, MAX_WEIGHT)))
        weights = ShapeWeights(**{name: rng.choice(of) for name in ShapeWeights.model_fields})
    queue = [] if rng.random() < 0.05 else queue
    return snapshot.model_copy(update={"queue": queue, "weights": weights})


def _on(name: str, machine: TorusModel, queue: list[Request]) -> Snapshot:
    return Snapshot(schema_version="topoplace.snapshot/1", name=name, machine=machine, queue=queue)


def _bare(rng: random.Random, shape: list[int]) -> Snapshot:
    """Return a machine of a shape with nothing on it, and up to three requests."""
    per_router = rng.choice((1, 1, 2, 40))
    most = max(1, per_router * math.prod(shape) // 2)
    kind = rng.choice((Communication.STRICT, Communication.TOLERANT))
    queue = [
        Request(id=f"q{k}", nodes=rng.randint(1, most), communication=kind)
        for k in range(rng.randint(1, 3))
    ]
    more: dict[str, Any] = {}
    if rng.random() < 0.3:
        more["bandwidth"] = [rng.choice((1, 2, 1 << 21)) for _ in shape]
    if rng.random() < 0.4:
        more["wrap"] = [rng.random() < 0.5 for _ in shape]
    machine = TorusModel(name="bare", shape=shape, nodes_per_router=per_router, **more)
    return _on("bare", machine, queue)


def _full(rng: random.Random) -> Snapshot:
    """Return a machine that equal requests fill, or one more than can start."""
    shape = rng.choice(([2], [3], [4], [2, 2], [5], [2, 3]))
    size = math.prod(shape)
    nodes = rng.choice([n for n in (1, 1, 2, 3) if n <= size])
    kind = rng.choice(tuple(Communication))
    num = min(5, size // nodes + rng.choice((0, 0, 0, 1)))
    queue = [Request(id=f"q{k}", nodes=nodes, communication=kind) for k in range(num)]
    if rng.random() < 0.3:
        queue[0] = queue[0].model_copy(update={"priority": rng.choice((2, MAX_PRIORITY))})
    if rng.random() < 0.3:  # two of one value, for the same places
        small = rng.randint(1, max(1, size // 2))
        queue = [
            Request(id="large", nodes=2 * small, communication=kind),
            Request(id="small", nodes=small, priority=2, communication=kind),
        ]
        rng.shuffle(queue)
    wrap = [rng.random() < 0.5 for _ in shape]
    return _on("full", TorusModel(name="full", shape=shape, wrap=wrap), queue)


def _look_alikes(rng: random.Random, snapshot: Snapshot, first: Request) -> list[Request]:
    """Return some requests that are equal or differ in little, and some of the others."""
    machine = snapshot.machine
    assert isinstance(machine, TorusModel)
    also = [r for r in snapshot.queue if r is not first and rng.random() < 0.3]
    nodes = min(first.nodes, rng.choice((1, 2, 4)))
    equal = [
        first.model_copy(
            update={
                "id": f"like{k}",
                "shapes": None,
                "nodes": nodes + rng.choice((0, 0, 0, 1)),
                "priority": rng.choice((first.priority, first.priority, 1)),
            }
        )
        for k in range(rng.randint(2, 4))
    ]
    if rng.random() < 0.35:  # of one value, for more nodes
        equal[0] = equal[0].model_copy(update={"nodes": nodes, "priority": 2})
        equal[1] = equal[1].model_copy(update={"nodes": 2 * nodes, "priority": 1})
    if rng.random() < 0.4:  # one that cannot stand for the others
        ways: list[dict[str, Any]] = [{"communication": kind} for kind in Communication]
        ways += [{"region": name} for name in (None, *snapshot.regions)]
        ways += [{"node_class": name} for name in (None, *machine.classes)]
        ways.append({"shapes": "x".join(map(str, machine.shape)), "nodes": 1})
        at = rng.randrange(len(equal))
        equal[at] = equal[at].model_copy(update=rng.choice(ways))
    return rng.sample(equal + also, len(equal + also))


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
