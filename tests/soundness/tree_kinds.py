"""Allocations on tiny trees: certificates and claims of every kind, and what is true of them.

A certificate is held against the checker inside a result whose solution is as dear as brute force
finds one, so that nothing but the certificate stands against a bound that is too high. Nogoods are
the solver's: of the request as it is, or with a planted fault, of its leaves and hops (`planted`)
or of how they add up (`deceived`). A checker with the same fault would take those. Numbers are
changed as well, and parts exchanged.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from soundness.attack import EXTREMES, Json, Number, Target, number
from tiny_instances import full_tree, random_tree
from topoplace.certify import check_document
from topoplace.certify.hierarchy.instance import read_instance
from topoplace.placement.switches.exact.cubes import SideOracle
from topoplace.placement.switches.exact.grids import LineOracle
from topoplace.placement.switches.exact.job import Job, States, states_of
from topoplace.placement.switches.exact.leaf_states import Standing
from topoplace.placement.switches.exact.plans import PlanOracle
from topoplace.placement.switches.exact.starts import chosen, parts_of
from topoplace.placement.switches.exact.thresholds import (
    Branch,
    Decider,
    Leaf,
    Oracle,
    document_of,
)
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.schema import Pattern, Snapshot
from tree_brute_force import Truth, cost_of, state_of
from tree_exact_cases import jobs_of
from tree_threshold_cases import oracle_of, proven

IntArray = NDArray[np.int64]
At = tuple[int, ...]

CUBES = (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)
GRIDS = (Pattern.STENCIL_2D, Pattern.STENCIL_3D)
FOREVER = 1e18
ANY = (2, 3, 4, 4, 5, 6, 7, 8, 8)
ALL_START: Json = {"kind": "leaf", "scale": 1, "prices": {}, "multipliers": []}
AGAIN = 4
"""How often a problem is attacked before the next one is drawn."""


# Results


def fraction(value: Number) -> Json:
    """Return a number as documents have it."""
    value = Fraction(value)
    return {"numerator": value.numerator, "denominator": value.denominator}


def _number(document: Json) -> Fraction:
    """Return a number of a document, 0 for a denominator that the schema does not allow."""
    if document["denominator"] < 1:
        return Fraction(0)
    return Fraction(document["numerator"], document["denominator"])


def _gap(value: Fraction, bound: Fraction) -> float:
    return float(abs(value - bound) / max(Fraction(1), abs(value)))


def level_document(name: str, value: Number, bound: Number | None, certificate: Json) -> Json:
    """Return a level whose figures fit each other."""
    return {
        "name": name,
        "sense": "max" if name == "nodes" else "min",
        "status": "optimal" if bound == value else "feasible",
        "objective": fraction(value),
        "bound": None if bound is None else fraction(bound),
        "gap": None if bound is None else _gap(Fraction(value), Fraction(bound)),
        "proof": "none" if bound is None else "certificate",
        "certificate": certificate,
    }


class Problem:
    """A tiny snapshot, its truth, and results of it."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.snapshot = Snapshot.model_validate_json(json.dumps(document))
        self.truth = Truth(state_of(self.snapshot))
        self.instance = read_instance(self.snapshot)

    def result(self, claims: Json) -> AllocationResult:
        """Return a result with levels and a solution; its top figures are those of `nodes`."""
        first = claims["levels"][0]
        top = {key: first[key] for key in ("status", "gap", "proof")}
        for key in ("objective", "bound"):
            own = first[key]
            top[key] = None if own is None else int(_number(own))
        document = {
            "schema": "topoplace.result/4",
            "problem": "allocation",
            "method": "drawn",
            **top,
            "seconds": 0.0,
            "limits": {},
            "seed": None,
            "versions": {},
            **claims,
            "instance": self.document,
        }
        return AllocationResult.model_validate_json(json.dumps(document))

    def accepts(self, claims: Json) -> bool:
        """Tell whether schema and checker take what is claimed."""
        try:
            result = self.result(claims)
        except ValidationError:
            return False
        return check_document(result).verified

    def solution(self, rng: random.Random, names: Sequence[str], tries: int, sign: int) -> Json:
        """Return a solution that starts these requests, or as many of them as fit.

        It is the cheapest of some tries with `sign` 1, the dearest with -1.
        """
        drawn = [self._solution(rng, names) for _ in range(tries)]
        return max(drawn, key=lambda one: (len(one["allocations"]), -sign * _number(one["cost"])))

    def _solution(self, rng: random.Random, names: Sequence[str]) -> Json:
        truth = self.truth
        room = [list(names) for names in truth.names]
        started, placed, nodes = [], [], {}
        for request in truth.requests:
            if request.id not in names:
                continue
            ways = list(truth.counts(request, [len(own) for own in room]))
            if not ways:
                continue
            counts = rng.choice(ways)
            own = [room[leaf].pop() for leaf, count in enumerate(counts) for _ in range(count)]
            rng.shuffle(own)
            started.append(request)
            placed.append(counts)
            nodes[request.id] = own
        comm = truth.with_ranks(started, placed)
        found, total = [], Fraction(0)
        for request in started:
            machine = self.instance.machine
            hosts = [machine.host_names.index(name) for name in nodes[request.id]]
            leaves = machine.leaf_of[hosts].tolist()
            uses = request.patterns if request.intensive else ()
            cost = cost_of(truth.machine, comm, uses, leaves)
            total += cost
            found.append(
                {"request": request.id, "nodes": nodes[request.id], "cost": fraction(cost)}
            )
        return {"allocations": found, "cost": fraction(total)}

    def worth(self, solution: Json) -> int:
        """Return the priority-weighted nodes of a solution."""
        started = {one["request"] for one in solution["allocations"]}
        return sum(one.value for one in self.truth.requests if one.id in started)


