"""What a tree of partial mappings proves of hop-bytes (docs/proofs/graphs.md, "Trees")."""

from __future__ import annotations

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.mapping.instance import Instance, directed_volumes, mutual_volumes
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.result.certificate import unpacked
from topoplace.result.mapping import TREE_ROUTERS, TREE_TASKS, TreeCertificate
from topoplace.types import IntArray


def tree_value(instance: Instance, certificate: TreeCertificate) -> int:
    """Return the hop-bytes that a tree of partial mappings proves of any mapping."""
    tasks = np.union1d(instance.sources, instance.targets)
    routers = np.flatnonzero(instance.capacity)
    if not 1 <= len(tasks) <= TREE_TASKS or len(routers) > TREE_ROUTERS:
        raise RefusedError(
            f"{number_of(len(tasks), 'task')} with messages on {number_of(len(routers), 'router')}"
        )
    sent = np.zeros((len(tasks), len(tasks)), dtype=np.int64)
    ends = (np.searchsorted(tasks, end) for end in (instance.sources, instance.targets))
    np.add.at(sent, tuple(ends), instance.sizes)
    hops = instance.machine.hops(routers[:, None], routers[None, :])
    symmetric = (hops == hops.T).all()
    weights = np.stack([sent + sent.T] if symmetric else [sent, sent.T])
    distances = np.stack([hops] if symmetric else [hops, hops.T])
    # twice every cost, once more where linear and quadratic costs are added, and differences
    farthest = max(1, int(hops.max()))
    require_room(8 * instance.total * farthest * len(tasks), "bytes times distances")
    rooms = np.minimum(instance.capacity[routers], len(tasks))
    guests = _symmetries(certificate.guests, weights[0], np.zeros(len(tasks), dtype=int), "guest")
    hosts = _symmetries(certificate.hosts, hops, rooms, "host")
    nodes = unpacked(certificate.nodes, certificate.size, "nodes")
    if int(nodes.min()) < -len(routers) or int(nodes.max()) > len(tasks):
        raise RefusedError("a node branches on what is not there to branch on")
    from topoplace.certify.mapping._kernels import LONG, SHORT, WRONG, least_of_leaves  # noqa: PLC0415 - heavy

    twice = int(least_of_leaves(weights, distances, rooms, guests, hosts, nodes))
    reasons = {
        WRONG: "a node branches on what is not there to branch on",
        SHORT: "the tree ends before all its branches do",
        LONG: "the tree has nodes beyond its end",
    }
    if twice in reasons:
        raise RefusedError(reasons[twice])
    volumes = mutual_volumes(instance) if symmetric else directed_volumes(instance)[0]
    return volumes.rounded_up(twice, 2)


def _symmetries(lists: list[list[int]], matrix: IntArray, colour: IntArray, name: str) -> IntArray:
    """Return permutations in rows; refuse what changes a matrix, or the colour of a row."""
    num = len(matrix)
    for row in lists:
        if sorted(row) != list(range(num)):
            raise RefusedError(f"a {name} symmetry is not a list of all {num}")
        turn = np.array(row, dtype=np.int64)
        if (matrix[np.ix_(turn, turn)] != matrix).any() or (colour[turn] != colour).any():
            raise RefusedError(f"a {name} symmetry changes what it should not")
    return np.array(lists, dtype=np.int64).reshape(-1, num)
