"""Tiny mapping problems with their least hop-bytes, and certificates of every kind for them.

Distances, messages and the truth follow from the definitions alone (docs/proofs-mapping.md, "The
problem"): no code of the solver or of the checker has a part in them.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from soundness.attack import EXTREMES, Json, Number, Target, integers, number, replaced, value_at
from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.cuts import cuts_value
from topoplace.certify.mapping.graphs import distance_classes_value
from topoplace.certify.mapping.instance import Instance, read_instance
from topoplace.certify.mapping.pencils import Window, check_layout, window_value
from topoplace.certify.mapping.graphs import star_value
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.result import mapping as schema
from topoplace.snapshot.schema import MappingInstance, Model

Proven = Callable[[Json], Number | None]
Random = random.Random
M = TypeVar("M", bound=Model)

MOST_ASSIGNMENTS = 50_000
LIMIT = 1 << 52
GAIN_UNIT = 1 << 10


# Problems and their truth


@dataclass(frozen=True)
class Problem:
    """A tiny mapping instance, with what its definition says of it.

    Attributes
    ----------
    document, instance
        The instance as a JSON value, and as the checker reads it.
    traffic
        Bytes from one task to another.
    used, places
        Routers that take tasks, and how many.
    """

    document: Json
    instance: Instance
    num_tasks: int
    traffic: Counter[tuple[int, int]]
    used: list[int]
    places: list[int]

    @property
    def machine(self) -> Json:
        return self.document["machine"]

    @property
    def num_routers(self) -> int:
        return routers_of(self.machine)

    @property
    def is_full(self) -> bool:
        return sum(self.places) == self.num_tasks

    @property
    def total(self) -> int:
        return sum(self.traffic.values())

    def mutual(self) -> list[list[int]]:
        """Return the bytes between tasks, both ways."""
        n = range(self.num_tasks)
        return [[self.traffic[i, k] + self.traffic[k, i] for k in n] for i in n]

    def apart(self) -> list[list[int]]:
        """Return the distances between the routers that take tasks."""
        return [[distance(self.machine, a, b) for b in self.used] for a in self.used]


def routers_of(machine: Json) -> int:
    if machine["kind"] == "matrix":
        return len(machine["distances"])
    return math.prod(machine["shape"])


def coordinates(shape: Sequence[int], number: int) -> list[int]:
    """Return the coordinates of a row-major number."""
    found = []
    for size in reversed(shape):
        number, x = divmod(number, size)
        found.append(x)
    return found[::-1]


def row_major(shape: Sequence[int], coords: Sequence[int]) -> int:
    number = 0
    for size, x in zip(shape, coords, strict=True):
        number = number * size + x
    return number


def distance(machine: Json, a: int, b: int) -> int:
    """Return the distance from one router to another."""
    if machine["kind"] == "matrix":
        return int(machine["distances"][a][b])
    hops = 0
    shape = machine["shape"]
    ends = zip(coordinates(shape, a), coordinates(shape, b), strict=True)
    for (x, y), size, wraps in zip(ends, shape, machine["wrap"], strict=True):
        step = abs(x - y)
        hops += min(step, size - step) if wraps else step
    return hops


def messages(application: Json) -> Iterator[tuple[int, int, int]]:
    """Yield sender, receiver and bytes of every message between two tasks."""
    if application["kind"] == "graph":
        listed = (application[key] for key in ("sources", "targets", "bytes"))
        yield from ((a, b, size) for a, b, size in zip(*listed, strict=True) if a != b)
        return
    shape = application["shape"]
    for task in range(math.prod(shape)):
        for offset in itertools.product((-1, 0, 1), repeat=len(shape)):
            there = _neighbour(application, coordinates(shape, task), offset)
            if there is not None and there != task:
                yield task, there, _sent(application, offset)


def _neighbour(application: Json, coords: list[int], offset: tuple[int, ...]) -> int | None:
    shape, found = application["shape"], []
    for x, step, size, wraps in zip(coords, offset, shape, application["periodic"], strict=True):
        if not wraps and not 0 <= x + step < size:
            return None
        found.append((x + step) % size)
    return row_major(shape, found)


def _sent(application: Json, offset: tuple[int, ...]) -> int:
    """Return the bytes that a task sends to its neighbour at an offset."""
    moves = [d for d, step in enumerate(offset) if step]
    if len(moves) == 1:
        return int(application["bytes"][moves[0]][offset[moves[0]] < 0])
    if application["stencil"] == "full" and moves:
        return int(application["diagonal_bytes"][len(moves) - 2])
    return 0


def least_hop_bytes(problem: Problem) -> int:
    """Return the least hop-bytes of all assignments of tasks to routers."""
    routers, n = len(problem.used), problem.num_tasks
    at = np.indices((routers,) * n).reshape(n, -1)
    fits = [(at == r).sum(axis=0) <= places for r, places in enumerate(problem.places)]
    at = at[:, np.all(fits, axis=0)]
    table = np.array(problem.apart(), dtype=np.int64)
    assert problem.total * max(1, int(table.max())) < 1 << 62
    cost = np.zeros(at.shape[1], dtype=np.int64)
    for (a, b), size in problem.traffic.items():
        cost += size * table[at[a], at[b]]
    return int(cost.min())


# Random problems

PALETTES = (
    (1,),
    (0, 1, 1, 2, 5),
    (1, 3, 12, 97),
    (6, 12, 18),
    (1, 1 << 20),
    ((1 << 31) - 1, 1 << 31, (1 << 31) + 1),
    ((1 << 49) - 1, 1 << 49),
    ((1 << 52) - 1, 1 << 52, (1 << 53) - 1, 1 << 53),
    (1, 1 << 53),
)


def _palette(rng: Random) -> tuple[int, ...]:
    return rng.choice(PALETTES[:4] if rng.random() < 0.7 else PALETTES)


def random_grid(rng: Random, most_tasks: int = 6, most_dims: int = 4) -> Json:
    """Return a grid, some dimensions of which close, with one or two tasks, with diagonals."""
    while True:
        shape = [rng.choice((1, 2, 2, 3, 4, 5, 6)) for _ in range(rng.randint(1, most_dims))]
        if 2 <= math.prod(shape) <= most_tasks:
            break
    palette, full = _palette(rng), rng.random() < 0.4
    return {
        "kind": "grid",
        "shape": shape,
        "periodic": [rng.random() < 0.5 for _ in shape],
        "bytes": [[rng.choice(palette), rng.choice(palette)] for _ in shape],
        "stencil": "full" if full else "nearest",
        "diagonal_bytes": [rng.choice(palette) for _ in shape[1:]] if full else [],
    }


def random_graph(rng: Random) -> Json:
    """Return messages, some repeated or to oneself: at random, or in a pattern."""
    n = rng.choice((1, 2, 3, 4, 4, 5, 6))
    every = list(itertools.product(range(n), repeat=2))
    patterns = [
        [rng.choice(every) for _ in range(rng.randint(0, 3 * n))],
        [(k, k + 1) for k in range(0, n - 1, 2)],
        [(k, (k + 1) % n) for k in range(n)],
        [(0, k) for k in range(n)],
        [(a, b) for a, b in every if a < b],
    ]
    pairs = rng.choice(patterns)
    if rng.random() < 0.2:
        pairs += rng.choices(every, k=2)
    return graph_of(rng, n, pairs)


def graph_of(rng: Random, num_tasks: int, pairs: list[tuple[int, int]]) -> Json:
    """Return messages of random bytes along pairs of tasks."""
    palette = _palette(rng)
    return {
        "kind": "graph",
        "num_tasks": num_tasks,
        "sources": [a for a, _ in pairs],
        "targets": [b for _, b in pairs],
        "bytes": [rng.choice(palette) for _ in pairs],
    }


def torus(shape: list[int], wrap: list[bool], nodes_per_router: int = 1) -> Json:
    return {
        "kind": "torus",
        "name": "machine",
        "shape": shape,
        "wrap": wrap,
        "bandwidth": [1] * len(shape),
        "nodes_per_router": nodes_per_router,
    }


def random_torus(rng: Random) -> Json:
    """Return a torus, a mesh or a mixture, with sizes of 1 and 2 too."""
    shape = [rng.choice((1, 2, 2, 3, 4, 5)) for _ in range(rng.randint(1, 3))]
    wrap = [rng.random() < 0.6 for _ in shape]
    return torus(shape, wrap, rng.choice((1, 1, 2, 3)))


def long_ring(rng: Random) -> Json:
    """Return a ring or line of up to the most layers that the checker takes, and one more."""
    size = rng.choice((6, 7, 12, 16, 17, 33, 64, 64, 64, 64, 64, 64, 128, 128))
    if rng.random() < 0.02:
        size = rng.choice((511, 512, 513))
    more = rng.choice(([], [], [1], [2]))
    return torus([size, *more], [rng.random() < 0.8 for _ in (size, *more)])


def random_matrix(rng: Random) -> Json:
    """Return distances, some of them 0 or the largest ones, often not symmetric."""
    n = rng.randint(1, 7)
    lengths = rng.choice(((1, 2, 3, 5), (1, 1, 2), (0, 1, 1, 2), (0, 1, 1 << 20), (1 << 20,)))
    table = [[0 if a == b else rng.choice(lengths) for b in range(n)] for a in range(n)]
    if rng.random() < 0.5:
        table = [[table[min(a, b)][max(a, b)] for b in range(n)] for a in range(n)]
    return {"kind": "matrix", "name": "machine", "distances": table}


def any_machine(rng: Random) -> Json:
    return rng.choice((random_torus, random_torus, random_matrix, long_ring))(rng)


def any_application(rng: Random) -> Json:
    return random_grid(rng) if rng.random() < 0.4 else random_graph(rng)


def random_problem(
    rng: Random,
    application: Callable[[Random], Json] = any_application,
    machine: Callable[[Random], Json] = any_machine,
) -> Problem:
    """Return a problem of few enough assignments to try all."""
    while True:
        document = _placed(rng, application(rng), machine(rng))
        problem = None if document is None else problem_of(document)
        if problem is not None:
            return problem


def _placed(rng: Random, application: Json, machine: Json) -> Json | None:
    """Return an instance on some nodes, None if there is none with few assignments."""
    n = application.get("num_tasks") or math.prod(application["shape"])
    each = machine.get("nodes_per_router", 1)
    per_node = rng.choice((1, 1, 1, 2, 3, n))
    routers = routers_of(machine)
    least = -(-n // (each * per_node))
    most = min(routers, next(r for r in range(65, 0, -1) if r**n <= MOST_ASSIGNMENTS))
    if least > most:
        return None
    count = rng.choice((least, least, most, rng.randint(least, most)))
    if rng.random() < (0.7 if routers > 60 else 0.4):
        used = [k * routers // count for k in range(count)]
    else:
        used = sorted(rng.sample(range(routers), count))
    nodes = [r * each + k for r in used for k in range(each) if not k or rng.random() < 0.8]
    if len(nodes) * per_node < n:
        nodes = [r * each + k for r in used for k in range(each)]
    return instance_document(machine, nodes, per_node, application)


def instance_document(machine: Json, nodes: list[int], per_node: int, application: Json) -> Json:
    return {
        "schema": "topoplace.mapping/1",
        "name": "case",
        "machine": machine,
        "nodes": ",".join(map(str, nodes)),
        "tasks_per_node": per_node,
        "application": application,
    }


def problem_of(document: Json) -> Problem | None:
    """Return an instance as a problem, None if the checker refuses to read it."""
    instance = _read(document)
    if instance is None:
        return None
    application, machine = document["application"], document["machine"]
    traffic = Counter[tuple[int, int]]()
    for a, b, size in messages(application):
        if size:
            traffic[a, b] += size
    each = machine.get("nodes_per_router", 1)
    usable = Counter(int(node) // each for node in document["nodes"].split(","))
    n = application.get("num_tasks") or math.prod(application["shape"])
    places = [count * document["tasks_per_node"] for _, count in sorted(usable.items())]
    return Problem(document, instance, n, traffic, sorted(usable), places)


def _read(document: Json) -> Instance | None:
    try:
        return read_instance(MappingInstance.model_validate_json(json.dumps(document)))
    except (RefusedError, InputError, OverflowError):
        return None


# What all kinds share


def by_value(model: type[M], value: Callable[[M], int]) -> Proven:
    """Return what the checker says that a JSON value proves, None if it is refused.

    Exceptions that would leave the checker are passed on.
    """

    def proven(document: Json) -> int | None:
        try:
            return value(model.model_validate_json(json.dumps(document)))
        except (RefusedError, InputError, OverflowError, ValidationError):
            return None

    return proven


def improved(
    rng: Random, document: Json, proven: Proven, *, steps: int, by: Sequence[int], below: str
) -> Json:
    """Change numbers below a key by some steps, and keep what proves more."""
    best = proven(document)
    places = [(below, *place) for place in integers(document[below])]
    for _ in range(steps if places else 0):
        place = rng.choice(places)
        changed = replaced(document, place, value_at(document, place) + rng.choice(by))
        found = proven(changed)
        if found is not None and (best is None or found >= best):
            best, document = found, changed
    return document


def spoilt(rng: Random, document: Json, share: float = 0.4) -> Json:
    """Return a certificate of which a share has one number that is extreme or slightly wrong."""
    places = list(integers(document))
    if not places or rng.random() >= share:
        return document
    place = rng.choice(places)
    value = value_at(document, place)
    return replaced(document, place, number(rng, value + 1, value - 1, -value, extremes=0.5))


def target_of(
    problem: Problem, proven: Proven, draw: Callable[[Random], Json], share: float = 0.4
) -> Target:
    """Return a problem with certificates, a share of which is spoilt."""
    return Target(
        least_hop_bytes(problem), False, lambda rng: spoilt(rng, draw(rng), share), proven
    )


# Total, and the embedding that it is tight for


def _total_target(problem: Problem) -> Target:
    proven = by_value(schema.TotalCertificate, lambda _: total_value(problem.instance))
    return target_of(problem, proven, lambda _: {"kind": "total"})


def total_target(rng: Random) -> Target:
    """Return a problem of any kind; mostly one that total certificates may hold for."""
    while True:
        problem = random_problem(rng)
        if max(problem.places) == 1 or rng.random() < 0.2:
            return _total_target(problem)


def embedding_target(rng: Random) -> Target:
    """Return a problem whose messages go between neighbours of some mapping."""
    while True:
        problem = random_problem(rng)
        places = [r for r, count in enumerate(problem.places) for _ in range(count)]
        at = rng.sample(places, problem.num_tasks)
        apart = problem.apart()
        near = [
            (a, b)
            for a, b in itertools.permutations(range(problem.num_tasks), 2)
            if apart[at[a]][at[b]] <= 1
        ]
        kept = rng.choices(near, k=rng.randint(1, 2 * len(near))) if near else []
        application = graph_of(rng, problem.num_tasks, kept)
        embedded = problem_of({**problem.document, "application": application})
        if embedded is not None and (max(problem.places) == 1 or rng.random() < 0.2):
            return _total_target(embedded)


# Star


def star_target(rng: Random) -> Target:
    problem = random_problem(rng)
    proven = by_value(schema.StarCertificate, lambda c: star_value(problem.instance, c))
    return target_of(problem, proven, lambda rng: _star(rng, problem, proven))


def _star(rng: Random, problem: Problem, proven: Proven) -> Json:
    """Return prices that were raised while that proved more, at random, or extreme ones."""
    sizes = [*problem.traffic.values(), 1]
    farthest = max(map(max, problem.apart()))
    prices = [0] * problem.num_routers
    way = rng.choice(("none", "random", "auction", "auction", "lifted"))
    if way == "random":
        prices = [rng.choice((0, 1, rng.choice(sizes) * rng.randint(0, 3))) for _ in prices]
    document: Json = {"kind": "star", "prices": [] if way == "none" else prices}
    if way in ("auction", "lifted"):
        steps = [sign * rng.choice(sizes) * rng.randint(1, farthest + 1) for sign in (1, 1, -1)]
        document = improved(rng, document, proven, steps=10, by=steps, below="prices")
    if way == "lifted":
        # the same price on every place changes nothing where all are taken
        lift = abs(number(rng, 1, 1 << 59, (1 << 61) - 1 - max(document["prices"]), extremes=0.3))
        places = dict(zip(problem.used, problem.places, strict=True))
        document["prices"] = [
            price + lift if k in places else abs(number(rng, price))
            for k, price in enumerate(document["prices"])
        ]
    return document


# Blocks


def blocks_target(rng: Random) -> Target:
    problem = random_problem(rng, random_grid, random_torus if rng.random() < 0.9 else long_ring)
    proven = by_value(schema.BlocksCertificate, lambda c: blocks_value(problem.instance, c))
    return target_of(problem, proven, lambda rng: _blocks(rng, problem))


def _blocks(rng: Random, problem: Problem) -> Json:
    """Return families whose multipliers count the hops of a dimension just once, or a bit more."""
    shape, wrap = problem.machine["shape"], problem.machine["wrap"]
    families = [_extents(rng, shape, wrap) for _ in range(rng.choice((1, 1, 2, 3)))]
    shares = [Fraction(rng.randint(0, 3) or 1, rng.choice((1, 2, 3))) for _ in families]
    used = [
        sum(s * _rate(f[d], shape[d], wrap[d]) for s, f in zip(shares, families, strict=True))
        for d in range(len(shape))
    ]
    most = max(used) or Fraction(1)
    if rng.random() < 0.15:
        most *= 1 - Fraction(1, rng.choice((3, 1 << 31, 1 << 62, 1 << 64)))
    return {
        "kind": "blocks",
        "families": [
            {
                "extents": extents,
                "slope": _rational(_slope(rng, problem), rng),
                "multiplier": _rational(share / most, rng),
            }
            for extents, share in zip(families, shares, strict=True)
        ],
    }


def _extents(rng: Random, shape: list[int], wrap: list[bool]) -> list[int]:
    """Return a block: legal ones, or one that is just beyond."""
    if rng.random() < 0.3:
        return [1] * len(shape)
    found = [
        rng.choice([*range(1, n + 1), n // 2 or 1, n, *([0] if n > 1 and not w else [])])
        for n, w in zip(shape, wrap, strict=True)
    ]
    if rng.random() < 0.03:
        d = rng.randrange(len(shape))
        found[d] = rng.choice((0, shape[d] + 1, 1 << 21))
    return found


def _rate(extent: int, size: int, wraps: bool) -> Fraction:
    """Return in which share of the patterns a plane of a dimension is."""
    if extent >= size:
        return Fraction(0)
    if wraps:
        return Fraction(-(-size // (extent or 1)), size)
    return Fraction(1, extent or max(1, size - 1))


def _slope(rng: Random, problem: Problem) -> Fraction:
    """Return what a task may be worth inside a block, or an extreme of that."""
    if rng.random() < 0.2:
        # a price that all tasks pay costs nothing where every place is taken
        return Fraction(number(rng, 0, -1, extremes=0.9), abs(number(rng, 1, 7)) or 1)
    per_task = Fraction(problem.total, problem.num_tasks)
    return per_task * Fraction(rng.randint(0, 8), rng.choice((2, 3, 4, 6)))


def _rational(value: Fraction, rng: Random) -> Json:
    """Return an exact rational, not always in its lowest terms."""
    times = rng.choice((1, 1, 1, 6, (1 << 31) + 1, 1 << 62))
    return {"numerator": value.numerator * times, "denominator": value.denominator * times}


# Cuts


def cuts_target(rng: Random) -> Target:
    machine = random_torus if rng.random() < 0.4 else long_ring
    application = random_graph if rng.random() < 0.7 else random_grid
    problem = random_problem(rng, application, machine)
    proven = by_value(schema.CutsCertificate, lambda c: cuts_value(problem.instance, c))
    return target_of(problem, proven, lambda rng: _cuts(rng, problem), 0.2)


def _cuts(rng: Random, problem: Problem) -> Json:
    """Return a certificate whose matrices are just semidefinite and whose gains are just right.

    Of some, either the matrices or the gains are not.
    """
    right = rng.choice(("both", "both", "gains", "matrices", "matrices"))
    # a ring may not be taken for an open dimension, yet an open one for a ring
    wrap = [here != (rng.random() < 0.1) for here in problem.machine["wrap"]]
    mutual = np.array(problem.mutual(), dtype=np.int64)
    degrees = mutual.sum(axis=1)
    most = (LIMIT - 1) // max(1, int(degrees.max()))
    scale = rng.choice((1, 2, 1000, 1 << rng.randrange(52), most // 8, most // 64, most, most + 1))
    scale = max(1, min(scale, most + 1))
    laplacian = scale * (np.diag(degrees) - mutual)
    factors = _factors(rng, laplacian)
    rows = np.array(factors, dtype=np.int64).reshape(-1, problem.num_tasks)
    common = laplacian + rows.T @ rows
    lines = [_line(rng, common, right != "gains") for _ in range(rng.choice((1, 1, 2, 3)))]
    gains = []
    if factors:
        kernels = _kernels(problem, wrap)
        gains = [_gain(rng, kernel, right != "matrices") for kernel in kernels]
    return {
        "kind": "cuts",
        "wrap": wrap,
        "scale": scale,
        "lines": lines,
        "factors": factors,
        "gains": gains,
    }


def _factors(rng: Random, laplacian: np.ndarray) -> list[list[int]]:
    """Return vectors that add up to 0: signs, differences of two tasks, or random ones.

    Or those that the matrix of bytes has least for; or some that do not add up to 0.
    """
    n = len(laplacian)
    size = rng.choice((1, 2, (1 << 26) - 1, 1 << rng.randrange(27), 1 << rng.randint(8, 24)))
    signs = [list(v) for v in itertools.product((1, -1), repeat=n) if v[0] == 1 and not sum(v)]
    differences = [
        [int(k == a) - int(k == b) for k in range(n)]
        for a, b in itertools.combinations(range(n), 2)
    ]
    way = rng.choice(("none", *["signs"] * 3, *["differences"] * 2, *["least"] * 3, "some", "any"))
    if way == "none":
        return []
    if way == "least":
        return _raised(rng, laplacian)
    found = signs if way == "signs" else differences
    if way == "some":
        found = rng.choices(signs + differences, k=rng.randint(1, 4)) if n > 1 else []
        if rng.random() < 0.3:
            found.append([1] * n)
    if way == "any":
        drawn = [[rng.randint(-size, size) for _ in range(n)] for _ in range(rng.randint(1, 4))]
        return [[*v[1:], -sum(v[1:])] for v in drawn]
    return [[size * x for x in v] for v in found]


def _raised(rng: Random, laplacian: np.ndarray) -> list[list[int]]:
    """Return the vectors that raise the least eigenvalues of a matrix to a larger one."""
    values, vectors = np.linalg.eigh(laplacian.astype(np.float64))
    level = float(rng.choice(values.tolist()))
    found = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value < level and abs(vector.sum()) < 1e-6:
            rounded = np.rint(math.sqrt(level - value) * vector).astype(np.int64)
            rounded[0] -= rounded.sum()
            found.append(rounded.tolist())
    return found


def _line(rng: Random, common: np.ndarray, is_right: bool) -> Json:
    """Return a line whose matrix has its least eigenvalue just above 0, or not quite."""
    n = len(common)
    typical = max(1, int(np.trace(common)) // n)
    squares = max(1, -int(common[0, -1]))
    level = max(1, int(np.linalg.eigvalsh(common.astype(np.float64))[min(1, n - 1)]) // n)
    others = (0, typical // n, typical, rng.randrange(typical + 1), LIMIT - 1)
    usual = (squares, squares, level, level, level // 2, level // 4)
    balance = rng.choice(usual if rng.random() < 0.8 else others)
    uneven = typical if rng.random() < 0.15 else 0
    added = np.array([rng.randint(-uneven, uneven) for _ in range(n)], dtype=np.int64)
    added -= np.diag(common) // rng.choice((1, 2, 4)) * (rng.random() < 0.3)
    matrix = common.astype(np.float64) + np.diag(added) + balance
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    left = np.maximum(np.diag(matrix) - lowest, 1)
    spent = n * math.sqrt(left.max()) + float(np.sqrt(left).sum()) + n * n
    margin = math.ceil(rng.choice((1, 1.5, 2, 3) if is_right else (-1, 0, 0.6, 0.8)) * spent) + 2
    prices = [int(x) - math.floor(lowest) + margin for x in added]
    return {"prices": prices, "balance": balance}


def _kernels(problem: Problem, wrap: list[bool]) -> list[np.ndarray]:
    """Return the weighted sums of the cuts' outer products between used layers."""
    shape, found = problem.machine["shape"], []
    for d, (size, wraps) in enumerate(zip(shape, wrap, strict=True)):
        layers = np.array(sorted({coordinates(shape, r)[d] for r in problem.used}))
        if wraps:
            cuts = [(1, (layers - k) % size < size // 2) for k in range(size)]
        else:
            cuts = [(2, layers < k) for k in range(1, size)]
        kernel = np.zeros((len(layers), len(layers)))
        for weight, side in cuts:
            sign = np.where(side, 1, -1)
            kernel += weight * np.outer(sign, sign) * (not side.all() and side.any())
        found.append(kernel)
    return found


def _gain(rng: Random, kernel: np.ndarray, is_right: bool) -> int:
    """Return a gain: just right, the least that keeps the diagonal above 0, or an extreme."""
    n = len(kernel)
    centre = np.eye(n) - 1 / n
    centred = centre @ kernel @ centre
    right = math.ceil(GAIN_UNIT * float(np.linalg.eigvalsh(centred)[-1]) * 1.00001) + 1
    positive = math.floor(GAIN_UNIT * float(centred.diagonal().max())) + 1
    edge = LIMIT // n**2
    if is_right or rng.random() < 0.1:
        return max(0, right)
    if rng.random() < 0.6:
        return positive
    others = (0, 1, right - 3, right // 2, positive, 2 * right, edge - 1, edge)
    return max(0, rng.choice(others))


# Distance classes


def distance_classes_target(rng: Random) -> Target:
    """Return a problem that a host of few places holds."""
    while True:
        machine = random_torus if rng.random() < 0.7 else random_matrix
        problem = random_problem(rng, machine=machine)
        if problem.num_routers * max(problem.places) <= 16:
            break
    proven = by_value(
        schema.DistanceClassesCertificate, lambda c: distance_classes_value(problem.instance, c)
    )
    return target_of(problem, proven, lambda rng: _distance_classes(rng, problem, proven))


def _distance_classes(rng: Random, problem: Problem, proven: Proven) -> Json:
    shape, routers = _host(rng, problem)
    classes = _classes(rng, shape)
    room = max(problem.places)
    places, num = math.prod(shape) * room, max(classes) + 1
    size = rng.choice((1, 1, 4, 1 << 8, 1 << 16))
    spaces = [_space(rng, shape, classes, room, size) for _ in range(rng.choice((0, 1, 1, 2)))]
    factors = [_vectors(rng, problem.num_tasks, places) for _ in spaces]
    even = 2 * rng.choice((0, 1, 1, size))
    weight = max([1, *(abs(x) for space in spaces for x in space)])
    scale = rng.choice((1, 2, weight * weight * places, 8 * weight * weight * places))
    if rng.random() < 0.05:
        scale = max(1, abs(rng.choice(EXTREMES)))
    document = {
        "kind": "distance-classes",
        "shape": shape,
        "routers": routers,
        "classes": classes,
        "scale": scale,
        "filters": spaces,
        "factors": factors,
        "rows": _rows(rng, problem, (shape, routers, classes), scale, places),
    }
    if spaces and even:
        # the vector of ones costs nothing with rows that suit it if a filter adds up to 0
        factors[0].append([even] * places)
        squared = _squares(rng, shape, classes, room, spaces[0])
        for row, square in zip(document["rows"], squared, strict=True):
            row[:] = [x - square * even * even // 2 for x in row]
    sizes = [scale * x for x in {1, *problem.traffic.values()}]
    steps = [sign * max(1, x // part) for x in sizes for sign in (1, -1) for part in (1, 2, 4)]
    if rng.random() < 0.5:
        document = improved(rng, document, proven, steps=8, by=steps, below="rows")
    if rng.random() < 0.2 and num > 1:
        # a task is of just one class to every other one: the same for all classes changes nothing
        lift = rng.choice(EXTREMES)
        document["rows"] = [[x + lift for x in row] for row in document["rows"]]
    return document


def _host(rng: Random, problem: Problem) -> tuple[list[int], list[int]]:
    """Return a torus and the router of it that every router of the machine is."""
    num, machine = problem.num_routers, problem.machine
    shape = [num]
    if machine["kind"] == "torus" and rng.random() < 0.8:
        shape = list(machine["shape"])
        if rng.random() < 0.4:
            ends = zip(shape, machine["wrap"], strict=True)
            shape = [n if wraps else max(1, 2 * n - 2) for n, wraps in ends]
        if math.prod(shape) <= 16:
            firsts = (coordinates(machine["shape"], r) for r in range(num))
            return shape, [row_major(shape, coords) for coords in firsts]
    shape = rng.choice([[num], [2, -(-num // 2)], [num + 1], [-(-num // 4), 2, 2]])
    return shape, rng.sample(range(math.prod(shape)), num)


def _classes(rng: Random, shape: list[int]) -> list[int]:
    """Return symmetric classes of differences: orbits of some symmetries, or unions of them."""
    differences = [coordinates(shape, x) for x in range(math.prod(shape))]
    opposite = [[-x % n for x, n in zip(c, shape, strict=True)] for c in differences]
    folded = [tuple(min(x, n - x) for x, n in zip(c, shape, strict=True)) for c in differences]
    merged = {c: rng.randint(1, 3) * any(c) for c in folded}
    ways: list[list[Any]] = [
        folded,
        [min(tuple(c), tuple(o)) for c, o in zip(differences, opposite, strict=True)],
        [tuple(sorted(c)) for c in folded],
        [sum(c) for c in folded],
        [any(c) for c in folded],
        [sum(x > 0 for x in c) for c in folded],
        [merged[c] for c in folded],
    ]
    keys = rng.choice(ways)
    if rng.random() < 0.08:
        keys = [tuple(c) for c in differences]
    rest = sorted(set(keys) - {keys[0]})
    rng.shuffle(rest)
    numbers = {key: k for k, key in enumerate([keys[0], *rest])}
    found = [numbers[key] for key in keys]
    if rng.random() < 0.1:
        x = rng.randrange(len(found))
        found[x] = found[-x % len(found)] = rng.choice(found)
        used = sorted(set(found))
        found = [used.index(d) for d in found]
    return found


def _space(rng: Random, shape: list[int], classes: list[int], room: int, size: int) -> list[int]:
    """Return a filter: waves over the host, rounded; places of a router; or random numbers."""
    num = max(classes) + 1
    way = rng.choice(("wave", "wave", "wave", "places", "ones", "random", "even", "even"))
    if way == "places":
        return [room, -1, *[0] * (num - 1)]
    if way == "ones":
        return [rng.randint(-1, 1), *[1] * num]
    if way == "random":
        return [number(rng, -1, 0, 1, size) for _ in range(num + 1)]
    if way == "even":
        values = [rng.randint(-size, size) for _ in range(num)]
        return [-room * sum(values[d] for d in classes), *values]
    turns, phase = [rng.randrange(n) for n in shape], rng.choice((0, 0, 0, math.pi / 2))
    sums, counts = [0.0] * num, [0] * num
    for x, d in enumerate(classes):
        steps = zip(coordinates(shape, x), turns, shape, strict=True)
        sums[d] += 2 * size * math.cos(2 * math.pi * sum(c * t / n for c, t, n in steps) + phase)
        counts[d] += 1
    return [0, *(round(s / c) for s, c in zip(sums, counts, strict=True))]


def _squares(
    rng: Random, shape: list[int], classes: list[int], room: int, values: list[int]
) -> list[int]:
    """Return the square of a filter per class, at one of its differences."""
    found = []
    for d in range(max(classes) + 1):
        y = rng.choice([x for x, other in enumerate(classes) if other == d])
        products = 0
        for x, first in enumerate(classes):
            ends = zip(coordinates(shape, y), coordinates(shape, x), shape, strict=True)
            second = classes[row_major(shape, [(b - a) % n for b, a, n in ends])]
            products += values[1 + first] * values[1 + second]
        found.append(2 * values[0] * values[1 + d] + room * products)
    return found


def _vectors(rng: Random, tasks: int, places: int) -> list[list[int]]:
    """Return vectors that differ from 0 for the tasks, or for any places."""
    size = rng.choice((1, 1, 3, 1 << 20))
    found = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        used = tasks if rng.random() < 0.8 else places
        vector = [number(rng, -size, 0, size, extremes=0.01) for _ in range(used)]
        if used > 1 and rng.random() < 0.5:
            vector[-1] = -sum(vector[:-1])
        found.append([*vector, *[0] * (places - used)])
    return found


def _rows(
    rng: Random,
    problem: Problem,
    host: tuple[list[int], list[int], list[int]],
    scale: int,
    places: int,
) -> list[list[int]]:
    """Return no multipliers, those that suit tasks which send everyone the same, or random ones."""
    num = max(host[2]) + 1
    way = rng.choice(("none", "even", "even", "random"))
    if way == "none":
        return [[0] * places for _ in range(num)]
    if way == "random":
        size = rng.choice((1, scale, 1 << 62))
        return [[rng.randint(-size, size) for _ in range(places)] for _ in range(num)]
    mutual = problem.mutual()
    sizes = [sum(row) // max(1, problem.num_tasks - 1) for row in mutual]
    sizes += [rng.choice((0, sizes[0]))] * (places - problem.num_tasks)
    nearest = _nearest_of_classes(problem, *host)
    return [[scale * h * size // 2 for size in sizes] for h in nearest]


def _nearest_of_classes(
    problem: Problem, shape: list[int], routers: list[int], classes: list[int]
) -> list[int]:
    """Return the least distance of used routers per class of their host routers."""
    found: dict[int, int] = {}
    for a, b in itertools.product(problem.used, repeat=2):
        ends = coordinates(shape, routers[a]), coordinates(shape, routers[b])
        ahead = [(y - x) % n for x, y, n in zip(*ends, shape, strict=True)]
        d = classes[row_major(shape, ahead)]
        hops = distance(problem.machine, a, b)
        found[d] = min(found.get(d, hops), hops)
    return [found.get(d, 0) for d in range(max(classes) + 1)]


# Flows in the window of a layout

SOURCE, SINK = -1, -2
MOST_SELECTIONS = 20_000

Arc = tuple[int, int]
Flow = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Pencils:
    """A layout of a grid in a window of a machine, as its definition says.

    Attributes
    ----------
    machine, grid, layout
        JSON values.
    cells
        The cell of every task.
    extents
        Cells per dimension.
    usable
        Positions of every pencil at which all nodes of the router may be used.
    """

    machine: Json
    grid: Json
    layout: Json
    cells: list[tuple[int, ...]]
    extents: list[int]
    nodes: list[int]
    usable: dict[tuple[int, ...], list[int]]

    @property
    def pencil(self) -> int:
        return int(self.layout["pencil"])

    @property
    def levels(self) -> int:
        return self.extents[self.pencil]

    @property
    def slack(self) -> int:
        return int(self.layout["depth"]) - self.levels

    def across(self, cell: Sequence[int]) -> tuple[int, ...]:
        """Return the pencil of a cell."""
        return tuple(x for d, x in enumerate(cell) if d != self.pencil)

    def router(self, pencil: Sequence[int], position: int) -> int:
        """Return the router at a position of a pencil."""
        at = [*pencil[: self.pencil], position, *pencil[self.pencil :]]
        shape = self.machine["shape"]
        turned = zip(at, self.layout["origin"], shape, strict=True)
        return row_major(shape, [(x + first) % n for x, first, n in turned])

    def traffic(self) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return the bytes between two cells, both ways."""
        found = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
        for a, b, size in messages(self.grid):
            low, high = sorted((self.cells[a], self.cells[b]), key=lambda c: c[self.pencil])
            if low != high:
                found[low, high] += size
        return found


def flow_target(rng: Random) -> Target:
    """Return the window of a layout and what flows prove of it."""
    while True:
        pencils = _pencils(rng)
        if pencils is None:
            continue
        read = _window(pencils)
        if read is not None:
            break
    instance, window = read
    # pairs that may be nearer either way round a ring are to be refused, whatever they count as
    network = _network(pencils, rng.choice((pencils.slack, pencils.slack, 0)))
    proven = by_value(schema.FlowCertificate, lambda flow: window_value(instance, window, flow))

    def draw(rng: Random) -> Json:
        return spoilt(rng, _flow(rng, *network))

    return Target(_least_of_selections(pencils), False, draw, proven)


def _pencils(rng: Random) -> Pencils | None:
    """Return a layout with few selections, None if the one that was drawn has too many or none."""
    layout, sizes = _drawn_layout(rng)
    application = random_grid(rng, 1 << 20)
    palette = [size for pair in application["bytes"] for size in pair]
    dims = len(sizes)
    full = rng.random() < 0.3
    grid = {
        "kind": "grid",
        "shape": sizes,
        "periodic": [rng.random() < 0.5 for _ in sizes],
        "bytes": [rng.choices(palette, k=2) for _ in sizes],
        "stencil": "full" if full else "nearest",
        "diagonal_bytes": rng.choices(palette, k=dims - 1) if full else [],
    }
    cells, extents = _cells(layout, sizes)
    shape = [n + rng.choice((0, 0, 1, 2)) for n in extents]
    q = rng.randrange(len(shape))
    shape[q] += rng.choice((0, 1, 1, 2, 4))
    machine = torus(shape, [rng.random() < 0.7 for _ in shape], rng.choice((1, 1, 2)))
    depth = rng.randint(extents[q], min(shape[q], extents[q] + 3))
    taken = [depth if d == q else n for d, n in enumerate(extents)]
    layout |= {"pencil": q, "depth": depth}
    layout["origin"] = [
        rng.randrange(n if wraps else n - k + 1)
        for n, k, wraps in zip(shape, taken, machine["wrap"], strict=True)
    ]
    each, holes = machine["nodes_per_router"], rng.choice((0, 0.1, 0.3))
    nodes = [x for x in range(math.prod(shape) * each) if rng.random() >= holes]
    found = Pencils(machine, grid, layout, cells, extents, nodes, {})
    free, selections = set(nodes), 1
    for pencil in itertools.product(*map(range, found.across(extents))):
        found.usable[pencil] = [
            t
            for t in range(depth)
            if all(found.router(pencil, t) * each + k in free for k in range(each))
        ]
        selections *= math.comb(len(found.usable[pencil]), extents[q])
    return found if 0 < selections <= MOST_SELECTIONS else None


def _drawn_layout(rng: Random) -> tuple[Json, list[int]]:
    """Return a layout without its window, and the sizes of the grid's dimensions."""
    while True:
        dims = rng.randint(1, 3)
        stack = rng.randrange(dims) if dims > 1 and rng.random() < 0.3 else None
        planes = [d for d in range(dims) if d != stack and rng.random() < 0.85]
        if stack is not None:
            planes = [d for d in range(dims) if d != stack]
        virtual = len(planes) + (rng.random() < 0.25)
        sizes = [rng.choice((1, 2, 2, 3, 4, 6)) for _ in range(virtual)]
        if planes and math.prod(sizes) <= 48:
            break
    order = rng.sample(range(virtual), virtual)
    axes, logical, partitions, folds = [-1] * dims, [1] * dims, [1] * dims, [0] * dims
    for d, axis in zip(planes, order, strict=False):
        axes[d], partitions[d] = axis, rng.randint(1, 3)
        folds[d] = rng.randint(0, 2) if stack is not None else 0
        turns = partitions[d] * (1 + folds[d])
        logical[d] = -(-sizes[axis] // turns)
    tiles = math.prod(1 + fold for fold in folds)
    if stack is not None:
        logical[stack] = tiles
    return {
        "axes": axes,
        "logical": logical,
        "partitions": partitions,
        "whole": order[-1] if virtual > len(planes) else None,
        "folds": folds,
        "layer_order": rng.sample(range(tiles), tiles) if tiles > 1 else [],
        "stagger": stack is not None and rng.random() < 0.3,
    }, sizes


def _cells(layout: Json, sizes: list[int]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the cell of every task, and the extents of all cells."""
    found, extents = [], list(layout["logical"])
    planes = [d for d, axis in enumerate(layout["axes"]) if axis >= 0]
    for task in range(math.prod(sizes)):
        coords, tile = coordinates(sizes, task), 0
        cell = [0] * len(extents)
        for d in planes:
            size = layout["logical"][d]
            turn, rest = divmod(coords[layout["axes"][d]] // layout["partitions"][d], size)
            cell[d] = size - 1 - rest if turn % 2 else rest
            tile = tile * (1 + layout["folds"][d]) + turn
        layer = layout["layer_order"][tile] if layout["layer_order"] else tile
        for d, axis in enumerate(layout["axes"]):
            if axis < 0 and layout["logical"][d] > 1:
                cell[d] = layer
        cell[planes[0]] += layer % 2 if layout["stagger"] else 0
        found.append(tuple(cell))
    extents[planes[0]] += layout["stagger"]
    return found, extents


def _window(pencils: Pencils) -> tuple[Instance, Window] | None:
    """Return the window as the checker reads it, with a mapping that is the layout."""
    each = pencils.machine["nodes_per_router"]
    per_node = -(-max(Counter(pencils.cells).values()) // each)
    document = instance_document(pencils.machine, pencils.nodes, per_node, pencils.grid)
    instance = _read(document)
    if instance is None:
        return None
    before, nodes = Counter[tuple[int, ...]](), []
    for cell in pencils.cells:
        pencil = pencils.across(cell)
        router = pencils.router(pencil, pencils.usable[pencil][cell[pencils.pencil]])
        nodes.append(router * each + before[cell] // per_node)
        before[cell] += 1
    layout = schema.LayoutModel.model_validate_json(json.dumps(pencils.layout))
    return instance, check_layout(instance, np.array(nodes, dtype=np.int64), layout)


def _least_of_selections(pencils: Pencils) -> int:
    """Return the least hop-bytes of all ways to select positions for the levels of every pencil."""
    choices = [itertools.combinations(free, pencils.levels) for free in pencils.usable.values()]
    at = np.array([list(itertools.chain(*one)) for one in itertools.product(*choices)])
    first = {pencil: k * pencils.levels for k, pencil in enumerate(pencils.usable)}
    q, size = pencils.pencil, pencils.machine["shape"][pencils.pencil]
    least = np.zeros(len(at), dtype=np.int64)
    for (low, high), amount in pencils.traffic().items():
        ends = [at[:, first[pencils.across(cell)] + cell[q]] for cell in (low, high)]
        steps = np.abs(ends[0] - ends[1])
        if pencils.machine["wrap"][q]:
            steps = np.minimum(steps, size - steps)
        least += amount * (steps + _beside(pencils, low, high))
    return int(least.min())


def _beside(pencils: Pencils, low: tuple[int, ...], high: tuple[int, ...]) -> int:
    """Return the distance of two cells in the dimensions other than the pencils'."""
    ends = (pencils.router(pencils.across(cell), 0) for cell in (low, high))
    return distance(pencils.machine, *ends)


def _network(pencils: Pencils, slack: int) -> tuple[Counter[Arc], set[Arc], int]:
    """Return the capacities of the threshold network, its endless arcs and its vertices.

    Pairs are far if they are so with that slack.
    """
    levels, depth = pencils.levels, pencils.layout["depth"]
    first = {pencil: k * levels for k, pencil in enumerate(pencils.usable)}

    def vertex(cell: int, t: int) -> int:
        return SOURCE if t == 0 else SINK if t == depth else cell * (depth - 1) + t - 1

    endless = set()
    for pencil, free in pencils.usable.items():
        for k, t in itertools.product(range(levels), range(depth)):
            cell = first[pencil] + k
            if 0 < t < depth - 1:
                endless.add((vertex(cell, t + 1), vertex(cell, t)))
            if t not in free:
                endless.add((vertex(cell, t), vertex(cell, t + 1)))
            if k < levels - 1:
                endless.add((vertex(cell, t), vertex(cell + 1, t + 1)))
    q, capacity = pencils.pencil, Counter[Arc]()
    size, wraps = pencils.machine["shape"][q], pencils.machine["wrap"][q]
    for (low, high), amount in pencils.traffic().items():
        far = wraps and 2 * (high[q] - low[q] - slack) >= size
        for t in range(1, depth):
            a, b = (vertex(first[pencils.across(cell)] + cell[q], t) for cell in (low, high))
            for arc in ((SOURCE, b), (a, SINK)) if far else ((a, b), (b, a)):
                capacity[arc] += amount
    return capacity, endless, len(first) * levels * (depth - 1)


def _flow(rng: Random, capacity: Counter[Arc], endless: set[Arc], count: int) -> Json:
    """Return a flow as large as can be, or a part of it, with circles and split arcs."""
    paths = rng.choice((1 << 20, 1 << 20, 1 << 20, 2, 0))
    flow = [(a, b, x) for (a, b), x in _largest_flow(capacity, endless, paths).items()]
    if flow and rng.random() < 0.3:
        a, b, x = flow.pop(rng.randrange(len(flow)))
        flow += [(a, b, x // 2), (a, b, x - x // 2)]
    circles = sorted((a, b) for a, b in endless if (b, a) in endless)
    if circles and rng.random() < 0.5:
        a, b = rng.choice(circles)
        flow += [(a, b, x), (b, a, x)] * 2 if (x := abs(number(rng, 1, 1 << 62))) else []
    if rng.random() < 0.2:
        ends = (SOURCE, SINK, rng.randrange(-2, count + 1), count - 1)
        flow.append((rng.choice(ends), rng.choice(ends), abs(number(rng, 0, 0, 1))))
    rng.shuffle(flow)
    keys = ("tails", "heads", "flows")
    return {key: [arc[k] for arc in flow] for k, key in enumerate(keys)}


def _largest_flow(capacity: Counter[Arc], endless: set[Arc], paths: int) -> Counter[Arc]:
    """Return a flow of at most so many shortest paths."""
    ends: dict[int, set[int]] = {}
    for a, b in {*capacity, *endless}:
        ends.setdefault(a, set()).add(b)
        ends.setdefault(b, set()).add(a)
    flow = Counter[Arc]()

    def left(a: int, b: int) -> int:
        return flow[b, a] + (1 << 80 if (a, b) in endless else capacity[a, b] - flow[a, b])

    for _ in range(paths):
        before = {SOURCE: SOURCE}
        queue = [SOURCE]
        for a in queue:
            for b in sorted(ends.get(a, ())):
                if b not in before and left(a, b):
                    before[b] = a
                    queue.append(b)
        if SINK not in before:
            break
        path, b = [], SINK
        while b != SOURCE:
            path.append((before[b], b))
            b = before[b]
        amount = min(left(*arc) for arc in path)
        for a, b in path:
            back = min(amount, flow[b, a])
            flow[b, a] -= back
            flow[a, b] += amount - back
    return +flow


KINDS: dict[str, Callable[[Random], Target]] = {
    "total": total_target,
    "blocks": blocks_target,
    "star": star_target,
    "distance-classes": distance_classes_target,
    "cuts": cuts_target,
    "flow": flow_target,
    "embedding": embedding_target,
}


def targets(kind: str, seed: int) -> Iterator[Target]:
    """Yield problems for one kind of certificate without end, few of which cost nothing."""
    rng = Random(f"targets-{kind}-{seed}")
    while True:
        target = KINDS[kind](rng)
        if target.truth or rng.random() < 0.02:
            yield target
