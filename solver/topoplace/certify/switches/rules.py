"""The rules of single patterns: what their leaves and multipliers mean (docs/proofs/tree.md).

`Plans` are of binomial trees; ranks of the others form a box: `Lines` are of grids, `Sides` of full
cubes and rings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches._kernels import NONE, best_plans
from topoplace.certify.switches.costs import grid_of
from topoplace.certify.switches.relaxed import Box, Relaxed, Rules, View
from topoplace.result.tree import BinomialShares, LinePrices, Needs
from topoplace.snapshot.schema import Pattern
from topoplace.types import BoolArray, IntArray

# ---- Binomial trees ------------------------------------------------------------------------------

LARGEST_WORTH = (1 << 58) + 1
"""Above the multipliers of a tree's leaf together, times all ranks.

Every multiplier is taken at most three times per rank, so that sums stay below 2^60, and above
`NONE`, which is -2^61.
"""


class Plans(Rules):
    """A request whose ranks double step by step."""

    leaf = BinomialShares

    def __init__(self, relaxed: Relaxed) -> None:
        super().__init__(relaxed)
        ((_, pairs_of),) = relaxed.families
        children = np.array([len(pairs) for pairs in pairs_of], dtype=np.int64)
        self._active = np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.int64)
        self._idle = self._active[:-1] - children
        self.work += len(children) * int((relaxed.ranks_on**2).sum())

    def fits(self, ranks: IntArray, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which states have a way through active ranks to all ranks."""
        nothing = np.zeros((len(ranks), len(self._active)), dtype=np.int64)
        crosses = self._crosses(keeps)
        found = best_plans(ranks, self._active, crosses, able, nothing, nothing, nothing)
        there: BoolArray = found > NONE
        return there

    def _crosses(self, keeps: BoolArray) -> BoolArray:
        """Tell in which steps ranks may have children elsewhere, or none if one of all is idle."""
        crosses: BoolArray = ~keeps | (self._idle > 0)[:, None]
        return crosses

    def read(self, leaf: BinomialShares) -> None:
        """Raise `RefusedError` unless multipliers are of steps and values that are there."""
        steps, num_values = len(self._idle), len(self.relaxed.values)
        if len(leaf.shares) != steps + 1:
            raise RefusedError("a nogood has another number of steps")
        for step, key, senders, receivers in leaf.cuts:
            if not (0 <= step < steps and 0 <= key < num_values and min(senders, receivers) >= 0):
                raise RefusedError("a nogood has an unknown cut, or one below 0")
        total = sum(abs(share) for share in leaf.shares) + sum(a + b for _, _, a, b in leaf.cuts)
        require_room(total * self.relaxed.ranks, "multipliers times ranks", LARGEST_WORTH)

    def refutes(self, leaf: BinomialShares, view: View) -> bool:
        """Tell whether multipliers rule out what is left."""
        return self._worth(leaf, view) < self._wanted(leaf)

    def boxes(self) -> list[Box]:
        """Return boxes of thresholds by number that hold all that count.

        A step that crosses and a later one that is inside can change places if no rank is idle;
        with equal prices those inside come first, and all of them are on one leaf.
        """
        relaxed, steps = self.relaxed, len(self._idle)
        top = len(relaxed.values) - 1
        if self._idle.any() or len(set(relaxed.prices)) > 1:
            return super().boxes()
        crossing = int(relaxed.between.min())
        boxes: list[Box] = [([crossing] * steps, [top] * steps)]
        for inside in set(relaxed.inside.tolist()):
            for n in range(1, steps + 1):
                begin, rest = [inside] * n, steps - n
                boxes.append((begin + [crossing] * rest, begin + [top] * rest))
        return boxes

    def _wanted(self, tree: BinomialShares) -> int:
        """Return the value that all leaves together need."""
        active: list[int] = self._active.tolist()
        idle: list[int] = self._idle.tolist()
        all_active = sum(s * a for s, a in zip(tree.shares, active, strict=True))
        return all_active - sum(u * idle[step] for step, _, u, _ in tree.cuts)

    def _worth(self, tree: BinomialShares, view: View) -> int:
        """Return the largest value of all leaves together.

        New ranks of a bad leaf's partners take its senders, active ones its receivers; a bad leaf
        needs partners for all that does not stay inside.
        """
        num, steps = len(view.ranks), len(self._idle)
        of_active = np.tile(np.array(tree.shares, dtype=np.int64), (num, 1))
        of_new, of_inside = np.zeros((2, num, steps), dtype=np.int64)
        for step, key, senders, receivers in tree.cuts:
            high = self.relaxed.between.diagonal()[view.states] >= key
            near = view.beside[step][:, high].any(axis=1)
            bad = high & ~near
            of_new[near, step] += senders
            of_active[near, step] += receivers
            of_active[bad, step] -= senders
            of_new[bad, step] -= receivers
            of_inside[bad, step] += senders + receivers
        crosses = self._crosses(view.keeps)
        worths = best_plans(
            view.ranks, self._active, crosses, view.able, of_active, of_new, of_inside
        )
        best = np.where(view.full, NONE, 0)
        np.maximum.at(best, view.types, worths)
        leaves: list[int] = view.leaves.tolist()
        return sum(n * worth for n, worth in zip(leaves, best.tolist(), strict=True))


