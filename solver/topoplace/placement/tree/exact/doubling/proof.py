"""Why thresholds are impossible: a refutation, or one for either side of branches on states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topoplace.placement.tree.exact.doubling.kernels.refuting import Refutation


@dataclass(frozen=True)
class Branch:
    """No leaf more in a state than those held, or one more."""

    state: int
    without: Proof
    more: Proof


Proof = Refutation | Branch


def tree_of(parts: Iterator[Refutation | int]) -> Proof:
    """Return a tree from its parts, a state of every branch, then its sides, `without` first."""
    part = next(parts)
    if isinstance(part, Refutation):
        return part
    without = tree_of(parts)
    return Branch(part, without, tree_of(parts))


def num_parts(proof: Proof) -> int:
    """Return how many branches and refutations a tree has."""
    if isinstance(proof, Branch):
        return 1 + num_parts(proof.without) + num_parts(proof.more)
    return 1
