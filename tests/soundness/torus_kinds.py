"""Tiny torus problems for certificates of packings, many of them extreme in some way."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator

from pydantic import ValidationError

import random_certificates
from brute_force import Tiny, brute_force
from random_certificates import best_at_least, certificate_of
from soundness.attack import Json, Target, integers, number, replaced
from tiny_instances import random_torus
from tiny_packing import packing_of
from topoplace.certify.packing import CheckingOracle, certified_bound
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.errors import InputError
from topoplace.result import Interference

KINDS = (*random_certificates.KINDS, "level 2", "level 3")

NOTHING = -(1 << 100)
"""Stands for the bound of a certificate that leaves no packing, below what any packing has."""

_MODES = tuple(Interference)


def targets(kind: str, seed: int) -> Iterator[Target]:
    """Yield tiny problems with what draws certificates of a kind for them."""
    level_idx = {"level 2": 1, "level 3": 2}.get(kind, 0)
    for at in range(1 << 30):
        rng = random.Random(f"{kind}, problem {at} of seed {seed}")
        snapshot, mode = random_torus(rng, alike=kind == "alike"), _MODES[at % 3]
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
