"""Local search on mappings by exchanges of tasks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.errors import InputError
from topoplace.kernels import kernel
from topoplace.machine import LevelMachine, MatrixMachine, Network, Torus
from topoplace.mapping.mapped import Keeper
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

# ---- The arrays a compiled search works on: a machine, a graph and a mapping ---------------------

Index = NDArray[np.int32]
"""Small enough for all numbers of routers, tasks and places; half the memory to fetch."""

NUM_CLOSEST = 6
"""Routers that count as next to one another on a machine without links."""

MAX_PLACES = 1 << 25
"""About how many places are kept; only routers with far more places than needed lose some."""


class Machine(NamedTuple):
    """Distances as sums over tables: ``sum over d of table[left[a, d] + right[b, d]]``.

    A torus has one small table per dimension, indexed by the difference of coordinates, and so has
    a tree or hierarchy per level, indexed by the difference of the numbers of domains; a
    machine given by its distances has one dimension and the matrix as its table. The first
    ``num_near[r]`` entries of ``near[r]`` are next to r (itself if it has no neighbour); `usable`
    are the routers with room for tasks.
    """

    left: Index
    right: Index
    table: Index
    near: Index
    num_near: Index
    usable: Index


class State(NamedTuple):
    """A mapping in the form that the kernels change.

    Router r has `room[r]` places from `base[r]` on, the first `load[r]` of them taken by the
    tasks in `occupant`; `router` and `place` are the inverse, by task.
    """

    router: Index
    place: Index
    occupant: Index
    base: Index
    load: Index
    room: Index

    def copy(self) -> State:
        """Return a copy that changes on its own."""
        return State(*(array.copy() for array in self))


def machine_arrays(machine: Network, capacity: IntArray) -> Machine:
    """Return the arrays of a machine; `InputError` if its distances are not symmetric."""
    if isinstance(machine, Torus):
        left, right, table = _torus_distances(machine)
        near, num_near = torus_neighbours(machine)
    elif isinstance(machine, LevelMachine):
        left, right, table = _level_distances(machine)
        near, num_near = _beside(machine, capacity)
    else:
        left, right, table = _matrix_distances(machine)
        near, num_near = _closest(machine)
    usable = np.flatnonzero(capacity)
    return Machine(
        *(part.astype(np.int32) for part in (left, right, table, near, num_near, usable))
    )


def state_arrays(problem: MappingProblem, routers: IntArray) -> State:
    """Return a mapping's arrays, given the router of every task."""
    num_routers = problem.machine.num_routers
    load = np.bincount(routers, minlength=num_routers)
    room = np.minimum(problem.capacity, problem.num_tasks)
    if int(room.sum()) > MAX_PLACES:
        room = np.minimum(room, np.maximum(load, MAX_PLACES // num_routers))
    base = np.cumsum(room) - room
    order = np.argsort(routers, kind="stable")
    at = routers[order]
    place = np.empty(len(routers), dtype=np.int64)
    place[order] = base[at] + np.arange(len(at)) - (np.cumsum(load) - load)[at]
    occupant = np.full(int(room.sum()), -1, dtype=np.int64)
    occupant[place] = np.arange(len(routers))
    return State(*(part.astype(np.int32) for part in (routers, place, occupant, base, load, room)))


def _torus_distances(torus: Torus) -> tuple[IntArray, IntArray, IntArray]:
    """Return left, right and one table per dimension, indexed by coordinate differences."""
    tables, offset = [], 0
    left = torus.coordinates.copy()
    for d, (n, wraps) in enumerate(zip(torus.shape, torus.wrap, strict=True)):
        step = np.abs(np.arange(1 - n, n))
        tables.append(np.minimum(step, n - step) if wraps else step)
        left[:, d] += offset + n - 1
        offset += len(step)
    return left, -torus.coordinates, np.concatenate(tables)


def torus_neighbours(torus: Torus) -> tuple[IntArray, IntArray]:
    """Return every router's neighbours, packed to the left before itself, and their number."""
    routers = np.arange(torus.num_routers)
    near = np.repeat(routers[:, None], 2 * torus.num_dims, axis=1)
    num_near = np.zeros(torus.num_routers, dtype=np.int64)
    for d, n in enumerate(torus.shape):
        for step in (1, -1):
            beside = np.roll(routers.reshape(torus.shape), -step, axis=d).ravel()
            at = torus.coordinates[:, d] + step
            there = np.flatnonzero((beside != routers) & (torus.wrap[d] | (at % n == at)))
            near[there, num_near[there]] = beside[there]
            num_near[there] += 1
    return near, np.maximum(num_near, 1)


def _matrix_distances(machine: MatrixMachine) -> tuple[IntArray, IntArray, IntArray]:
    """Return left, right and the matrix itself as the only table."""
    matrix = machine.distances
    if (matrix != matrix.T).any():
        raise InputError("symmetric distances for a local search", field="distances")
    rows = np.arange(len(matrix))[:, None]
    return rows * len(matrix), rows, matrix.ravel()


def _level_distances(machine: LevelMachine) -> tuple[IntArray, IntArray, IntArray]:
    """Return left, right and one table per level with a cost, which is 0 within a domain."""
    rows, tables, left, offset = machine.domain_of[:-1], [], [], 0
    paid = np.flatnonzero(machine.steps) if machine.steps.any() else np.zeros(1, dtype=np.int64)
    for level in paid.tolist():
        num = int(rows[level].max()) + 1
        table = np.full(2 * num - 1, machine.steps[level])
        table[num - 1] = 0
        tables.append(table)
        left.append(rows[level] + offset + num - 1)
        offset += len(table)
    return np.stack(left, axis=1), -rows[paid].T, np.concatenate(tables)


NUM_BESIDE = 12
"""Leaves of its domain that a leaf is next to at most."""


def _beside(machine: LevelMachine, capacity: IntArray) -> tuple[IntArray, IntArray]:
    """Return for every leaf the next usable ones in its lowest domain that has others."""
    usable = capacity > 0
    near = np.repeat(np.arange(machine.num_routers)[:, None], NUM_BESIDE, axis=1)
    num_near = np.zeros(machine.num_routers, dtype=np.int64)
    for domain in machine.domain_of[1:]:
        inside = np.flatnonzero(usable)
        order = inside[np.argsort(domain[inside], kind="stable")]
        for own in np.split(order, np.flatnonzero(np.diff(domain[order])) + 1):
            alone = own[num_near[own] == 0]
            most = min(NUM_BESIDE, len(own) - 1)
            at = np.searchsorted(own, alone)
            for k in range(most):
                near[alone, k] = own[(at + k + 1) % len(own)]
            num_near[alone] = most
    return near, np.maximum(num_near, 1)


def _closest(machine: MatrixMachine) -> tuple[IntArray, IntArray]:
    """Return the closest other routers of every router, nearest first, and their number."""
    n = machine.num_routers
    order = np.argsort(machine.distances, axis=1, kind="stable")
    others = order[order != np.arange(n)[:, None]].reshape(n, n - 1)[:, :NUM_CLOSEST]
    near = others if n > 1 else np.zeros((1, 1), dtype=np.int64)
    return near, np.full(n, near.shape[1])


# ---- Compiled moves of tasks between routers, with the change of hop-bytes kept up to date -------
# All kernels work on the arrays of `state`: any machine whose distance is a sum over tables, any
# symmetric graph.

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


WALK_TRIES = 4


def random_state(seed: int) -> NDArray[np.uint64]:
    """Return the state of a generator (`draw`), which must not be 0."""
    return np.random.default_rng(seed).integers(1, 1 << 63, size=1, dtype=np.uint64)


@kernel(inline="always")
def draw(random):
    """Return the next 53 random bits of an xorshift64* generator, whose state is `random[0]`."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return (x * np.uint64(2685821657736338717)) >> np.uint64(11)


@kernel(inline="always")
def below(random, n):
    """Return a random integer from 0 to n - 1 (n at most 2^21: the bias is below 2^-31)."""
    return np.int64(draw(random) % np.uint64(n))


@kernel(inline="always")
def chance(random):
    """Return a random number from 0 up to 1."""
    return np.float64(draw(random)) / 9007199254740992.0


@kernel(inline="always")
def distance(machine, a, b):
    """Return the distance of two routers."""
    total = 0
    for d in range(machine.left.shape[1]):
        total += machine.table[machine.left[a, d] + machine.right[b, d]]
    return total


@kernel()
def total_cost(machine, guest, router):
    """Return the hop-bytes of a mapping, given the router of every task."""
    total = 0
    for t in range(router.shape[0]):
        for e in range(guest.first[t], guest.first[t + 1]):
            if guest.other[e] < t:
                total += guest.weight[e] * distance(machine, router[t], router[guest.other[e]])
    return total


@kernel(inline="always")
def change(machine, guest, router, task, goal, without):
    """Return the change by moving a task to a router, without its messages with task `without`."""
    here = router[task]
    total = 0
    for e in range(guest.first[task], guest.first[task + 1]):
        u = guest.other[e]
        if u != without:
            at = router[u]
            step = distance(machine, goal, at) - distance(machine, here, at)
            total += guest.weight[e] * step
    return total


@kernel(inline="always")
def move(state, task, goal):
    """Move a task to a router that has a free place."""
    here = state.router[task]
    last = state.base[here] + state.load[here] - 1
    moved = state.occupant[last]
    state.occupant[state.place[task]] = moved
    state.place[moved] = state.place[task]
    state.load[here] -= 1
    free = state.base[goal] + state.load[goal]
    state.occupant[free] = task
    state.place[task] = free
    state.router[task] = goal
    state.load[goal] += 1


@kernel(inline="always")
def swap(state, task, other):
    """Exchange the routers of two tasks."""
    a, b = state.place[task], state.place[other]
    state.occupant[a], state.occupant[b] = other, task
    state.place[task], state.place[other] = b, a
    here = state.router[task]
    state.router[task] = state.router[other]
    state.router[other] = here


@kernel(inline="always")
def near_partner(machine, guest, state, task, random, wander):
    """Return a router for a task: a partner's, or one close to it, or (rarely) any; -1 if none."""
    here = state.router[task]
    count = guest.first[task + 1] - guest.first[task]
    if count == 0 or chance(random) < wander:
        goal = machine.usable[below(random, machine.usable.shape[0])]
        return goal if goal != here else -1
    partner = guest.other[guest.first[task] + below(random, count)]
    goal = state.router[partner]
    if goal != here and state.room[goal] > 1 and draw(random) & np.uint64(1):
        return goal
    for _ in range(WALK_TRIES):
        goal = machine.near[goal, below(random, machine.num_near[goal])]
        if goal != here and state.room[goal] > 0:
            return goal
    return -1


@kernel()
def anneal(machine, guest, state, random, temperature, num_moves, wander):
    """Try random moves and swaps, accepted by Metropolis's rule; return the total change.

    Temperature 0 accepts no worsening. A share `wander` of the moves goes to any router. Accepted
    moves are made in `state`.
    """
    num_tasks = state.router.shape[0]
    total = 0
    for _ in range(num_moves):
        task = below(random, num_tasks)
        goal = near_partner(machine, guest, state, task, random, wander)
        if goal < 0:
            continue
        here = state.router[task]
        load = state.load[goal]
        to_free = load < state.room[goal] and (load == 0 or draw(random) & np.uint64(1))
        other = -1
        if not to_free:
            other = state.occupant[state.base[goal] + below(random, load)]
        # swapped tasks keep their distance from one another
        delta = change(machine, guest, state.router, task, goal, other)
        if other >= 0:
            delta += change(machine, guest, state.router, other, here, task)
        if delta > 0 and (
            temperature <= 0.0
            or delta > 40.0 * temperature
            or chance(random) >= math.exp(-delta / temperature)
        ):
            continue
        if other >= 0:
            swap(state, task, other)
        else:
            move(state, task, goal)
        total += delta
    return total


# ---- Simulated annealing of a mapping: from any start, never worse than it -----------------------

HOT, COLD = 2.5, 0.3
"""Temperatures of an annealing, in units of `Annealing.typical_change`."""

WANDER = 0.02
"""Share of moves to any router."""

POLISH_SHARE = 0.3
"""Share of the work that stays close to the start."""

COOLING_SHARE = 0.97
"""Share of an annealing before it goes downhill only."""

MOVES_PER_TASK, FEWEST_MOVES, MOST_MOVES = 10_000, 2_000_000, 60_000_000
"""Moves to try without a time limit."""

ROUND_PER_TASK, MOST_ROUNDS = 8_000, 20
"""Moves per task of one annealing: more moves go into further annealings."""

CHUNK = 1 << 13
"""Most moves between two looks at the clock."""


def improve(keeper: Keeper, num_moves: int | None = None) -> None:
    """Search for a mapping of fewer hop-bytes than the one that is kept.

    The first part of the work starts at the highest temperature that does not undo the start, so
    that a good start is improved; the rest anneals from hot to cold, for any start, more than once
    if there is time. All of a time limit is used unless the mapping is proven optimal; without one,
    the moves to try grow with the tasks by default.

    Raises `InputError` if the distances of the machine are not symmetric.
    """
    num_tasks = keeper.problem.num_tasks
    if num_moves is None:
        num_moves = min(max(FEWEST_MOVES, MOVES_PER_TASK * num_tasks), MOST_MOVES)
    search = Annealing(keeper, keeper.problem, num_moves)
    unit = search.typical_change()
    if unit > 0:
        start = search.state.copy()
        mild = search.mildest(HOT * unit, COLD * unit, POLISH_SHARE / 3)
        search.cool(mild, COLD * unit, POLISH_SHARE)
        rest = search.tried / max(search.spent(), 1e-9) * (1 - POLISH_SHARE)
        rounds = max(1, min(MOST_ROUNDS, int(rest / (ROUND_PER_TASK * num_tasks))))
        for done in range(1, rounds + 1):
            search.resume(start)
            until = POLISH_SHARE + (1 - POLISH_SHARE) * done / rounds
            search.cool(HOT * unit, COLD * unit, until)
    search.offer()


class Annealing:
    """A changing mapping, the best one seen, and the share of the work that is done.

    The keeper has the start, the seed and the time limit, and is offered improvements; without a
    time limit a number of moves is tried. `problem` is the keeper's, or one in place of it.
    """

    def __init__(self, keeper: Keeper, problem: MappingProblem, num_moves: int) -> None:
        self.keeper, self.num_moves, self.tried = keeper, num_moves, 0
        # a mean of distances is not a lower bound on the distances themselves
        self.floor = keeper.floor if problem is keeper.problem else 0
        self.began = clock.now()
        self.time_limit = None if keeper.options.time_limit is None else keeper.left
        self.chunk = CHUNK if self.time_limit else max(1, min(CHUNK, num_moves // 500))
        self.machine = machine_arrays(problem.machine, problem.capacity)
        self.guest = problem.graph.exchanged
        self.random = random_state(keeper.options.seed)
        self.resume(state_arrays(problem, keeper.routers))
        self.least, self.best = self.cost, self.state.router.copy()

    def spent(self) -> float:
        """Return the share of the time, or of the moves, that is used up."""
        if self.time_limit is not None or clock.is_stopped():
            return (clock.now() - self.began) / max(self.time_limit or 0.0, 1e-9)
        return self.tried / max(self.num_moves, 1)

    def typical_change(self) -> float:
        """Return how much one step of a task changes hop-bytes, up to a factor."""
        squares = self.guest.weight.astype(float) ** 2
        rows = np.bincount(self.guest.owner, weights=squares)
        if not rows.any():
            return 0.0
        at = self.machine.left[:, None, :] + self.machine.right[self.machine.near]
        # if the routers next to a router are all at distance 0, a step is any distance
        step = self.machine.table[at].sum(axis=2).max(axis=1).mean() or self.machine.table.mean()
        return float(np.sqrt(rows[rows > 0]).mean() * step)

    def resume(self, state: State) -> None:
        """Go on from another mapping."""
        self.state = state.copy()
        self.cost = int(total_cost(self.machine, self.guest, self.state.router))

    def mildest(self, hot: float, cold: float, until: float) -> float:
        """Return the highest temperature at which some moves leave the mapping no worse."""
        start, cost = self.state, self.cost
        temperature, begun = hot, self.spent()
        # each temperature gets its share of the work
        part = (until - begun) / (1 + np.log(hot / cold) / np.log(1.5))
        while temperature > cold and self.least > self.floor and self.spent() < until:
            self.resume(start)
            begun = self.spent()
            while self.least > self.floor and self.spent() < begun + part:
                self.run(temperature)
            if self.cost <= cost:
                break
            temperature /= 1.5
        self.resume(start)
        return max(temperature, cold)

    def cool(self, hot: float, cold: float, until: float) -> None:
        """Lower the temperature until a share of the work is done, and go downhill at the end."""
        begun = self.spent()
        while self.least > self.floor and (now := self.spent()) < until:
            progress = (now - begun) / (until - begun) / COOLING_SHARE
            self.run(hot * (cold / hot) ** progress if progress < 1 else 0.0)

    def run(self, temperature: float) -> None:
        """Try moves at one temperature and keep the mapping if it is the best so far."""
        change = anneal(
            self.machine, self.guest, self.state, self.random, temperature, self.chunk, WANDER
        )
        self.tried += self.chunk
        self.cost += int(change)
        if self.cost < self.least:
            self.least, self.best = self.cost, self.state.router.copy()
            self.keeper.offer_sometimes(self.best.astype(np.int64), "annealing")

    def offer(self) -> None:
        """Offer the best mapping."""
        self.keeper.offer(self.best.astype(np.int64), "annealing")
