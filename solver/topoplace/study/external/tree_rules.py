"""Whether an answer for a tree machine keeps the rules of docs/proofs-tree.md, and if not why."""

from __future__ import annotations

import numpy as np

from topoplace.snapshot.tree_state import TreeRequest, TreeState
from topoplace.study.external.schema import TreePlacedJob, TreePlacements
from topoplace.study.external.verdict import MAX_BREACHES, Breach


def tree_breaches(state: TreeState, answer: TreePlacements) -> list[Breach]:
    """Return the rules an answer breaks, at most about `MAX_BREACHES`; none if it is a solution."""
    judge = _Judge(state)
    for placement in answer.placements:
        judge.judge(placement)
        if len(judge.breaches) >= MAX_BREACHES:
            break
    return judge.breaches


class _Judge:
    """Collects the breaches of an answer, placement by placement."""

    def __init__(self, state: TreeState) -> None:
        self.breaches: list[Breach] = []
        self._state = state
        self._requests = {request.id: request for request in state.requests}
        self._numbers = {name: node for node, name in enumerate(state.tree.node_names)}
        self._running = {int(node): job.id for job in state.running for node in job.nodes}
        self._taken: dict[int, str] = {}
        self._placed: set[str] = set()

    def judge(self, placement: TreePlacedJob) -> None:
        """Judge a placement beside the running jobs and the placements before it."""
        name = placement.request
        request = self._requests.get(name)
        if request is None:
            running = any(job.id == name for job in self._state.running)
            self._breach(name, "runs already" if running else "is no request of the queue")
            return
        if name in self._placed:
            self._breach(name, "is placed twice")
            return
        self._placed.add(name)
        if len(placement.nodes) != request.nodes:
            self._breach(name, f"has {len(placement.nodes)} nodes and wants {request.nodes}")
        for node in placement.nodes:
            self._take(name, node)
            if len(self.breaches) >= MAX_BREACHES:
                return
        if request.intensive:
            self._judge_leaves(request, placement)

    def _take(self, request: str, name: str) -> None:
        node = self._numbers.get(name)
        if node is None:
            self._breach(request, f"has {name}, which is no node of the machine", name)
        elif self._taken.get(node) == request:
            self._breach(request, f"has node {name} twice", name)
        elif node in self._taken:
            self._breach(request, f"has node {name} of {self._taken[node]}", name)
        elif node in self._running:
            self._breach(
                request, f"has node {name}, held by running job {self._running[node]}", name
            )
        elif not self._state.free[node]:
            self._breach(request, f"has node {name}, which is down", name)
        if node is not None:
            self._taken.setdefault(node, request)

    def _judge_leaves(self, request: TreeRequest, placement: TreePlacedJob) -> None:
        tree = self._state.tree
        nodes = [self._numbers[name] for name in placement.nodes if name in self._numbers]
        leaves, first = np.unique(tree.leaf_of_node[nodes], return_index=True)
        apart = np.argwhere(tree.common_level[np.ix_(leaves, leaves)] == 0)
        if len(apart):
            one, other = (tree.node_names[nodes[first[k]]] for k in apart[0])
            self._breach(
                request.id, f"communicates between {one} and {other}: no switch is above both", one
            )

    def _breach(self, request: str, text: str, node: str | None = None) -> None:
        self.breaches.append(Breach(f"{request} {text}", request, node))