# Proofs of one request


def planted(rng: random.Random, job: Job) -> Job:
    """Return a job with a fault: a leaf fewer, or dearer hops within or between leaves."""
    of = job.states
    number, inside, apart = of.multiplicity.copy(), of.inside.copy(), of.apart.copy()
    state = rng.randrange(len(inside))
    way = rng.choice(("leaf", "inside", "apart"))
    if way == "leaf":
        number[rng.randrange(len(number))] -= 1
    elif way == "inside":
        inside[state] = _above(job, inside[state])
    else:
        apart[state] = apart[:, state] = _above(job, apart[state])
    return _with(job, states_of(of.ranks, of.leaf_type, inside, apart, number))


def _with(job: Job, states: States) -> Job:
    """Return a job with other states and the same values of hops."""
    other = replace(job)
    other.__dict__.update(states=states, values=job.values)
    return other


def _above(job: Job, hops: IntArray) -> IntArray:
    found = np.searchsorted(job.values, hops) + 1
    return job.values[np.minimum(found, len(job.values) - 1)]


def deceived(rng: random.Random, job: Job) -> Oracle:
    """Return an oracle that is wrong about how leaves, lines or active ranks add up."""
    oracle = oracle_of(job)
    if isinstance(oracle, SideOracle):
        right, crowd = oracle.row_of, oracle._crowd
        wrong: Callable[[IntArray], IntArray] = rng.choice(
            (
                lambda row: row + (row > 0),
                lambda row: row + oracle.ranks * (row >= 0),
                lambda row: np.maximum(row, -oracle.ranks),
            )
        )

        def row_of(view: Standing, side: tuple[int, int]) -> IntArray | None:
            row = right(view, side)
            return None if row is None else wrong(row)

        oracle.row_of = row_of  # type: ignore[method-assign]
        oracle._crowd = lambda row, guess: 2 * crowd(row, guess)  # type: ignore[method-assign]
    elif isinstance(oracle, LineOracle):
        tables = oracle.tables
        more = {"layouts": tables.layouts + 1}
        lines = {"lines": tables.lines + 1}
        oracle.tables = tables._replace(**rng.choice((more, lines)))
        if rng.random() < 0.3:  # nothing stays inside
            never = job.states._replace(inside=np.full_like(job.states.inside, job.values[-1]))
            oracle.job = _with(job, never)
    elif isinstance(oracle, PlanOracle):
        oracle.tables = oracle.tables._replace(idle=0 * oracle.tables.idle)
    return oracle


