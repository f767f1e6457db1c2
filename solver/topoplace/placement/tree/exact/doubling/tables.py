"""What the compiled loops read: numbers per state and step, as numba takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding._kernels import NEVER
from topoplace.placement.tree.exact.job import Job

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Tables(NamedTuple):
    """States of a job and its steps.

    Attributes
    ----------
    first
        First state of every type, and the end; ranks ascend.
    ranks, leaf_type, inside, key
        Per state: ranks on the leaf, its type, hops inside, hops to another leaf in the same state.
    pair
        Hops between leaves in two states, `NEVER` if there is only one leaf of the kind.
    multiplicity, held
        Leaves per type, and whether none of them may be without ranks.
    active
        Active ranks before every step and at the end.
    idle
        Active ranks without a child in every step.
    """

    first: IntArray
    ranks: IntArray
    leaf_type: IntArray
    inside: IntArray
    key: IntArray
    pair: IntArray
    multiplicity: IntArray
    held: BoolArray
    active: IntArray
    idle: IntArray


class Standing(NamedTuple):
    """What thresholds leave: states, and what they do in every step.

    Attributes
    ----------
    alive
        Which states have a plan left.
    closed, able
        Per step, whether a state has no partner leaf, and whether it may have pairs inside;
        shape ``(num_steps, num_states)``.
    short, spare
        Per state, ranks fewer than the most that leaves of its type can hold, and how many all
        leaves together lack: two leaves that lack more do not go together.
    full
        Per type, whether none of its leaves can be without ranks.
    """

    alive: BoolArray
    closed: BoolArray
    able: BoolArray
    short: IntArray
    spare: int
    full: BoolArray


class Cuts(NamedTuple):
    """Per inequality its step, the least key of its states, the bad ones and their partners."""

    step: IntArray
    least: IntArray
    bad: BoolArray
    near: BoolArray


def tables_of(job: Job) -> Tables:
    """Return the states and steps of a job whose only pattern is binomial."""
    states = job.states
    pairs = np.array([len(step.pairs) for step in job.steps], dtype=np.int64)
    active = np.concatenate([[1], 1 + np.cumsum(pairs)]).astype(np.int64)
    lone = (states.multiplicity == 1)[states.type]
    same = states.type[:, None] == states.type
    return Tables(
        first=states.first.astype(np.int64),
        ranks=states.count.astype(np.int64),
        leaf_type=states.type.astype(np.int64),
        inside=states.inside[states.kind].astype(np.int64),
        key=states.key.astype(np.int64),
        pair=np.where(same & lone, NEVER, states.crossing[np.ix_(states.kind, states.kind)]),
        multiplicity=states.multiplicity,
        held=np.zeros(len(states.multiplicity), dtype=np.bool_),
        active=active,
        idle=active[:-1] - pairs,
    )