# ---- Boxes ---------------------------------------------------------------------------------------

_NEVER = 1 << 61
"""Marks impossible values: more than four times any possible one."""


class BoxRules(Rules):
    """Rules of ranks that form a box: a grid, a full cube, or a ring as a single line."""

    def __init__(self, relaxed: Relaxed, extents: Sequence[int]) -> None:
        super().__init__(relaxed)
        self.extents = list(extents)
        of_lines = sum(extents) * len(relaxed.ranks_on) ** 2
        num_leaves = min(int(relaxed.leaves.sum()), relaxed.ranks)
        self.work = of_lines + len(relaxed.ranks_on) * relaxed.ranks * num_leaves

    def fits(self, ranks: IntArray, keeps: BoolArray, able: BoolArray) -> BoolArray:
        """Tell which ranks can be whole lines of all dimensions kept inside."""
        whole = np.ones(len(ranks), dtype=np.int64)
        for extent, kept in zip(self.extents, keeps, strict=True):
            whole[kept] *= extent
        held: BoolArray = (ranks % whole == 0) & ~(keeps & ~able).any(axis=0)
        return held

    def most_worth(self, view: View, worths: Sequence[int | None]) -> int | None:
        """Return the largest value of leaves that hold all ranks, None if none do.

        The value of a leaf, per remaining state, is small enough for sums; None if it is
        impossible.
        """
        sure, left = 0, self.relaxed.ranks
        by_type: dict[int, list[tuple[int, int]]] = {}
        states = zip(view.types.tolist(), view.ranks.tolist(), view.held, worths, strict=True)
        for t, ranks, held, worth in states:
            if held and worth is None:
                return None
            if held and worth is not None:
                sure += int(view.leaves[t]) * worth
                left -= int(view.leaves[t]) * ranks
            elif worth is not None:
                by_type.setdefault(t, []).append((ranks, worth))
        if left < 0:
            return None
        best = np.full(left + 1, -_NEVER, dtype=np.int64)
        best[0] = 0
        for t, choices in by_type.items():
            for _ in range(int(view.leaves[t])):
                after = best.copy()
                for ranks, worth in choices:
                    if ranks <= left:
                        part = after[ranks:]
                        np.maximum(part, best[: left + 1 - ranks] + worth, out=part)
                if (after == best).all():
                    break
                best = after
        return None if best[left] < -_NEVER // 2 else int(best[left]) + sure


# ---- Grids: lines cut into segments of leaves ----------------------------------------------------

LARGEST_PRICE = (1 << 35) + 1
"""A rank pays at most 2 prices in each of 3 dimensions, and there are at most 2^20 ranks, so that
all sums of prices are below 2^59.
"""