def exchanged(rng: random.Random, tree: Json) -> Json:
    """Return a tree of which a part is another one, or below a branch more."""
    places: list[tuple[Json, str]] = []
    root = {"proof": copy.deepcopy(tree)}
    stack: list[tuple[Json, str]] = [(root, "proof")]
    while stack:
        own, key = stack.pop()
        places.append((own, key))
        if own[key]["kind"] == "branch":
            stack += [(own[key], "without"), (own[key], "more")]
    (own, key), (other, there) = rng.choice(places), rng.choice(places)
    found = rng.choice(({"kind": "empty"}, copy.deepcopy(other[there])))
    if rng.random() < 0.5:
        arms = [copy.deepcopy(own[key]), found]
        rng.shuffle(arms)
        found = {"kind": "branch", "state": rng.randrange(4), "without": arms[0], "more": arms[1]}
    own[key] = found
    return root["proof"]


class Alone:
    """A request alone with the running jobs: what the solver proves of it, and what is true."""

    def __init__(self, problem: Problem, number: int, job: Job) -> None:
        self._problem = problem
        self._request = problem.truth.requests[number]
        self.name = self._request.id
        self.job = job
        self.proven, nogoods = proven(self.job)
        self.nogoods: list[Json] = [one.model_dump(mode="json") for one in nogoods]

    @cached_property
    def least(self) -> Fraction:
        """The least cost that the request can have; what is proven if it cannot start."""
        return min(self._problem.truth.costs_of([self._request]), default=self.proven)

    @cached_property
    def achieved(self) -> list[At]:
        """The numbers of the dearest hops of the steps that allocations have, and none above."""
        truth, job = self._problem.truth, self.job
        leaves = job.domain.tolist()
        pairs = itertools.combinations(leaves, 2)
        level = min((int(truth.machine.common_level[pair]) for pair in pairs), default=2)
        known = {Fraction(value, job.scale): n for n, value in enumerate(job.values.tolist())}
        found: set[At] = set()
        for counts in truth.counts(self._request, truth.free):
            comm = truth.with_ranks([self._request], [counts])
            for profile in truth.profiles(self._request, counts, comm, level):
                at = [known[value] for value in profile[: len(job.prices)]]
                found.add(tuple(self._canonical(at)))
        every = np.array(sorted(found))
        below = (every[None] <= every[:, None]).all(axis=2).sum(axis=1)
        return [at for at, number in zip(sorted(found), below.tolist(), strict=True) if number == 1]

    def _canonical(self, at: Sequence[int]) -> list[int]:
        """Return thresholds that ascend along the chains of a cube, as any numbering can have."""
        full = len(self.job.families) == 1 and self.job.families[0].is_full_cube
        return sorted(at) if full else list(at)

    def proof(self, rng: random.Random, wrong: float) -> Json:
        """Return a proof of the request; `wrong` is about how much of it is."""
        bound = drawn_bound(rng, self.proven, self.least)
        if wrong and rng.random() < 0.5:
            bound = self.least + rng.choice((Fraction(1, 1 << 40), 1, self.least / 20))
        nogoods = list(self.nogoods)
        rng.shuffle(nogoods)
        if rng.random() < wrong:
            nogoods.insert(rng.randint(0, len(nogoods)), self.nogood(rng))
        if rng.random() < wrong / 2 and nogoods:
            nogoods.pop(rng.randrange(len(nogoods)))
        return {"request": self.name, "bound": unreduced(rng, bound), "nogoods": nogoods}

    def nogood(self, rng: random.Random) -> Json:
        """Return a nogood near thresholds that some allocation has."""
        top = len(self.job.values) - 1
        at = list(rng.choice(self.achieved))
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            step = rng.randrange(len(at))
            at[step] = min(top, max(0, at[step] + rng.choice((-1, -1, 1))))
        at = self._canonical(at)
        tree: Json = {"kind": "empty"}
        if rng.random() < 0.9:
            tree = self._tree(rng, at)
        if rng.random() < 0.2:
            tree = exchanged(rng, tree)
        if rng.random() < 0.05:
            at[rng.randrange(len(at))] = number(rng, 0, extremes=0.5)
        return {"at": at, "proof": tree}

    def _tree(self, rng: random.Random, at: Sequence[int]) -> Json:
        """Return what refutes thresholds, or others that are refuted."""
        job = planted(rng, self.job) if rng.random() < 0.3 else self.job
        found = None
        if job.states.multiplicity.any():
            oracle = deceived(rng, job) if rng.random() < 0.5 else oracle_of(job)
            found = Decider(oracle).decide(job.values[at], 20, FOREVER)
        if isinstance(found, Leaf | Branch):
            numbers = {value: n for n, value in enumerate(job.values.tolist())}
            return document_of(found, numbers).model_dump(mode="json")
        if not self.nogoods:
            return {"kind": "empty"}
        return copy.deepcopy(rng.choice(self.nogoods)["proof"])

    def distance(self, at: Sequence[int]) -> int:
        """Return by how much thresholds miss the nearest ones that some allocation has."""
        own = np.array(self._canonical(at))
        return int(np.maximum(0, np.array(self.achieved) - own).sum(axis=1).min())


