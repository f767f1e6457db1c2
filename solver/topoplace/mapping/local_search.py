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
from topoplace.mapping.problem import MappingProblem, trees_of
from topoplace.snapshot.schema import MessageTree
from topoplace.types import BoolArray, IntArray

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

    Cell c has `slots[c]` slots from `base[c]` on, the first `taken[c]` of them by the tasks
    in `occupant`, whose loads are `filled[c]` together; `cell`, `router` and `slot` are by task.
    """

    cell: Index
    router: Index
    slot: Index
    occupant: Index
    base: Index
    taken: Index
    slots: Index
    filled: IntArray

    def copy(self) -> State:
        """Return a copy that changes on its own."""
        return State._make(array.copy() for array in self)


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
        *(part.astype(np.int32, "C") for part in (left, right, table, near, num_near, usable))
    )


def arrays_of(problem: MappingProblem) -> Machine:
    """Return the machine in the form of kernels; `InputError` if distances are not symmetric."""
    return machine_arrays(problem.machine, np.diff(problem.pools.first))


class Branches(NamedTuple):
    """Trees in the form of kernels (`Trees`), the torus they are on, and marks.

    The last of the marks of routers, `at`, of cells, `held`, and of trees, `seen`, is the one in
    use.
    """

    shape: IntArray
    strides: IntArray
    wraps: BoolArray
    root: IntArray
    first: IntArray
    member: IntArray
    bytes: IntArray
    by_node: BoolArray
    of_first: IntArray
    of: IntArray
    at: IntArray
    held: IntArray
    seen: IntArray


def branches_of(problem: MappingProblem) -> Branches:
    """Return the trees in the form of kernels; there and back is one tree of twice the bytes."""
    joined: dict[tuple[int, tuple[int, ...], str], MessageTree] = {}
    for one in problem.listed_trees:
        key = one.root, tuple(one.members), one.once
        size = one.bytes + (joined[key].bytes if key in joined else 0)
        joined[key] = one.model_copy(update={"bytes": size})
    trees, machine = trees_of(list(joined.values()), problem.num_tasks), problem.machine
    torus = machine.torus or Torus((1,))
    return Branches(
        np.array(torus.shape),
        np.array(torus.strides),
        np.array(torus.wrap),
        *(trees.root, trees.first, trees.member, trees.bytes, trees.by_node),
        *(trees.of_first, trees.of),
        np.zeros(torus.num_routers + 1, dtype=np.int64),
        np.zeros(len(problem.pools.room) + 1, dtype=np.int64),
        np.zeros(len(trees.root) + 1, dtype=np.int64),
    )


def homes_of(problem: MappingProblem) -> IntArray:
    """Return the cell of every fixed object, -1 of others."""
    home = np.full(problem.num_tasks, -1, dtype=np.int64)
    home[problem.fixed] = problem.pools_of(problem.home[problem.fixed])
    return home


def state_arrays(problem: MappingProblem, at: IntArray) -> State:
    """Return a mapping's arrays, given the cell of every task (`MappingProblem.pools`)."""
    cells, loads, num = problem.pools, problem.loads, problem.num_tasks
    num_cells, lightest = len(cells.room), int(loads.min())
    count = np.bincount(at, minlength=num_cells)
    slots = np.minimum(cells.room // lightest, num) if lightest else np.full(num_cells, num)
    if int(slots.sum()) > MAX_PLACES:
        slots = np.minimum(slots, np.maximum(count, MAX_PLACES // num_cells))
    base = np.cumsum(slots) - slots
    order = np.argsort(at, kind="stable")
    slot = np.empty(num, dtype=np.int64)
    slot[order] = base[at[order]] + np.arange(num) - (np.cumsum(count) - count)[at[order]]
    occupant = np.full(int(slots.sum()), -1, dtype=np.int64)
    occupant[slot] = np.arange(num)
    parts = at, cells.router[at], slot, occupant, base, count, slots
    filled = np.zeros(num_cells, dtype=np.int64)
    np.add.at(filled, at, loads)
    return State._make([*(part.astype(np.int32) for part in parts), filled])


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

PICKS = 3
"""How many tasks of a cell may be looked at for one to leave it."""


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
    """Return a random integer from 0 to n - 1 (n at most 2^21: the bias is below 2^-21).

    The product is of 43 and 21 bits: a division takes longer.
    """
    return np.int64(((draw(random) >> np.uint64(10)) * np.uint64(n)) >> np.uint64(43))


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
    """Return the hop-bytes of messages, given the router of every task."""
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
    total = np.int64(0)
    if here == goal:
        return total
    for e in range(guest.first[task], guest.first[task + 1]):
        u = guest.other[e]
        if u != without:
            at = router[u]
            step = distance(machine, goal, at) - distance(machine, here, at)
            total += guest.weight[e] * step
    return total


@kernel(inline="always")
def move(cells, state, loads, task, goal):
    """Move a task to a cell that has a free slot."""
    here = state.cell[task]
    last = state.base[here] + state.taken[here] - 1
    moved = state.occupant[last]
    state.occupant[state.slot[task]] = moved
    state.slot[moved] = state.slot[task]
    state.taken[here] -= 1
    free = state.base[goal] + state.taken[goal]
    state.occupant[free] = task
    state.slot[task] = free
    state.taken[goal] += 1
    state.filled[here] -= loads[task]
    state.filled[goal] += loads[task]
    state.cell[task], state.router[task] = goal, cells.router[goal]


@kernel(inline="always")
def swap(state, loads, task, other):
    """Exchange the cells of two tasks."""
    a, b = state.slot[task], state.slot[other]
    state.occupant[a], state.occupant[b] = other, task
    state.slot[task], state.slot[other] = b, a
    here, goal = state.cell[task], state.cell[other]
    more = loads[other] - loads[task]
    state.filled[here] += more
    state.filled[goal] -= more
    state.cell[task], state.cell[other] = goal, here
    at = state.router[task]
    state.router[task] = state.router[other]
    state.router[other] = at


@kernel(inline="always")
def cell_of(cells, router, here, random):
    """Return any cell of a router but one; -1 if there is none, or chance picks that one."""
    first = cells.first[router]
    num = cells.first[router + 1] - first
    if num > 1:
        first += below(random, num)
    return first if num > 0 and first != here else -1


@kernel(inline="always")
def aim(machine, guide, cells, state, task, random, wander):
    """Return a cell for a task: with a partner, close to one, or (rarely) any; -1 if none."""
    here = state.cell[task]
    count = guide.first[task + 1] - guide.first[task]
    if count == 0 or chance(random) < wander:
        anywhere = machine.usable[below(random, machine.usable.shape[0])]
        return cell_of(cells, anywhere, here, random)
    router = state.router[guide.other[guide.first[task] + below(random, count)]]
    if state.slots[cells.first[router]] > 1 and draw(random) & np.uint64(1):
        goal = cell_of(cells, router, here, random)
        if goal >= 0:
            return goal
    for _ in range(WALK_TRIES):
        router = machine.near[router, below(random, machine.num_near[router])]
        goal = cell_of(cells, router, here, random)
        if goal >= 0:
            return goal
    return -1


@kernel(inline="always")
def who_leaves(state, loads, home, goal, least, most, random):
    """Return a task of a cell, not fixed, whose load is in a range; -1 if a few have none."""
    base, count = state.base[goal], state.taken[goal]
    for _ in range(min(PICKS, count)):
        other = state.occupant[base + below(random, count)]
        if home[other] < 0 and least <= loads[other] <= most:
            return other
    return -1


@kernel(_nrt=False)  # it makes no array; to count who holds one would take a third of the time
def anneal(machine, guest, guide, trees, cells, loads, home, movable, state, random, work, wander):
    """Try random moves and swaps, accepted by Metropolis's rule; return the total change.

    `guest` are the bytes of messages, `guide` those of trees as well, for moves to try; `work` the
    temperature (0 accepts no worsening) and the number of moves to try. A share `wander` of them
    goes to any router. Accepted moves are made in `state`.
    """
    temperature, num_moves = work
    total = np.int64(0)
    for _ in range(num_moves):
        task = movable[below(random, movable.shape[0])]
        goal = aim(machine, guide, cells, state, task, random, wander)
        if goal < 0:
            continue
        here = state.cell[task]
        short = loads[task] - (cells.room[goal] - state.filled[goal])
        count = state.taken[goal]
        fits = short <= 0 and count < state.slots[goal]
        other = -1
        if not fits or (count > 0 and draw(random) & np.uint64(1)):
            spare = cells.room[here] - state.filled[here] + loads[task]
            other = who_leaves(state, loads, home, goal, max(0, short), spare, random)
            if other < 0 and not fits:
                continue
        # swapped tasks keep their distance from one another
        delta = change(machine, guest, state.router, task, cells.router[goal], other)
        if other >= 0:
            delta += change(machine, guest, state.router, other, cells.router[here], task)
        if trees.of.shape[0] > 0:  # not in the call, which passes a hundred values
            delta += grown(machine, trees, cells, state, task, goal, other)
        if delta > 0 and (
            temperature <= 0.0
            or delta > 40.0 * temperature
            or chance(random) >= math.exp(-delta / temperature)
        ):
            continue
        if other >= 0:
            swap(state, loads, task, other)
        else:
            move(cells, state, loads, task, goal)
        total += delta
    return total


@kernel()
def before(trees, origin, at):
    """Return the router before another one on the route from an origin."""
    for d in range(trees.shape.shape[0] - 1, -1, -1):
        size, stride = trees.shape[d], trees.strides[d]
        begin, here = origin // stride % size, at // stride % size
        if begin != here:
            up = 2 * ((here - begin) % size) <= size if trees.wraps[d] else here > begin
            back = (here - 1) % size if up else (here + 1) % size
            return at + (back - here) * stride
    return at


@kernel()
def links_of(trees, tree, router):
    """Return the links of a tree, over objects that have a router: the union of the routes.

    From every member back to the root, up to where another member's route has been.
    """
    origin = np.int64(router[trees.root[tree]])
    if origin < 0:
        return np.int64(0)
    trees.at[-1] += 1
    mark, links = trees.at[-1], np.int64(0)
    trees.at[origin] = mark
    for e in range(trees.first[tree], trees.first[tree + 1]):
        at = np.int64(router[trees.member[e]])
        while at >= 0 and trees.at[at] != mark:
            trees.at[at] = mark
            links += 1
            at = before(trees, origin, at)
    return links


@kernel()
def hops_of(machine, trees, tree, router, cell):
    """Return the hops of a tree's bytes: its links, or those to every cell that has members."""
    if not trees.by_node[tree]:
        return links_of(trees, tree, router)
    origin = np.int64(router[trees.root[tree]])
    hops = np.int64(0)
    if origin < 0:
        return hops
    trees.held[-1] += 1
    mark = trees.held[-1]
    for e in range(trees.first[tree], trees.first[tree + 1]):
        one = trees.member[e]
        at = cell[one]
        if at >= 0 and trees.held[at] != mark:
            trees.held[at] = mark
            hops += distance(machine, origin, router[one])
    return hops


@kernel()
def tree_bytes(machine, trees, state, one, other):
    """Return the hop-bytes of the trees that have one object or (if not -1) another."""
    trees.seen[-1] += 1
    mark, total = trees.seen[-1], np.int64(0)
    for k in (one, other):
        if k >= 0:
            for e in range(trees.of_first[k], trees.of_first[k + 1]):
                tree = trees.of[e]
                if trees.seen[tree] != mark:
                    trees.seen[tree] = mark
                    hops = hops_of(machine, trees, tree, state.router, state.cell)
                    total += trees.bytes[tree] * hops
    return total


@kernel(inline="always")
def put(cells, state, one, at):
    """Put an object (or none, -1) into a cell, for a moment: slots stay as they are."""
    if one >= 0:
        state.cell[one], state.router[one] = at, cells.router[at]


@kernel()
def grown(machine, trees, cells, state, one, goal, other):
    """Return what moving an object adds to its trees; another one (or -1) moves in exchange."""
    here = state.cell[one]
    if trees.of.shape[0] == 0 or here == goal:
        return np.int64(0)
    total = -tree_bytes(machine, trees, state, one, other)
    put(cells, state, one, goal)
    put(cells, state, other, here)
    total += tree_bytes(machine, trees, state, one, other)
    put(cells, state, one, here)
    put(cells, state, other, goal)
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

CHUNK, CHUNK_SECONDS = 1 << 13, 0.1
"""Most moves between two looks at the clock, and the most time for them: else half as many."""

FIRST_CHUNK = 1 << 8
"""Moves before the first look where there is a time limit; twice as many after a quick look."""


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
        self.keeper, self.problem = keeper, problem
        self.num_moves, self.tried = num_moves, 0
        # a mean of distances is not a lower bound on the distances themselves
        self.floor = keeper.floors[-1] if problem is keeper.problem else 0
        self.began = clock.now()
        self.time_limit = None if keeper.options.time_limit is None else keeper.left
        self.chunk = FIRST_CHUNK if self.time_limit else max(1, min(CHUNK, num_moves // 500))
        self.machine, self.trees = arrays_of(problem), branches_of(problem)
        self.guest, self.guide = problem.graph.exchanged, problem.guide
        self.home, self.movable = homes_of(problem), np.flatnonzero(~problem.fixed)
        self.random = random_state(keeper.options.seed)
        self.resume(state_arrays(problem, problem.pools_of(keeper.nodes)))
        self.least, self.best = self.cost, self.state.cell.copy()

    def spent(self) -> float:
        """Return the share of the time, or of the moves, that is used up."""
        if self.time_limit is not None or clock.is_stopped():
            return (clock.now() - self.began) / max(self.time_limit or 0.0, 1e-9)
        return self.tried / max(self.num_moves, 1)

    def typical_change(self) -> float:
        """Return how much one step of a task changes hop-bytes, up to a factor."""
        squares = self.guide.weight.astype(float) ** 2
        rows = np.bincount(self.guide.owner, weights=squares)
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
        for tree, size in enumerate(self.trees.bytes.tolist()):
            own = self.machine, self.trees, tree, self.state.router, self.state.cell
            self.cost += size * int(hops_of(*own))

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
            self.run(hot * (cold / hot) ** progress if hot and progress < 1 else 0.0)

    def run(self, temperature: float) -> None:
        """Try moves at one temperature and keep the mapping if it is the best so far."""
        began, chunk = clock.now(), self.chunk
        self.cost += self.tries((float(temperature), chunk))
        self.tried += chunk
        took = clock.now() - began
        if self.time_limit is not None and took > CHUNK_SECONDS:
            self.chunk = max(1, chunk // 2)
        elif self.time_limit is not None and took < CHUNK_SECONDS / 4:
            self.chunk = min(CHUNK, 2 * chunk)
        if self.cost < self.least:
            self.least, self.best = self.cost, self.state.cell.copy()
            self.keeper.offer_sometimes(self.best.astype(np.int64), "annealing")

    def tries(self, work: tuple[float, int]) -> int:
        """Try so many moves at a temperature, and return the change."""
        problem = self.problem
        sent = self.machine, self.guest, self.guide, self.trees
        own = problem.pools, problem.loads, self.home, self.movable, self.state, self.random
        return int(anneal(*sent, *own, work, WANDER))

    def offer(self) -> None:
        """Offer the best mapping."""
        self.keeper.offer_cells(self.best.astype(np.int64), "annealing")
