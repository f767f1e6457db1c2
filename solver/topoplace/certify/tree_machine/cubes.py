"""Following the nogoods of a request on a cube (docs/proofs-tree.md, "Relaxation")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.certify.integers import IntArray, require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.holding import most_worth, work_of_holding
from topoplace.certify.tree_machine.instance import Wish
from topoplace.certify.tree_machine.line_states import Assumed, LineStates, View
from topoplace.certify.tree_machine.relaxed import CUBES, Relaxed
from topoplace.result.tree import CubeBranch, CubeEmpty, CubeNeeds, CubeNogood

MOST_PARTS = 100_000
"""Of all trees together."""

MOST_WORK = 300_000_000_000
"""Additions, of all trees together: some minutes."""

MOST_DEPTH = 150
MOST_STATES = 600
MOST_RANKS = 1 << 20
LARGEST_SUM = (1 << 34) + 1
"""Above the multipliers of a tree's leaf together.

A rank needs or gives at most its distances, of which a cube of `MOST_RANKS` has 20, so that all
ranks together do so below 2^60.
"""

_Tree = CubeNeeds | CubeEmpty | CubeBranch


class Cubes:
    """One request on a full cube, alone with the running jobs.

    Raises
    ------
    RefusedError
        If it has any other pattern, or is larger than can be followed.
    """

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        full = wish.nodes > 1 and wish.nodes & (wish.nodes - 1) == 0
        if not full or any(use.pattern not in CUBES for use in wish.patterns):
            raise RefusedError(f"{wish.id} has patterns beside those of one full cube")
        if len(relaxed.states) > MOST_STATES or wish.nodes > MOST_RANKS:
            raise RefusedError(f"more than {MOST_STATES} states or {MOST_RANKS} ranks")
        self._num_dims = wish.nodes.bit_length() - 1
        self._ranks = wish.nodes
        self._num_values = len(relaxed.values)
        number = {value: n for n, value in enumerate(relaxed.values)}
        kinds = [relaxed.kind(state) for state in relaxed.states]
        self._key = np.array([number[relaxed.between[kind, kind]] for kind in kinds])
        # a cube is a grid of two layers each way
        self._states = LineStates(relaxed, [2] * self._num_dims)
        self._parts = self._work = 0

    def follow(self, nogoods: Sequence[CubeNogood]) -> None:
        """Raise `RefusedError` unless every nogood is right."""
        for number, nogood in enumerate(nogoods):
            if len(nogood.at) != self._num_dims:
                raise RefusedError("a nogood has another number of distances")
            if not all(0 <= at < self._num_values for at in nogood.at):
                raise RefusedError("a nogood names an unknown value")
            nothing = Assumed((0,) * len(self._key))
            if not self._refutes(nogood.proof, nogood.at, nothing, 0):
                raise RefusedError(f"nogood {number} rules out thresholds that are possible")

    def _refutes(self, tree: _Tree, most: Sequence[int], assumed: Assumed, depth: int) -> bool:
        """Tell whether a tree rules out thresholds."""
        self._parts += 1
        if self._parts > MOST_PARTS or depth > MOST_DEPTH:
            raise RefusedError(f"trees of more than {MOST_PARTS} parts or {MOST_DEPTH} levels")
        if isinstance(tree, CubeBranch):
            if not 0 <= tree.state < len(self._key):
                raise RefusedError("a branch is on an unknown state")
            without, more = assumed.without(tree.state), assumed.more(tree.state)
            return self._refutes(tree.without, most, without, depth + 1) and self._refutes(
                tree.more, most, more, depth + 1
            )
        self._work += work_of_holding(self._states, self._ranks)
        if self._work > MOST_WORK:
            raise RefusedError(f"more than {MOST_WORK} additions")
        view = self._states.view(most, assumed)
        if view is None or isinstance(tree, CubeEmpty):
            return view is None
        worths = -self._needs(tree, view)
        found = most_worth(self._states, view, worths.tolist(), self._ranks)
        return found is None or found < 0

    def _needs(self, tree: CubeNeeds, view: View) -> IntArray:
        """Return what leaves need beyond what they give, by multipliers, per state left."""
        needs = np.zeros(len(view.states), dtype=np.int64)
        require_room(sum(abs(m) for _, _, m in tree.sides), "multipliers of sides", LARGEST_SUM)
        for dims, least, multiplier in tree.sides:
            if not 1 <= dims <= self._num_dims or multiplier < 0:
                raise RefusedError("a side of unknown distances, or a multiplier below 0")
            needs += multiplier * self._side(view, dims, least)
        return needs

    def _side(self, view: View, dims: int, least: int) -> IntArray:
        """Return the same for one side, in ranks.

        The pairs of a bad leaf that cross at distances which not all bad ones keep are at least
        all of its ranks' less twice those inside; each takes a rank near the bad ones there.
        """
        beside = view.beside[:dims]
        high = self._key[view.states] >= least
        bad = high & ~beside[:, :, high].any(axis=(0, 2))
        free = ~view.keeps[:dims, bad].all(axis=1)
        ranks = self._states.ranks[view.states]
        near = beside[free][:, :, bad].any(axis=2)
        needs: IntArray = -ranks * near.sum(axis=0)
        num_free = int(free.sum())
        closed = dims - num_free
        inside = _pairs(self._ranks >> closed, num_free)[ranks[bad] >> closed] << closed
        needs[bad] = num_free * ranks[bad] - 2 * inside
        return needs


def _pairs(corners: int, dims: int) -> IntArray:
    """Return the most pairs of some distances among x corners, x = 0 .. `corners`.

    By the edge-isoperimetric inequality the first binary numbers have as many.
    """
    number = np.arange(corners)
    ones = sum((number >> bit & 1 for bit in range(dims)), np.zeros_like(number))
    return np.concatenate([[0], np.cumsum(ones)])