def all_alone(problem: Problem) -> list[Alone]:
    """Return the requests that the checker can be asked about: all leaves have common switches."""
    found = []
    num_used = sum(room > 0 for room in problem.truth.free)
    for n, request in enumerate(problem.truth.requests):
        if request.intensive and request.nodes > 1:
            jobs = jobs_of(state_of(problem.snapshot), n)
            found += [Alone(problem, n, job) for job in jobs if len(job.domain) == num_used][:1]
    return found


def drawn_bound(rng: random.Random, proven: Fraction, least: Fraction) -> Fraction:
    """Return a bound around what can be proven and what is true."""
    tiny = Fraction(1, rng.choice((7, 1000, 1 << 31, 1 << 62, 1 << 64)))
    between = proven + (least - proven) * Fraction(rng.randint(0, 8), 8)
    extreme = Fraction(rng.choice(EXTREMES), abs(rng.choice(EXTREMES)) or 1)
    ways = [*[proven] * 8, least, least, between, proven + tiny, least + tiny, proven - tiny]
    return rng.choice([*ways, proven * Fraction(99, 100), Fraction(0), Fraction(-1), extreme])


def unreduced(rng: random.Random, bound: Fraction) -> Json:
    """Return a fraction, now and then not in lowest terms."""
    factor = rng.choice((1, 1, 1, 2, 1 << 31, 1 << 62))
    return {"numerator": bound.numerator * factor, "denominator": bound.denominator * factor}


# Targets of certificates


class _Certified:
    """A problem with a dear solution, which certificates of its cost are held beside."""

    def __init__(self, rng: random.Random, problem: Problem, started: float) -> None:
        self._problem = problem
        every = [request.id for request in problem.truth.requests]
        names = [name for name in every if rng.random() < started] or every
        self._solution = problem.solution(rng, names, 25, -1)
        self._worth = problem.worth(self._solution)
        self._all = sum(request.value for request in problem.truth.requests)
        self._cost = _number(self._solution["cost"])

    @property
    def truth(self) -> Fraction:
        return self._problem.truth.least(self._worth)

    def proven(self, certificate: Json) -> Fraction | None:
        """Return what a certificate proves of the cost, as far as the solution lets it."""
        total = sum((_number(one["bound"]) for one in certificate["proofs"]), Fraction(0))
        bound = min(total, self._cost)
        levels = [
            level_document("nodes", self._worth, self._all, ALL_START),
            level_document("cost", self._cost, bound, certificate),
        ]
        claims = {"levels": levels, "solution": self._solution}
        return bound if self._problem.accepts(claims) else None