class Lines(BoxRules):
    """A request on a grid whose lines are cut into segments of leaves."""

    leaf = LinePrices

    def __init__(self, relaxed: Relaxed, pattern: Pattern) -> None:
        extents = [extent for extent in grid_of(pattern, relaxed.ranks) if extent > 1]
        super().__init__(relaxed, extents)
        counts = np.unique(relaxed.ranks_on).tolist()
        self._ways = {n: least_met(n, extents) for n in counts}

    def read(self, leaf: LinePrices) -> None:
        """Raise `RefusedError` unless prices are of the dimensions and states that are there."""
        for part in (leaf.cells, leaf.segments):
            if [len(own) for own in part] != [len(self.relaxed.ranks_on)] * len(self.extents):
                raise RefusedError("prices of another number of dimensions or states")
            highest = max((abs(price) for own in part for price in own), default=0)
            require_room(highest, "a price of cells or segments", LARGEST_PRICE)
        if any(price > 0 for own in leaf.segments for price in own):
            raise RefusedError("a segment's price is above 0")

    def refutes(self, leaf: LinePrices, view: View) -> bool:
        """Return whether the cost of all lines exceeds the value of leaves that hold all ranks."""
        cells, segments = (
            np.array(own, dtype=np.int64)[:, view.states] for own in (leaf.cells, leaf.segments)
        )
        wanted = 0
        for dim, extent in enumerate(self.extents):
            least = self._line(view, dim, cells[dim], segments[dim])
            if least is None:
                return True
            wanted += self.relaxed.ranks // extent * least
        most = self.most_worth(view, self._worths(view, cells, segments))
        return most is None or most < wanted

    def _line(self, view: View, dim: int, cell: IntArray, segment: IntArray) -> int | None:
        """Return the least cost of a line of a dimension, None if there is no line."""
        extent, ranks, keeps = self.extents[dim], view.ranks, view.keeps[dim]
        longest = np.where(view.able[dim], ranks, 1)
        longest[keeps] = 0  # theirs are whole lines, below
        most = min(extent, int(longest.max(initial=0)))
        length = np.arange(1, most + 1)[:, None]
        span = np.where(length <= longest, length * cell + segment, _NEVER)
        barrier = np.where(view.beside[dim], 0, _NEVER)
        recent = np.full((most, len(ranks)), _NEVER, dtype=np.int64)  # the last cell's first
        recent[:1] = 0
        end = np.full(len(ranks), _NEVER, dtype=np.int64)
        for _ in range(extent if most else 0):
            end = np.minimum((recent + span).min(axis=0), _NEVER)
            start = np.minimum((end[:, None] + barrier).min(axis=0), _NEVER)
            recent = np.concatenate([start[None], recent[:-1]])
        lines = (extent * cell + segment)[keeps]
        least = int(min(end.min(), lines.min(initial=_NEVER)))
        return least if least < _NEVER // 2 else None

    def _worths(self, view: View, cells: IntArray, segments: IntArray) -> list[int | None]:
        """Return the largest value of the ranks of a leaf, per remaining state, None if impossible.

        Segments cost, so the fewest possible segments have the largest value.
        """
        found: list[int | None] = []
        extents = np.array(self.extents)[:, None]
        for n, of_cell, of_segment, kept in zip(
            view.ranks.tolist(), cells.T, segments.T, view.keeps.T, strict=True
        ):
            own = self._ways[n]
            fits = ((own * extents == n) | ~kept[:, None]).all(axis=0)
            worth = of_segment @ own[:, fits]
            found.append(int(of_cell.sum()) * n + int(worth.max()) if fits.any() else None)
        return found


