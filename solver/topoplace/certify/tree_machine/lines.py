"""Following the nogoods of a request on a grid (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.instance import Wish
from topoplace.certify.tree_machine.line_prices import LARGEST_PRICE, MOST_RANKS, Weights
from topoplace.certify.tree_machine.line_states import Assumed, LineStates
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.certify.tree_machine.steps import GRIDS, grid_of
from topoplace.certify.tree_machine.transversal import has_cheap_one
from topoplace.result.tree import LineBranch, LineEmpty, LineNogood, LinePrices

MOST_PARTS = 200_000
"""Of all trees together."""

MOST_WORK = 300_000_000_000
"""Additions, of all trees together: some minutes."""

MOST_DEPTH = 150
MOST_STATES = 600

_Tree = LinePrices | LineEmpty | LineBranch


class Lines:
    """One request on a grid whose lines are cut into segments of leaves, with the running jobs.

    Raises
    ------
    RefusedError
        If it has any other pattern, or is larger than can be followed.
    """

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        patterns = {use.pattern for use in wish.patterns}
        if len(patterns) != 1 or not patterns <= GRIDS.keys() or wish.nodes == 1:
            raise RefusedError(f"{wish.id} has patterns beside one grid, or a single rank")
        if len(relaxed.states) > MOST_STATES or wish.nodes > MOST_RANKS:
            raise RefusedError(f"more than {MOST_STATES} states or {MOST_RANKS} ranks")
        grid = grid_of(patterns.pop(), wish.nodes)
        self._relaxed = relaxed
        self._extents = [extent for extent in grid if extent > 1]
        self._states = LineStates(relaxed, self._extents)
        self._weights = Weights(self._states, self._extents, wish.nodes)
        self._parts = self._work = 0
        self._right: set[str] = set()

    def follow(self, nogoods: Sequence[LineNogood], bound: Fraction) -> None:
        """Raise `RefusedError` unless every nogood is right and together they prove the bound."""
        if len(nogoods) > MOST_PARTS:
            raise RefusedError(f"more than {MOST_PARTS} nogoods")
        for number, nogood in enumerate(nogoods):
            if not self._is_right(nogood):
                raise RefusedError(f"nogood {number} rules out thresholds that are possible")
        costs, least = self._relaxed.costs(bound)
        every = [0] * len(costs), [len(self._relaxed.values) - 1] * len(costs)
        if has_cheap_one(costs, [nogood.at for nogood in nogoods], least, [every]):
            raise RefusedError(f"thresholds that cost less than {bound} are not ruled out")

    def _is_right(self, nogood: LineNogood) -> bool:
        """Tell whether the tree rules out the thresholds; of nogoods alike one is followed."""
        dims = range(len(self._extents))
        if len(nogood.at) != len(dims):
            raise RefusedError("a nogood has another number of steps")
        if not all(0 <= at < len(self._relaxed.values) for at in nogood.at):
            raise RefusedError("a nogood names an unknown value")
        # Dimensions of one extent can be exchanged.
        order = sorted(dims, key=lambda dim: (-self._extents[dim], nogood.at[dim]))
        self._read(nogood.proof, 0)
        most = [nogood.at[dim] for dim in order]
        proof = _permuted(nogood.proof, order)
        name = f"{most} {proof.model_dump_json()}"
        if name not in self._right:
            if not self._refutes(proof, most, Assumed((0,) * len(self._relaxed.states))):
                return False
            self._right.add(name)
        return True

    def _read(self, tree: _Tree, depth: int) -> None:
        """Raise `RefusedError` unless a tree speaks of dimensions and states that are there."""
        self._parts += 1
        if self._parts > MOST_PARTS or depth > MOST_DEPTH:
            raise RefusedError(f"trees of more than {MOST_PARTS} parts or {MOST_DEPTH} levels")
        num_states = len(self._relaxed.states)
        if isinstance(tree, LineBranch):
            if not 0 <= tree.state < num_states:
                raise RefusedError("a branch is on an unknown state")
            self._read(tree.without, depth + 1)
            self._read(tree.more, depth + 1)
        elif isinstance(tree, LinePrices):
            for part in (
                tree.cells,
                tree.segments,
                tree.cells if tree.wholes is None else tree.wholes,
            ):
                if [len(own) for own in part] != [num_states] * len(self._extents):
                    raise RefusedError("prices of another number of dimensions or states")
                highest = max((abs(price) for own in part for price in own), default=0)
                require_room(highest, "a price of cells or segments", LARGEST_PRICE)
            if any(price > 0 for own in tree.segments for price in own):
                raise RefusedError("a segment's price is above 0")

    def _refutes(self, tree: _Tree, most: Sequence[int], assumed: Assumed) -> bool:
        """Tell whether a tree rules out thresholds."""
        if isinstance(tree, LineBranch):
            without, more = assumed.without(tree.state), assumed.more(tree.state)
            return self._refutes(tree.without, most, without) and self._refutes(
                tree.more, most, more
            )
        self._work += self._weights.work
        if self._work > MOST_WORK:
            raise RefusedError(f"more than {MOST_WORK} additions")
        view = self._states.view(most, assumed)
        if view is None or isinstance(tree, LineEmpty):
            return view is None
        cells = np.array(tree.cells, dtype=np.int64)[:, view.states]
        segments = np.array(tree.segments, dtype=np.int64)[:, view.states]
        wholes = None
        if tree.wholes is not None:
            wholes = np.array(tree.wholes, dtype=np.int64)[:, view.states]
        return self._weights.too_dear(view, cells, segments, wholes)


def _permuted(tree: _Tree, order: Sequence[int]) -> _Tree:
    """Return a tree with its dimensions in another order."""
    if isinstance(tree, LineBranch):
        without, more = _permuted(tree.without, order), _permuted(tree.more, order)
        return LineBranch(state=tree.state, without=without, more=more)
    if isinstance(tree, LinePrices):
        cells = [tree.cells[dim] for dim in order]
        segments = [tree.segments[dim] for dim in order]
        wholes = None if tree.wholes is None else [tree.wholes[dim] for dim in order]
        return LinePrices(cells=cells, segments=segments, wholes=wholes)
    return tree