@dataclass(frozen=True)
class Family:
    """What requests a kind of certificate is for.

    Attributes
    ----------
    single
        Whether single nogoods are held against the checker besides.
    others
        The share of problems with other requests.
    started
        The share of requests that start if they fit.
    """

    single: bool
    patterns: Callable[[random.Random], list[Pattern]]
    sizes: tuple[int, ...]
    others: float = 0.4
    started: float = 1.0


def _one_of(*patterns: Pattern) -> Callable[[random.Random], list[Pattern]]:
    return lambda rng: [rng.choice(patterns)]


FAMILIES = {
    "states": Family(False, lambda rng: rng.sample(list(Pattern), rng.choice((1, 1, 2, 3))), ANY),
    "cubes": Family(True, lambda rng: rng.sample(CUBES, rng.choice((1, 1, 2))), (4, 4, 8, 8, 8)),
    "rings": Family(True, _one_of(Pattern.RING), (3, 4, 5, 6, 7, 8, 8)),
    "lines": Family(True, _one_of(*GRIDS), ANY),
    "binomial": Family(True, _one_of(Pattern.BINOMIAL), ANY),
    "choices": Family(False, _one_of(*Pattern), (2, 3, 4), others=1.0, started=0.6),
}


def _problems(name: str, seed: int, family: Family) -> Iterator[tuple[random.Random, Problem]]:
    """Yield problems whose first request the checker can be asked about."""
    for n in itertools.count():
        rng = random.Random(f"{name} problem {n} of {seed}")
        problem = Problem(
            random_tree(rng, family.patterns(rng), family.sizes, others=family.others)
        )
        free = np.array(problem.truth.free)
        rooms = [int(free[root].sum()) for root in problem.instance.machine.roots]
        if sum(map(bool, rooms)) > 1 or sum(rooms) < problem.truth.requests[0].nodes:
            continue
        yield rng, problem


def certificates(name: str, seed: int) -> Iterator[Target]:
    """Yield problems for the certificates of `FAMILIES`."""
    family = FAMILIES[name]
    for rng, problem in _problems(name, seed, family):
        held = _Certified(rng, problem, family.started)
        alone = all_alone(problem)
        target = Target(held.truth, False, _drawing(alone), held.proven)
        yield from itertools.repeat(target, 2 if family.single else AGAIN)
        if family.single:
            yield from itertools.repeat(_nogood_target(held, alone[0]), AGAIN + 2)


def _drawing(alone: Sequence[Alone]) -> Callable[[random.Random], Json]:
    def draw(rng: random.Random) -> Json:
        wrong = rng.choice((0.0, 0.0, 0.3))
        proofs = [one.proof(rng, wrong) for one in alone if rng.random() < 0.9]
        if rng.random() < 0.05:
            proofs.append(rng.choice(alone).proof(rng, wrong))
        rng.shuffle(proofs)
        return {"kind": "thresholds", "proofs": proofs}

    return draw


def _nogood_target(held: _Certified, alone: Alone) -> Target:
    """Return the target of single nogoods: they have to miss all that allocations have."""

    def proven(nogood: Json) -> int | None:
        proofs = [{"request": alone.name, "bound": fraction(0), "nogoods": [nogood]}]
        if held.proven({"kind": "thresholds", "proofs": proofs}) is None:
            return None
        return -alone.distance(nogood["at"])

    return Target(-1, False, alone.nogood, proven)


def of_nodes(kind: str, apart: float | None, seed: int) -> Iterator[Target]:
    """Yield problems for a certificate of the nodes that start.

    With a share `apart` of trees without common switches, there are more requests than fit.
    """
    for n in itertools.count():
        rng = random.Random(f"{kind} problem {n} of {seed}")
        if apart is None:
            patterns = rng.sample(list(Pattern), 1)
            problem = Problem(random_tree(rng, patterns, (1, 2, 3, 4), others=0.9))
        else:
            problem = Problem(full_tree(rng, apart=apart))
        target = _nodes_target(problem, _start_certificates(problem))
        yield from itertools.repeat(target, AGAIN)


