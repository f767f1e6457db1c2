"""The papers' mappings of interacting object arrays (Bhatele 2009, section 3.3)."""

from __future__ import annotations

import itertools
import math

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, number_of
from topoplace.machine import Torus
from topoplace.mapping.local_search import homes_of
from topoplace.mapping.mapped import Keeper
from topoplace.mapping.objects.search import consecutive
from topoplace.mapping.objects.settled import emptiest_first, settled, space_left
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

Box = tuple[tuple[int, int], ...]
"""The first coordinate and the one after the last, of every dimension."""

GSPACE, REALSPACE, PATCHES = "GSpace", "RealSpace", "Patches"


def _array(problem: MappingProblem, name: str, dims: int) -> IntArray:
    found = problem.array(name)
    if found is None or len(found[1]) != dims:
        expected = f"an array {name} of {number_of(dims, 'dimension')}"
        names = [one.name for one in problem.arrays]
        raise InputError(expected, field="arrays", found=", ".join(names) or "none")
    return found[0]


def parts_of(box: Box, count: int) -> list[Box]:
    """Return a box in `count` parts as equal as possible: halved along its longest side, and so on.

    That is orthogonal recursive bisection. A box of one layer in every dimension has all parts.
    """
    if count == 1:
        return [box]
    sides = [high - low for low, high in box]
    if max(sides) == 1:
        return [box] * count
    d = int(np.argmax(sides))
    low, high = box[d]
    near = count // 2
    cut = min(max(low + 1, low + round(sides[d] * near / count)), high - 1)
    halves = ((low, cut), (cut, high))
    first, second = ((*box[:d], half, *box[d + 1 :]) for half in halves)
    return parts_of(first, near) + parts_of(second, count - near)


# ---- What the papers compare with: loads alone, and the order of objects ------------------------


@register("mapping", "in-order", takes=("objects",))
def in_order(problem: MappingProblem, options: Options) -> Outcome:
    """Fill node after node with consecutive objects, up to the average load."""
    keeper = Keeper(problem, options)
    keeper.offer_cells(consecutive(problem, keeper.deadline), "in order")
    return keeper.outcome


@register("mapping", "oblivious", takes=("objects",))
def oblivious(problem: MappingProblem, options: Options) -> Outcome:
    """Balance loads alone: the largest object first, each on the emptiest node."""
    keeper = Keeper(problem, options)
    keeper.offer_cells(emptiest_first(problem), "by load")
    return keeper.outcome


# ---- OpenAtom: prisms for planes, others across them for states, the rest at centroids (3.3.1) ---


@register("mapping", "prisms", takes=("objects",))
def prisms(problem: MappingProblem, options: Options) -> Outcome:
    """Map GSpace into prisms along a dimension, RealSpace across them, the rest at centroids.

    The best of all dimensions counts, by hop-bytes. Raises `InputError` unless the machine is a
    torus or mesh and there are arrays GSpace and RealSpace, states by planes.
    """
    torus = problem.torus
    gspace, realspace = (_array(problem, name, 2) for name in (GSPACE, REALSPACE))
    keeper = Keeper(problem, options)
    for axis in range(torus.num_dims):
        if keeper.worth is not None and keeper.done:
            break
        wanted = np.full(problem.num_tasks, -1, dtype=np.int64)
        wanted[gspace] = gspace_routers(problem, torus, axis, gspace.shape)
        wanted[realspace] = across(wanted[gspace], realspace.shape[1])
        at_centroids(problem, torus, wanted, keeper.deadline)
        order = np.concatenate([gspace.ravel(), realspace.ravel()])
        rest = np.setdiff1d(np.arange(problem.num_tasks), order)
        cells = settled(problem, wanted, np.concatenate([order, rest]), keeper.deadline)
        keeper.offer_cells(cells, f"axis {axis}")
    return keeper.outcome