def least_met(ranks: int, extents: Sequence[int]) -> IntArray:
    """Return how many lines per dimension some cells of a grid may meet, where none is fewer.

    By Loomis and Whitney, the product is at least ``ranks ** (num_dims - 1)``. Shape
    ``(num_dims, num_ways)``.
    """
    cells = math.prod(extents)
    ranges = [np.arange(-(-ranks // n), min(ranks, cells // n) + 1) for n in extents]
    heads = np.meshgrid(*ranges[:-1], indexing="ij") if len(extents) > 1 else []
    product = math.prod(heads, start=np.ones([len(own) for own in ranges[:-1]], dtype=np.int64))
    last = np.maximum(ranges[-1][0], -(-(ranks ** (len(extents) - 1)) // product))
    never = cells + 1
    last = np.where(last <= ranges[-1][-1], last, never)
    fewest = last
    for axis in range(last.ndim):
        fewest = np.minimum.accumulate(fewest, axis=axis)
    least = last < never
    for axis in range(last.ndim):
        before = np.roll(fewest, 1, axis=axis)
        np.moveaxis(before, axis, 0)[0] = never
        least &= last < before
    return np.stack([*(head[least] for head in heads), last[least]])


# ---- Full cubes and rings ------------------------------------------------------------------------

LARGEST_SUM = (1 << 34) + 1
"""Above the multipliers of a tree's leaf together.

A rank needs or gives at most its distances (20 in a cube of 2^20 ranks), so the sum over all ranks
stays below 2^60.
"""


class Sides(BoxRules):
    """A request on a full cube, whose pairs are at distances 1, 2, 4, .., or on a ring."""

    leaf = Needs

    def __init__(self, relaxed: Relaxed, pattern: Pattern) -> None:
        self._is_ring, self._num_dims = pattern is Pattern.RING, len(relaxed.prices)
        # a cube is a box of two layers each way, a ring one of a single line
        super().__init__(relaxed, [relaxed.ranks] if self._is_ring else [2] * self._num_dims)

    def read(self, leaf: Needs) -> None:
        """Raise `RefusedError` unless multipliers are of distances that are there."""
        require_room(sum(abs(m) for _, _, m in leaf.sides), "multipliers of sides", LARGEST_SUM)
        if not all(1 <= dims <= self._num_dims and m >= 0 for dims, _, m in leaf.sides):
            raise RefusedError("a side of unknown distances, or a multiplier below 0")

    def refutes(self, leaf: Needs, view: View) -> bool:
        """Tell whether multipliers rule out what is left."""
        needs, more = np.zeros(len(view.states), dtype=np.int64), 0
        for dims, least, multiplier in leaf.sides:
            side = self._side(view, dims, least)
            needs += multiplier * side
            more += multiplier * self._crowd(view, side)
        found = self.most_worth(view, (-needs).tolist())
        return found is None or found < more

    def _crowd(self, view: View, side: IntArray) -> int:
        """Return what all leaves need more on a ring with assumed bad ones and assumed others.

        Without the ranks near bad leaves, a ring falls into no more pieces than those are. Every
        bad leaf has a piece of its own, and the others, which need and give nothing, have one.
        """
        apart = (side[view.held] > 0).any() and (side[view.held] == 0).any()
        return 2 * int(self._is_ring and apart)

    def _side(self, view: View, dims: int, least: int) -> IntArray:
        """Return what leaves need beyond what they give, per state left, in ranks.

        The pairs of a bad leaf that cross at distances which not all bad ones keep are at least
        all of its ranks' less twice those inside; each takes a rank near the bad ones there.
        """
        beside, ranks = view.beside[:dims], view.ranks
        high = self.relaxed.between.diagonal()[view.states] >= least
        bad = high & ~beside[:, :, high].any(axis=(0, 2))
        free = ~view.keeps[:dims, bad].all(axis=1)
        near = beside[free][:, :, bad].any(axis=2)
        degree = 2 if self._is_ring else 1
        needs: IntArray = -degree * ranks * near.sum(axis=0)
        num_free = int(free.sum())
        closed = dims - num_free
        if self._is_ring:  # fewer ranks than all hold a pair less than they are
            needs[bad] = np.where(ranks[bad] < self.relaxed.ranks, 2 * num_free, 0)
        else:
            inside = _pairs(self.relaxed.ranks >> closed, num_free)[ranks[bad] >> closed] << closed
            needs[bad] = num_free * ranks[bad] - 2 * inside
        return needs


def _pairs(corners: int, dims: int) -> IntArray:
    """Return the most pairs of some distances among x corners, x = 0 .. `corners`.

    By the edge-isoperimetric inequality the first binary numbers have the most.
    """
    number = np.arange(corners)
    ones = sum((number >> bit & 1 for bit in range(dims)), np.zeros_like(number))
    return np.concatenate([[0], np.cumsum(ones)])