def _start_certificates(problem: Problem) -> Callable[[random.Random], Json]:
    """Return what draws trees of prices: the solver's, or round ones that pay for some requests."""
    requests, truth = problem.truth.requests, problem.truth
    free = np.array(truth.free, dtype=np.int64)
    parts = parts_of(truth.machine, free)
    known = chosen(requests, parts, 1.0).certificate
    right = None if known is None else known.model_dump(mode="json")

    def leaf(rng: random.Random) -> Json:
        scale = rng.choice((1, 1, 2, 6))
        number_of = len(parts) + (rng.random() < 0.03)
        each = [rng.choice((0, 1, scale, scale * rng.randint(1, 9))) for _ in range(number_of)]
        if rng.random() < 0.5:
            each = [each[0]] * number_of if each else []
        prices = {} if rng.random() < 0.2 else {"parts": " ".join(map(str, each))}
        if rng.random() < 0.05:
            prices = {"routers": "1"}
        return {**ALL_START, "scale": scale, "prices": prices}

    def draw(rng: random.Random, depth: int = 0) -> Json:
        if right is not None and not depth and rng.random() < 0.4:
            return copy.deepcopy(right)
        if depth > 2 or rng.random() < 0.6:
            return leaf(rng)
        name = rng.choice(requests).id
        if rng.random() < 0.7:
            arms = {"out": draw(rng, depth + 1), "into": draw(rng, depth + 1)}
            return {"kind": "start", "request": name, **arms}
        arms = {"inside": draw(rng, depth + 1), "outside": draw(rng, depth + 1)}
        return {"kind": "cover", "request": name, "row": rng.randint(0, len(parts)), **arms}

    return draw


def _nodes_target(problem: Problem, certificate: Callable[[random.Random], Json]) -> Target:
    """Return the target of a bound of the nodes that start, with certificates as drawn."""
    values = [request.value for request in problem.truth.requests]
    total, most = sum(values), problem.truth.most

    def draw(rng: random.Random) -> Json:
        bound = number(rng, total, total, total, most, most, total - 1, total + 1, most - 1)
        kind = certificate(rng) if rng.random() < 0.9 else {"kind": "thresholds", "proofs": []}
        below = 1 if rng.random() < 0.8 else abs(rng.choice(EXTREMES)) or 1
        return {"bound": {"numerator": bound * below, "denominator": below}, "certificate": kind}

    def proven(document: Json) -> Fraction | None:
        bound = _number(document["bound"])
        first = level_document("nodes", 0, bound, document["certificate"])
        levels = [first | {"bound": document["bound"]}, level_document("cost", 0, None, None)]
        nothing = {"allocations": [], "cost": fraction(0)}
        return bound if problem.accepts({"levels": levels, "solution": nothing}) else None

    return Target(Fraction(most), True, draw, proven)


# Targets of claims


STATUSES = ("optimal", "feasible", "infeasible", "unknown")


