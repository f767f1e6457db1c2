"""Dominance: no best placement is lost, and branches decide what follows from them."""

from __future__ import annotations

import itertools
import random

import pytest

from brute_force import brute_force
from exact_cases import MODES
from random_instances import random_snapshot
from topoplace.certify.packing import certified_bound
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.placement.exact.dominance import Dominance
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference, Leaf, LeafRef, SharedLeaves
from topoplace.snapshot import Snapshot, prepare
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, TorusModel


def row_of(num_routers: int, *queue: Request) -> Snapshot:
    """Return a mesh of one dimension, all free."""
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="row",
        machine=TorusModel(name="row", shape=[num_routers], wrap=[False]),
        queue=list(queue),
    )


def dominance(snapshot: Snapshot) -> Dominance:
    problem = PlacementProblem(prepare(snapshot))
    return Dominance(problem, frozenset(range(len(problem.requests))))


def test_fewer_nodes_more_value_or_the_same_and_earlier_is_preferred() -> None:
    queue = [
        Request(id="a", nodes=4),
        Request(id="b", nodes=4),
        Request(id="urgent", nodes=3, priority=2),
        Request(id="small", nodes=3),
        Request(id="shaped", nodes=4, shapes="4"),
        Request(id="quiet", nodes=4, communication="none"),
    ]
    found = dominance(row_of(9, *queue))
    assert found.better[1] == {0, 2}
    assert found.better[0] == {2}
    assert found.better[3] == {2}  # worth less than a and b: neither way round
    assert found.better[2] == frozenset()
    assert found.better[5] == frozenset()
    assert 4 not in found.better
    assert found.worse[2] == {0, 1, 3}


def test_a_branch_decides_those_that_follow() -> None:
    queue = [Request(id=name, nodes=4) for name in "abcd"]
    snapshot = row_of(9, *queue)
    (out, into), write = dominance(snapshot).branch(Subproblem(), 1)
    assert (out.forced, out.excluded) == (frozenset(), {1, 2, 3})
    assert (into.forced, into.excluded) == ({0, 1}, frozenset())
    # 9 routers at the price of a node each: 9 without branches, 8 with a and b, 4 with a alone
    ref = LeafRef(leaf=0)
    whole = SharedLeaves(leaves=[Leaf(scale=1, prices={"routers": "1*9"})], tree=write(ref, ref))
    instance = read_instance(snapshot, Interference.STRICT)
    proven = certified_bound(TorusOracle(instance), whole, [])
    assert proven is not None
    assert proven.value == 8


@pytest.mark.parametrize("seed", range(40))
def test_some_best_set_of_starts_obeys_the_preferences(seed: int) -> None:
    rng = random.Random(f"dominance-{seed}")
    snapshot = random_snapshot(rng, max_routers=12)
    mode = MODES[seed % 3]
    problem = PlacementProblem(prepare(snapshot), mode)
    best = brute_force(snapshot, mode)[0]
    found = Dominance(problem, frozenset(range(len(problem.requests))))
    instance = read_instance(snapshot, mode)
    free = Leaf(scale=1, prices={})
    # of the sets that obey them, the worst that is not below the best must exist
    obeying = [
        sum(problem.requests[q].value for q in some)
        for k in range(len(problem.requests) + 1)
        for some in itertools.combinations(range(len(problem.requests)), k)
        if all(found.better.get(q, frozenset()) <= set(some) for q in some)
    ]
    assert best in obeying
    # and a tree of them bounds it
    for q in range(len(problem.requests)):
        _, write = found.branch(Subproblem(), q)
        ref = LeafRef(leaf=0)
        tree = SharedLeaves(leaves=[free], tree=write(ref, ref))
        bound = certified_bound(TorusOracle(instance), tree, [])
        assert bound is not None
        assert bound.value >= best
