"""Which Topology is meant where a file has several: that of the jobs in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topoplace.errors import InputError
from topoplace.formats.declared import values_at
from topoplace.formats.kubernetes.fields import KAI_TOPOLOGY, KUEUE
from topoplace.formats.kubernetes.objects import KubeObject

_MOST_NAMED = 3


def topologies_meant(
    objects: Sequence[KubeObject], levels: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the topologies that jobs need: several only if their levels are the same.

    A queue of Kueue offers flavors, and each names its topology; jobs of KAI name theirs. What
    waits decides; if nothing does, everything; if nothing names one, the flavors.

    Parameters
    ----------
    levels
        The labels of each topology.

    Raises
    ------
    InputError
        If several are needed that differ, with what needs each.
    """
    flavors = {
        str(one.section("metadata").get("name")): str(one.section("spec").get("topologyName"))
        for one in objects
        if (one.group, one.kind) == (KUEUE, "ResourceFlavor")
    }
    needed = [own for own in _needed(objects, flavors) if own[1] in levels]
    needed = [own for own in needed if own[0]] or needed
    names = {name for _, name, _ in needed} or {*flavors.values()} & {*levels} or {*levels}
    if len({tuple(levels[name]) for name in names}) == 1:
        return [name for name in levels if name in names]
    choices = []
    for name in levels:
        by = sorted({who for _, own, who in needed if own == name})
        shown = ", ".join(by[:_MOST_NAMED]) + (", ..." if len(by) > _MOST_NAMED else "")
        choices.append(f"{name} (needed by {shown})" if by else name)
    expected = f"the name of one topology of {', '.join(choices)}"
    raise InputError(expected, field="--topology", found="nothing")


def _needed(
    objects: Sequence[KubeObject], flavors: Mapping[str, str]
) -> Iterator[tuple[bool, str, str]]:
    """Yield whether something waits, the topology that it needs, and its queue or itself."""
    of_cluster, of_local = dict[str, list[str]](), dict[tuple[str, str], str]()
    for one in objects:
        name, spec = str(one.section("metadata").get("name")), one.section("spec")
        if (one.group, one.kind) == (KUEUE, "ClusterQueue"):
            offered = values_at(spec, "resourceGroups[].flavors[].name")
            of_cluster[name] = [flavors[own] for own in map(str, offered) if own in flavors]
        elif (one.group, one.kind) == (KUEUE, "LocalQueue"):
            of_local[_namespace(one), name] = str(spec.get("clusterQueue"))
    for one in objects:
        queue = _said(one, f"{KUEUE}/queue-name")
        if (one.group, one.kind) == (KUEUE, "Workload"):
            queue = one.section("spec").get("queueName") or queue
        cluster = of_local.get((_namespace(one), str(queue)), "")
        for name in of_cluster.get(cluster, ()):
            yield _waits(one), name, f"queue {_namespace(one)}/{queue}"
        named = _said(one, KAI_TOPOLOGY)
        if one.kind == "PodGroup" and named is None:
            named = next(values_at(one.section("spec"), "topologyConstraint.topology"), None)
        if named is not None:
            yield _waits(one), str(named), one.title or one.place


def _waits(one: KubeObject) -> bool:
    spec, status = one.section("spec"), one.section("status")
    if one.kind == "Workload":
        return not status.get("admission")
    return bool(spec.get("suspend")) if "suspend" in spec else not spec.get("nodeName")


def _namespace(one: KubeObject) -> str:
    return str(one.section("metadata").get("namespace") or "default")


def _said(one: KubeObject, key: str) -> object:
    """Return the value of a label or an annotation."""
    kinds = (one.section("metadata").get(kind) for kind in ("labels", "annotations"))
    return next((own[key] for own in kinds if isinstance(own, dict) and key in own), None)
