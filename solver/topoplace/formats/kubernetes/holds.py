"""What holds a job of Kubernetes by what else is in the file: nodes, other jobs, its own pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topoplace.formats.declared import Use, left_out, unknown_fields
from topoplace.formats.kubernetes.fields import KINDS
from topoplace.formats.kubernetes.jobs import KubeJobs, Waiting
from topoplace.formats.kubernetes.nodes import Flavor, KubeNode
from topoplace.formats.kubernetes.objects import KubeObject
from topoplace.formats.kubernetes.podsets import Podset
from topoplace.formats.kubernetes.rules import TAINTS, NodeRules, repelled
from topoplace.snapshot.held import ORDER
from topoplace.snapshot.schema import LeftOut

# ---- Nodes ---------------------------------------------------------------------------------------


class NodeAccess:
    """Which of the open nodes the jobs that wait may use.

    Attributes
    ----------
    closed
        Open nodes that none of them may use, and whether their taints alone keep all away.
    """

    def __init__(self, nodes: Iterable[KubeNode], jobs: KubeJobs) -> None:
        podsets = [podset for own in jobs.waiting.values() for podset in own.podsets]
        every = {podset.rules: None for podset in podsets}
        self.closed: dict[str, bool] = {}
        self._nodes: dict[str, KubeNode] = {}
        self._found: dict[tuple[NodeRules, tuple[tuple[str, int], ...]], list[LeftOut]] = {}
        self._forbidding: dict[NodeRules, dict[str, list[LeftOut]]] = {rules: {} for rules in every}
        for node in nodes:
            found = {rules: rules.forbidding(node) for rules in every}
            if found and all(found.values()):
                by_taints = all(any(one.option == TAINTS for one in own) for own in found.values())
                self.closed[node.name] = by_taints
                continue
            self._nodes[node.name] = node
            for rules, own in found.items():
                if own:
                    self._forbidding[rules][node.name] = own

    def left_out(self, podset: Podset) -> list[LeftOut]:
        """Return what keeps a podset from a node that others may use, and that has room for it."""
        key = podset.rules, tuple(sorted(podset.takes.items()))
        if key not in self._found:
            found: dict[str, LeftOut] = {}
            for name, own in self._forbidding[podset.rules].items():
                if _has_room(self._nodes[name], podset):
                    found = {one.option: one for one in own} | found
            self._found[key] = list(found.values())
        where = podset.rules.where
        return [
            one.model_copy(update={"where": f"{where}.{one.where}"}) for one in self._found[key]
        ]

    def left_out_by_flavors(self, own: Waiting, flavors: Sequence[Flavor]) -> list[LeftOut]:
        """Return if Kueue gives a podset the nodes of one flavor, and none has all that matter."""
        for podset in own.podsets if len(flavors) > 1 else ():
            nodes = [node for node in self._nodes.values() if _has_room(node, podset)]
            if not any(all(map(flavor.has, nodes)) for flavor in flavors):
                return [left_out("flavor", f"one of {len(flavors)}", podset.rules.where)]
        return []


def _has_room(node: KubeNode, podset: Podset) -> bool:
    return all(node.amounts.get(name, 0) >= amount for name, amount in podset.takes.items())


# ---- Jobs ----------------------------------------------------------------------------------------


def left_out_of(
    job: str, jobs: KubeJobs, access: NodeAccess, flavors: Sequence[Flavor]
) -> list[LeftOut]:
    """Return what restricts a job that waits and is not modelled, of no request yet."""
    own = jobs.waiting[job]
    found = [*own.left_out, *repelled([*own.labels], jobs.repelling)]
    for podset in own.podsets:
        found += access.left_out(podset)
    if own.by_kueue:
        found += access.left_out_by_flavors(own, flavors)
    found += _sizes(job, jobs)
    found += _exclusive(job, jobs)
    runs = jobs.num_running.get(job, 0)
    if runs and any(podset.asked or podset.group for podset in own.podsets):
        found.append(left_out("running-pods", f"{runs}", own.podsets[0].rules.where))
    return list({(one.option, one.value): one for one in reversed(found)}.values())[::-1]


def _sizes(job: str, jobs: KubeJobs) -> list[LeftOut]:
    """Return if the file has fewer or more pods of a group than there should be."""
    own = jobs.waiting[job]
    there = sum(podset.count for podset in own.podsets) + jobs.num_running.get(job, 0)
    return [
        left_out(option, f"{size}, not {there}", where)
        for option, (size, where) in own.sizes.items()
        if size != there
    ]


def _exclusive(job: str, jobs: KubeJobs) -> list[LeftOut]:
    """Return if a job has domains for itself, but may share them with others in the file.

    Pods of a LeaderWorkerSet or a JobSet keep others of their kind away, and nobody else.
    """
    own = jobs.waiting[job].schemes
    if not own:
        return []
    others: set[str | None] = {*jobs.schemes.values()}
    for one in jobs.waiting.values():
        others |= one.schemes or {None}
    podsets = jobs.waiting[job].podsets
    if others == own and all("exclusive" in podset.asked for podset in podsets):
        return []
    level = min(own).partition("=")[2]
    where = podsets[0].rules.where
    return [left_out("exclusive-topology", f"{level}, beside others", where)]


# ---- The whole file ------------------------------------------------------------------------------


def left_out_of_all(objects: Sequence[KubeObject], jobs: KubeJobs) -> list[LeftOut]:
    """Return what is not modelled and is of no job alone: it holds nobody."""
    found = []
    if len(jobs.waiting) > 1:
        found.append(left_out(ORDER, "by priority, then age", "pods and workloads"))
    alone = [job for job in jobs.admitted if job not in jobs.running]
    if alone:
        names = ", ".join(alone)
        found.append(left_out("admission", f"of {names}, of which no pod runs", "workloads"))
    quotas: dict[str, list[str]] = {}
    options = {field.name: field.held_by for field in KINDS.fields if field.use is Use.RESTRICTS}
    for one in objects:
        if one.kind in options:
            name = one.section("metadata").get("name")
            quotas.setdefault(options[one.kind], []).append(f"{one.kind} {name}")
    found += [left_out(option, f"of {', '.join(of)}", "objects") for option, of in quotas.items()]
    kinds = KINDS.unknown(one.kind for one in objects)
    return [*found, *unknown_fields([*jobs.unknown, *(f"kind {kind}" for kind in kinds)])]