def gspace_routers(
    problem: MappingProblem, torus: Torus, axis: int, shape: tuple[int, ...]
) -> IntArray:
    """Return the router of every state and plane: a prism per plane, states along the axis.

    Every prism is as long as the torus along the axis; its routers are in the order of the axis.
    """
    states, planes = shape
    whole: Box = tuple((0, 1 if d == axis else n) for d, n in enumerate(torus.shape))
    usable = problem.room > 0
    found = np.zeros(shape, dtype=np.int64)
    for plane, box in enumerate(parts_of(whole, planes)):
        sides = [range(torus.shape[d]) if d == axis else range(*box[d]) for d in range(len(box))]
        at = np.array(list(itertools.product(*sides)), dtype=np.int64)
        at = at[np.argsort(at[:, axis], kind="stable")]
        routers = at @ np.asarray(torus.strides)
        inside = routers[usable[routers]]
        routers = inside if len(inside) else routers
        found[:, plane] = routers[np.arange(states) * len(routers) // states]
    return found


def across(gspace: IntArray, planes: int) -> IntArray:
    """Return the routers of RealSpace: of a state, those that have it in GSpace, in turn."""
    num = gspace.shape[1]
    return gspace[:, np.arange(planes) * num // planes]


def at_centroids(problem: MappingProblem, torus: Torus, wanted: IntArray, stop: float) -> None:
    """Give every object without a router the one nearest to its partners that have one.

    When the clock shows `stop`, the others get the router of the partner with which they have the
    most bytes.
    """
    rows, routers = problem.guide, np.flatnonzero(np.diff(problem.pools.first))
    lines = [Torus((n,), (wraps,)) for n, wraps in zip(torus.shape, torus.wrap, strict=True)]
    hops = [line.hops(np.arange(n)[:, None], np.arange(n)) for line in lines for n in line.shape]
    places, placed = torus.coordinates[routers].T, wanted >= 0
    for one in np.flatnonzero(~placed).tolist():
        mine = slice(int(rows.first[one]), int(rows.first[one + 1]))
        known = placed[rows.other[mine]]
        at, weight = wanted[rows.other[mine][known]], rows.weight[mine][known]
        if not len(at):
            wanted[one] = routers[0]
        elif clock.now() >= stop:
            wanted[one] = at[weight.argmax()]
        else:
            total = np.zeros(len(routers))
            for apart, place, own in zip(hops, places, torus.coordinates[at].T, strict=True):
                total += (apart @ np.bincount(own, weight, len(apart)))[place]
            wanted[one] = routers[int(total.argmin())]


# ---- NAMD: patches by recursive bisection, computes in the brick of their two patches (3.3.2) ----


@register("mapping", "bricks", takes=("objects",))
def bricks(problem: MappingProblem, options: Options) -> Outcome:
    """Map patches by recursive bisection of the torus, computes into the brick of their patches.

    Raises `InputError` unless the machine is a torus or mesh of three dimensions, there is an array
    Patches of three, and all other objects talk to one or two patches.
    """
    return _around_patches(problem, options, bisected(problem), nearby=True)


@register("mapping", "patches", takes=("objects",))
def placed_patches(problem: MappingProblem, options: Options) -> Outcome:
    """Map patches by recursive bisection, computes to nodes with their patches or proxies.

    This is "TopoPlace Patches" of Bhatele 2009. Raises `InputError` as `bricks` does.
    """
    return _around_patches(problem, options, bisected(problem), nearby=False)


@register("mapping", "proxies", takes=("objects",))
def with_proxies(problem: MappingProblem, options: Options) -> Outcome:
    """Map patches to nodes at equal steps, computes to nodes with their patches or proxies.

    This is "Topology Oblivious" of Bhatele 2009: the load balancer knows which node has which
    patch, but not how far nodes are apart. Raises `InputError` unless there is an array Patches of
    three dimensions, and all other objects talk to one or two patches.
    """
    patches = _array(problem, PATCHES, 3)
    steps = np.arange(patches.size) * len(problem.nodes) // patches.size
    routers = problem.routers_of(problem.nodes[steps]).reshape(patches.shape)
    return _around_patches(problem, options, routers, nearby=False)


def bisected(problem: MappingProblem) -> IntArray:
    """Return the routers of patches by recursive bisection of a machine of three dimensions."""
    torus, patches = problem.torus, _array(problem, PATCHES, 3)
    if torus.num_dims != patches.ndim:
        raise InputError("a torus or mesh of 3 dimensions", field="machine", value=torus.text)
    return patch_routers(torus, patches.shape)


def _around_patches(
    problem: MappingProblem, options: Options, routers: IntArray, *, nearby: bool
) -> Outcome:
    """Settle patches on routers, and then place computes (`place_computes`)."""
    patches = _array(problem, PATCHES, 3)
    keeper = Keeper(problem, options)
    wanted = np.full(problem.num_tasks, -1, dtype=np.int64)
    wanted[patches] = routers
    start = settled_patches(problem, wanted, patches.ravel(), keeper.deadline)
    if start is not None:
        own = patches.ravel(), keeper.deadline
        keeper.offer_cells(place_computes(problem, start, *own, nearby=nearby), "around patches")
    return keeper.outcome


def patch_routers(torus: Torus, shape: tuple[int, ...]) -> IntArray:
    """Return the router of every patch: the middle of its part of the torus.

    The longest side of the patches lies along the longest of the torus. Torus and patches are
    halved together: the longest side of the patches first, the torus in proportion.
    """
    dims = np.argsort(np.argsort([-n for n in shape], kind="stable"), kind="stable")
    longest = np.argsort([-n for n in torus.shape], kind="stable")
    along = [int(longest[k]) for k in dims]
    found = np.zeros(shape, dtype=np.int64)

    def halve(patches: Box, box: list[tuple[float, float]]) -> None:
        sides = [high - low for low, high in patches]
        if max(sides) == 1:
            middle = [
                min(int((low + high) / 2), n - 1)
                for (low, high), n in zip(box, torus.shape, strict=True)
            ]
            found[tuple(low for low, _ in patches)] = int(np.dot(middle, torus.strides))
            return
        d = int(np.argmax(sides))
        (low, high), (near, far) = patches[d], box[along[d]]
        cut = (low + high) // 2
        at = near + (far - near) * (cut - low) / (high - low)
        for part, room in (((low, cut), (near, at)), ((cut, high), (at, far))):
            inner = list(box)
            inner[along[d]] = room
            halve((*patches[:d], part, *patches[d + 1 :]), inner)

    halve(tuple((0, n) for n in shape), [(0.0, float(n)) for n in torus.shape])
    return found


def settled_patches(
    problem: MappingProblem, wanted: IntArray, patches: IntArray, stop: float = math.inf
) -> IntArray | None:
    """Return the cells of patches, each in its router or near it; -1 of other objects.

    When the clock shows `stop`, all others go to the emptiest cells.
    """
    cells = homes_of(problem)
    left = space_left(problem, cells)
    for one in patches[cells[patches] < 0].tolist():
        if clock.now() >= stop:
            return emptiest_first(problem, cells)
        away = problem.machine.hops(wanted[one], problem.pools.router)
        fits = np.flatnonzero(left >= problem.loads[one])
        if not len(fits):
            return None
        # among equally near cells the emptiest: patches of a router share its nodes
        cells[one] = fits[np.lexsort((-left[fits], away[fits]))[0]]
        left[cells[one]] -= problem.loads[one]
    return cells


def place_computes(
    problem: MappingProblem,
    cells: IntArray,
    patches: IntArray,
    stop: float = math.inf,
    *,
    nearby: bool = True,
) -> IntArray | None:
    """Place all objects except patches, the largest load first, by steps I to III of section 3.3.2.

    I: a node with both patches or proxies of them, inside the brick that the two span if there is
    one. II: inside the brick, a node with one of them. III: any node inside, then around it, in
    shells. Among nodes of one kind the emptiest one is taken. A proxy of a patch is where a compute
    of it is; full nodes do not count. Unless `nearby` is set, the brick does not matter: a node
    with both, with one, with none. When the clock shows `stop`, all others go to the emptiest
    cells.
    """
    rows, at = problem.guide, problem.pools.router
    is_patch = np.zeros(problem.num_tasks, dtype=bool)
    is_patch[patches] = True
    left = space_left(problem, cells)
    has = np.zeros((problem.num_tasks, len(at)), dtype=bool)
    has[patches, cells[patches]] = True
    for one in np.argsort(-problem.loads, kind="stable").tolist():
        if cells[one] >= 0:
            continue
        if clock.now() >= stop:
            return emptiest_first(problem, cells)
        partners = rows.other[rows.first[one] : rows.first[one + 1]]
        mine = partners[is_patch[partners]].tolist()
        if not 1 <= len(mine) <= 2 or len(mine) < len(partners):
            expected = "one or two patches that each compute talks to"
            raise InputError(expected, field="messages", value=len(partners))
        ends = mine[0], mine[-1]
        outside = np.zeros(len(at), dtype=np.int64)
        if nearby:
            outside = shells(problem, *(int(at[cells[end]]) for end in ends))[at]
        proxies = has[ends[0]].astype(int) + has[ends[1]]
        step = np.where(proxies == 2, 0, np.where((proxies == 1) & (outside == 0), 1, 2))
        fits = np.flatnonzero(left >= problem.loads[one])
        if not len(fits):
            return None
        keys = (-left[fits], outside[fits], step[fits])
        cells[one] = fits[np.lexsort(keys)[0]]
        left[cells[one]] -= problem.loads[one]
        has[list(ends), cells[one]] = True
    return cells


def shells(problem: MappingProblem, one: int, other: int) -> IntArray:
    """Return the hops from every router to the brick between two: half of the detour."""
    machine = problem.machine
    way = machine.distances_from(one) + machine.distances_from(other)
    detour: IntArray = (way - int(machine.distances_from(one)[other])) // 2
    return detour
