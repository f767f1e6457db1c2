"""The nogoods of a cube as a certificate states them."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.placement.tree.exact.cubes.proof import Branch, Empty, Proof
from topoplace.placement.tree.exact.cubes.refuter import CubeRefuter
from topoplace.result.tree import CubeBranch, CubeEmpty, CubeNeeds, CubeNogood


def cube_nogoods_of(refuter: CubeRefuter, values: Sequence[int]) -> list[CubeNogood]:
    """Return the nogoods found, in numbers of ascending values that thresholds can have."""
    number = {value: n for n, value in enumerate(values)}
    return [
        CubeNogood(at=nogood.at.tolist(), proof=_tree(nogood.proof, number))
        for nogood in refuter.nogoods
    ]


def _tree(proof: Proof, number: dict[int, int]) -> CubeNeeds | CubeEmpty | CubeBranch:
    if isinstance(proof, Branch):
        without, more = _tree(proof.without, number), _tree(proof.more, number)
        return CubeBranch(state=proof.state, without=without, more=more)
    if isinstance(proof, Empty):
        return CubeEmpty()
    sides = [(side.dims, number[side.least], by) for side, by in proof.sides]
    return CubeNeeds(sides=sides)