class _Claims:
    """Whole results of a problem: any solution, and what is claimed of it."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._alone = all_alone(problem)

    def draw(self, rng: random.Random) -> Json:
        names = [request.id for request in self._problem.truth.requests]
        some = [name for name in names if rng.random() < 0.6]
        solution = self._problem.solution(rng, some, rng.choice((1, 5, 25)), 1)
        worth, cost = self._problem.worth(solution), _number(solution["cost"])
        levels = [self._nodes(rng, worth), self._cost(rng, worth, cost)]
        if rng.random() < 0.1:
            for level in levels:
                level["objective"] = None
                level["status"] = "unknown" if rng.random() < 0.8 else rng.choice(STATUSES)
            return {"levels": levels, "solution": None}
        return {"levels": levels, "solution": solution}

    def _nodes(self, rng: random.Random, worth: int) -> Json:
        truth = self._problem.truth
        total = sum(request.value for request in truth.requests)
        bound = rng.choice((None, total, total, total, truth.most, worth, total + 1, worth + 1))
        certificate = rng.choice((*(ALL_START,) * 6, None, self._certificate(rng)))
        return self._level(rng, "nodes", worth, bound, certificate)

    def _cost(self, rng: random.Random, worth: int, cost: Fraction) -> Json:
        certificate = self._certificate(rng)
        total = sum((_number(one["bound"]) for one in certificate["proofs"]), Fraction(0))
        least = self._problem.truth.least(worth)
        bounds = (None, min(total, cost), min(total, cost), total, cost, least, Fraction(0))
        bound = rng.choice(bounds)
        if bound is not None and rng.random() < 0.1:
            bound = drawn_bound(rng, bound, least)
        other = rng.choice((None, ALL_START))
        used = certificate if rng.random() < 0.9 else other
        return self._level(rng, "cost", cost, bound, used)

    def _certificate(self, rng: random.Random) -> Json:
        """Return right proofs of some requests, or nearly so."""
        some = [one for one in self._alone if rng.random() < 0.6]
        wrong = rng.choice((0.0, 0.0, 0.0, 0.2))
        return {"kind": "thresholds", "proofs": [one.proof(rng, wrong) for one in some]}

    @staticmethod
    def _level(
        rng: random.Random, name: str, value: Number, bound: Number | None, certificate: Json
    ) -> Json:
        """Return a level that fits, or one with any status, gap and proof."""
        found = level_document(name, value, bound, None if bound is None else certificate)
        found["proof"] = "none" if found["certificate"] is None else "certificate"
        if rng.random() < 0.15:
            found["status"] = rng.choice(STATUSES)
        if rng.random() < 0.03:
            found["gap"] = rng.choice((None, 0.0, -1.0, 1e-13, 1e308, 0.5))
        if rng.random() < 0.03:
            found["proof"] = rng.choice(("certificate", "none", "search"))
        if rng.random() < 0.03:
            found["sense"] = rng.choice(("max", "min"))
        return found

    def proven(self, claims: Json) -> Fraction | None:
        """Return by how much a claim is on the wrong side of the truth; None if refused."""
        if not self._problem.accepts(claims):
            return None
        nodes, cost = claims["levels"]
        solution, truth = claims["solution"], self._problem.truth
        worth = truth.most if solution is None else self._problem.worth(solution)
        least = truth.least(worth)
        wrong = [Fraction(-1 << 80)]
        if nodes["bound"] is not None:
            wrong.append(truth.most - _number(nodes["bound"]))
        if cost["bound"] is not None:
            wrong.append(_number(cost["bound"]) - least)
        for level, best in ((nodes, Fraction(truth.most)), (cost, least)):
            wrong.append(Fraction(-1 << 80) if _is_true(level, best) else Fraction(1))
        return max(wrong)


def _is_true(level: Json, best: Fraction) -> bool:
    """Tell whether a status is true; without a solution nothing is established."""
    if level["objective"] is None:
        return bool(level["status"] == "unknown")
    optimal = _number(level["objective"]) == best
    return level["status"] == "feasible" or (level["status"] == "optimal" and optimal)


def claims(seed: int) -> Iterator[Target]:
    """Yield problems for results of any status, bound and certificate."""
    for n in itertools.count():
        rng = random.Random(f"claims problem {n} of {seed}")
        family = FAMILIES[rng.choice(sorted(FAMILIES))]
        sizes = (1, 2, 2, 3, 4, 4)
        problem = Problem(random_tree(rng, family.patterns(rng), sizes, others=0.8))
        drawn = _Claims(problem)
        target = Target(Fraction(0), False, drawn.draw, drawn.proven)
        yield from itertools.repeat(target, AGAIN)


KINDS: dict[str, Callable[[int], Iterator[Target]]] = {
    "all-start": partial(of_nodes, "all-start", None),
    "starts": partial(of_nodes, "starts", 0.3),
    "starts apart": partial(of_nodes, "starts apart", 0.8),
    **{name: partial(certificates, name) for name in FAMILIES},
    "claims": claims,
}
"""Targets by kind, from a seed."""
