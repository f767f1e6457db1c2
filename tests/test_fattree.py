"""Fat trees whose jobs own their links: brute force, routing, the checker, and large trees."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

import topoplace as tp
from tiny_fattrees import best, demands, matrices, random_tree, routed
from topoplace.certify.fattree.check import joined, require_routed
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.machine import parse_node_set
from topoplace.placement.fattree.routing import routed as routed_by
from topoplace.placement.fattree.routing import routes_of
from topoplace.placement.fattree.state import prepare
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import solve


def tiny(seed: int) -> Snapshot:
    return random_tree(random.Random(f"fat-tree-{seed}"))


# ---- The solver ---------------------------------------------------------------------------------


def hold_as_brute_force(seed: int) -> None:
    snapshot = tiny(seed)
    result = solve(prepare(snapshot), "exact")
    assert tuple(level.objective for level in result.levels) == best(snapshot), seed
    assert [level.status for level in result.levels] == ["optimal", "optimal"], seed
    assert tp.check(result).holds, seed


@pytest.mark.parametrize("seed", range(25))
def test_exact_is_brute_force(seed: int) -> None:
    hold_as_brute_force(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_exact_is_brute_force_on_300(part: int) -> None:
    for seed in range(1000 + 30 * part, 1030 + 30 * part):
        hold_as_brute_force(seed)


# ---- Whether a place is accepted, and whether all permutations can be routed in it --------------


def jobs(most_nodes: int, most_leaves: int = 16) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the nodes of jobs on their leaves, and the ports of these, by trees of equal leaves."""
    for ports in range(1, most_nodes // 2 + 1):
        for leaves in range(2, min(most_nodes // ports, most_leaves) + 1):
            for sizes in itertools.combinations_with_replacement(range(ports, 0, -1), leaves):
                yield sizes, ports


def is_routable(
    pods: Sequence[int],
    sizes: Sequence[int],
    switches: Sequence[frozenset[int]],
    spines: dict[tuple[int, int], frozenset[int]],
) -> bool:
    return all(routed(pods, switches, spines, demand) for demand in demands(sizes))


def hold_on_two_levels(most_nodes: int) -> int:
    seen = 0
    for sizes, ports in jobs(most_nodes):
        if sizes[0] < ports:
            continue  # the tree of leaves with fewer ports had it
        for switches in matrices(sizes, ports):
            accepted = joined([*zip(sizes, switches, strict=True)])
            assert accepted == is_routable([0] * len(sizes), sizes, switches, {}), (sizes, switches)
            seen += 1
    return seen


def test_two_levels_are_accepted_exactly_if_all_permutations_can_be_routed() -> None:
    assert hold_on_two_levels(8) > 500


# ---- Routing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_job_is_routed_on_its_own_links(seed: int) -> None:
    rng = random.Random(seed)
    spec = ("fattree:4", "fattree:6", "fattree:3x4:4", "fattree:5x2x3:3x2")[seed % 4]
    model = tp.Model(spec)
    for k in range(6):
        model.add_request(f"job{k}", rng.randint(2, 12))
    result = tp.place(model, "first-fit")
    tree = result.instance.machine.tree
    for one in result.solution.placements:
        nodes, links = numbers(one.nodes), tree.rows(one.links, "links")
        for _ in range(20):
            permutation = dict(zip(nodes, rng.sample(nodes, len(nodes)), strict=True))
            rows = routed_by(tree, links, [*permutation.items()])
            routes = [(*pair, own) for pair, own in zip(permutation.items(), rows, strict=True)]
            require_routed(tree, links, routes)
        for used in [own for own in routes if own[2]][:1]:
            with pytest.raises(RefusedError):
                require_routed(tree, links[1:], [(*used[:2], [links[0], *used[2][1:]])])
            with pytest.raises(RefusedError):
                require_routed(tree, links, [used, used])


def test_routes_by_their_names() -> None:
    model = tp.Model("fattree:2x2:2")
    model.add_request("a", 3)
    result = tp.place(model)
    assert [(p.nodes, p.links) for p in result.solution.placements] == [("0-2", "leaf[0-1]-0")]
    assert routes_of(result, "a", {0: 2, 1: 0, 2: 1}) == {
        0: ["leaf0-0", "leaf1-0"],
        1: [],
        2: ["leaf1-0", "leaf0-0"],
    }
    with pytest.raises(InputError, match="a permutation of the nodes 0-2"):
        routes_of(result, "a", {0: 2, 1: 0})


def numbers(text: str) -> list[int]:
    found: list[int] = parse_node_set(text, 1 << 16).tolist()
    return found
