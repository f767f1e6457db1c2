"""Nodes of Kubernetes in the domains of Kueue's Topology or of Volcano's HyperNodes."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from topoplace.errors import InputError
from topoplace.formats.kubernetes.objects import (
    Condition,
    Kube,
    KubeModel,
    KubeObject,
    Meta,
    Quantities,
    Toleration,
    base_units,
    quantity,
)
from topoplace.formats.kubernetes.topologies import topologies_meant
from topoplace.formats.text import require_once
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.schema import HierarchyModel, HostsModel, Name

HOSTNAME = "kubernetes.io/hostname"
KUEUE, KAI, VOLCANO = "kueue.x-k8s.io", "kai.scheduler", "topology.volcano.sh"

_MOST_RESOURCES = 16
_MOST_LEVELS = 15  # above the hosts
_LONGEST = 128
_VALUE = re.compile(rf"[A-Za-z0-9_.-]{{1,{_LONGEST}}}")


class Taint(KubeModel):
    """What keeps pods away that do not tolerate it."""

    key: str
    value: str | None = None
    effect: str


class _NodeSpec(KubeModel):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class _NodeStatus(KubeModel):
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None


class _Node(KubeModel):
    metadata: Meta
    spec: _NodeSpec = Field(default_factory=_NodeSpec)
    status: _NodeStatus = Field(default_factory=_NodeStatus)


@dataclass(frozen=True)
class KubeNode:
    """A node: its labels, what there is of every resource, and whether pods may come.

    The field ``metadata.name`` is among the labels, with a colon, as no label has one.
    """

    name: str
    labels: Mapping[str, str]
    amounts: Mapping[str, int]
    is_open: bool
    taints: tuple[Taint, ...]


def nodes_of(objects: Iterable[KubeObject]) -> list[KubeNode]:
    """Return the nodes among some objects, in their order."""
    found = []
    place_of: dict[str, str] = {}
    for one in objects:
        if one.kind == "Node" and not one.group:
            node = one.checked_as(_Node)
            with one.blamed():
                require_once(place_of, node.metadata.name, one.place, "node", field="metadata.name")
                if _VALUE.fullmatch(node.metadata.name) is None:
                    expected = "a name of at most 128 letters, digits, '.' and '-'"
                    raise InputError(expected, field="metadata.name", value=node.metadata.name)
                found.append(_node(node))
    return found


def _node(node: _Node) -> KubeNode:
    amounts = {}
    for name, text in (node.status.allocatable or {}).items():
        field = f"status.allocatable.{name}"
        amounts[name] = base_units(name, quantity(text, field), field, up=False)
    conditions = {one.type: one.status for one in node.status.conditions or ()}
    ready = conditions.get("Ready", "True" if not conditions else "Unknown") == "True"
    return KubeNode(
        node.metadata.name,
        (node.metadata.labels or {}) | {"metadata.name:": node.metadata.name},
        amounts,
        ready and not node.spec.unschedulable,
        tuple(node.spec.taints or ()),
    )


# ---- Levels, and the domains of every node -------------------------------------------------------


class Flavor(KubeModel):
    """Nodes that Kueue takes for one: it gives a podset those of one flavor."""

    name: str = ""
    node_labels: Annotated[dict[str, str] | None, Field(alias="nodeLabels")] = None
    taints: Annotated[list[Taint] | None, Field(alias="nodeTaints")] = None
    topology: Annotated[str | None, Field(alias="topologyName")] = None
    tolerations: list[Toleration] | None = None

    def has(self, node: KubeNode) -> bool:
        """Whether a node is of the flavor."""
        return (self.node_labels or {}).items() <= node.labels.items()


@dataclass(frozen=True)
class Domains:
    """Levels above the hosts, top first, by node the names of its domains, and Kueue's flavors.

    `tiers` are those of Volcano: each with the reason why it is no level, or nothing if it is one.
    `others` are the topologies of the file that are left out.
    `tier_names` are the tiers by name, and `marks` more labels of nodes, as `inside_label`.
    """

    name: str
    levels: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...]]
    source: str
    flavors: tuple[Flavor, ...] = ()
    others: tuple[str, ...] = ()
    tiers: Mapping[int, str] = field(default_factory=dict)
    tier_names: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class _Level(KubeModel):
    node_label: Annotated[Name, Field(alias="nodeLabel")]


class _TopologySpec(KubeModel):
    levels: Annotated[list[_Level], Field(min_length=1, max_length=16)]


class _FlavorObject(KubeModel):
    metadata: Meta
    spec: Flavor = Field(default_factory=Flavor)


def domains_of(
    objects: Sequence[KubeObject], nodes: Sequence[KubeNode], wanted: str | None
) -> Domains:
    """Return the domains of nodes: of Kueue's Topology, or else of Volcano's HyperNodes.

    Nodes of Kueue are those with all labels of the levels, and with those of a ResourceFlavor of
    the topology, if any is there.

    Parameters
    ----------
    wanted
        The name of the Topology, where there are several; or, with commas between them, labels of
        nodes that make the levels instead.

    Raises
    ------
    InputError
        If there is neither, or which one is meant is neither said nor clear by the jobs.
    """
    topologies = [one for one in objects if one.group in (KUEUE, KAI) and one.kind == "Topology"]
    hypers = [one for one in objects if (one.group, one.kind) == (VOLCANO, "HyperNode")]
    if hypers and not topologies and wanted is None:
        return _of_hyper_nodes(hypers, nodes)
    levels: dict[str, list[str]] = {}
    for one in topologies:
        levels.setdefault(one.checked_as(Kube[_TopologySpec, Any]).metadata.name, _labels_of(one))
    if wanted is not None and wanted not in levels and (not levels or _all_known(wanted, nodes)):
        return _of_wanted_labels(wanted, nodes)
    if not levels:
        near = ",".join(_likely_labels(nodes)) or "zone,rack"
        expected = (
            f"a Topology of Kueue or KAI, HyperNodes of Volcano, or labels of nodes, as FILE:{near}"
        )
        raise InputError(expected, found="none of these")
    if wanted is not None and wanted not in levels:
        expected = f"one of {', '.join(levels)}"
        raise InputError(expected, field="--topology", value=wanted, known=levels)
    names = topologies_meant(objects, levels) if wanted is None else [wanted]
    labels, flavors = levels[names[0]], _flavors(objects, names)
    own = (node for node in nodes if not flavors or any(flavor.has(node) for flavor in flavors))
    return Domains(
        names[0],
        tuple(labels),
        _paths(labels, own),
        "a Topology of Kueue",
        flavors,
        others=tuple(name for name in levels if name not in names),
    )


def _flavors(objects: Iterable[KubeObject], topologies: Sequence[str]) -> tuple[Flavor, ...]:
    """Return the flavors of topologies."""
    flavors = (
        one.checked_as(_FlavorObject)
        for one in objects
        if (one.group, one.kind) == (KUEUE, "ResourceFlavor")
    )
    return tuple(
        one.spec.model_copy(update={"name": one.metadata.name})
        for one in flavors
        if one.spec.topology in topologies
    )


def _labels_of(topology: KubeObject) -> list[str]:
    """Return the labels of the levels above the hosts."""
    model = topology.checked_as(Kube[_TopologySpec, Any])
    labels = [level.node_label for level in model.spec.levels]
    with topology.blamed():
        for idx, label in enumerate(labels):
            field = f"spec.levels[{idx}].nodeLabel"
            if label in labels[:idx]:
                raise InputError("each label once", field=field, value=label)
            if label == HOSTNAME and idx + 1 < len(labels):
                raise InputError("the hosts as the last level", field=field, value=label)
    return labels[:-1] if labels[-1] == HOSTNAME else labels


def _paths(labels: Sequence[str], nodes: Iterable[KubeNode]) -> dict[str, tuple[str, ...]]:
    """Return the values of labels by node, of the nodes that have them all."""
    paths = {node.name: tuple(node.labels.get(label, "") for label in labels) for node in nodes}
    return {name: path for name, path in paths.items() if all(map(_VALUE.fullmatch, path))}


# ---- Labels that somebody names, where there is no Topology --------------------------------------

_MOST_LIKELY = 4


def _meant(name: str, keys: Iterable[str]) -> list[str]:
    """Return the labels that a name such as ``rack`` may stand for: itself, or one that ends so."""
    if name in keys:
        return [name]
    if name in ("host", "hostname"):
        return [HOSTNAME]
    return [key for key in keys if re.search(rf"[/-]{re.escape(name)}$", key)]


def _keys_of(nodes: Iterable[KubeNode]) -> list[str]:
    return sorted({key for node in nodes for key in node.labels})


def _all_known(wanted: str, nodes: Sequence[KubeNode]) -> bool:
    keys = _keys_of(nodes)
    return all(_meant(name, keys) for name in wanted.split(","))


def _of_wanted_labels(wanted: str, nodes: Sequence[KubeNode]) -> Domains:
    keys, labels = _keys_of(nodes), list[str]()
    for name in wanted.split(","):
        found = _meant(name, keys)
        if len(found) != 1 or found[0] in labels:
            expected = f"one label, not {' and '.join(found)}" if found else "a label of nodes"
            expected = "each label once" if len(found) == 1 else expected
            raise InputError(expected, field="--levels", value=name, known=keys)
        labels += found
    if HOSTNAME in labels[:-1]:
        raise InputError("the hosts as the last level", field="--levels", value=wanted)
    above = tuple(label for label in labels if label != HOSTNAME)
    return Domains("labels", above, _paths(above, nodes), "labels of nodes")


def _likely_labels(nodes: Sequence[KubeNode]) -> list[str]:
    """Return labels that part the nodes into domains within domains, the largest first."""
    values = {
        key: [node.labels.get(key) for node in nodes] for key in _keys_of(nodes) if key != HOSTNAME
    }
    sizes = {key: len({*own}) for key, own in values.items() if None not in own}
    found: list[str] = []
    for key in sorted((key for key in sizes if 1 < sizes[key] < len(nodes)), key=sizes.__getitem__):
        above = [values[one] for one in found]
        if len({*zip(*above, values[key], strict=True)}) == sizes[key]:
            found.append(key)
    return found[-_MOST_LIKELY:]


# ---- Volcano: HyperNodes of tiers, with nodes or other HyperNodes in them ------------------------


class _Exact(KubeModel):
    name: str


class _Regex(KubeModel):
    pattern: str


class Expression(KubeModel):
    """What the value of a label has to be."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether it is so for these labels."""
        there, among = self.key in labels, labels.get(self.key) in (self.values or ())
        answers = {"In": among, "NotIn": not among, "Exists": there, "DoesNotExist": not there}
        return answers[self.operator]


class Labels(KubeModel):
    """A selector of labels."""

    match_labels: Annotated[dict[str, str] | None, Field(alias="matchLabels")] = None
    expressions: Annotated[list[Expression] | None, Field(alias="matchExpressions")] = None


class _Selector(KubeModel):
    exact: Annotated[_Exact | None, Field(alias="exactMatch")] = None
    regex: Annotated[_Regex | None, Field(alias="regexMatch")] = None
    labels: Annotated[Labels | None, Field(alias="labelMatch")] = None


class _Member(KubeModel):
    type: Literal["Node", "HyperNode"]
    selector: _Selector


class _HyperSpec(KubeModel):
    tier: Annotated[int, Field(ge=1, le=1000)]
    tier_name: Annotated[str | None, Field(alias="tierName")] = None
    members: list[_Member] = Field(default_factory=list)


_HyperNode = Kube[_HyperSpec, Any]


def tier_level(tier: int) -> str:
    """Return the level of HyperNodes of a tier."""
    return f"tier{tier}"


def _of_hyper_nodes(objects: Sequence[KubeObject], nodes: Sequence[KubeNode]) -> Domains:
    """Return tiers as levels, the highest first.

    Where a node is in no HyperNode of a tier, it has a domain there with whatever of lower tiers
    it is in, or of its own. Volcano takes HyperNodes that share nodes, which no level can say: a
    tier with these is left out.
    """
    hypers: dict[str, _HyperNode] = {}
    places: dict[str, str] = {}
    for one in objects:
        hyper = one.checked_as(_HyperNode)
        with one.blamed():
            name = hyper.metadata.name
            require_once(places, name, one.place, "HyperNode", field="metadata.name")
            if len(name) > _LONGEST:
                expected = f"a name of at most {_LONGEST} characters"
                raise InputError(expected, field="metadata.name", value=name)
            hypers[name] = hyper
    member_of: dict[str, dict[int, list[str]]] = {node.name: {} for node in nodes}
    below: dict[str, set[str]] = {}
    for one in sorted(objects, key=lambda one: hypers[one.value["metadata"]["name"]].spec.tier):
        hyper = hypers[one.value["metadata"]["name"]]
        with one.blamed():
            below[hyper.metadata.name] = _nodes_below(hyper, hypers, below, nodes)
        for node in below[hyper.metadata.name]:
            member_of[node].setdefault(hyper.spec.tier, []).append(hyper.metadata.name)
    tiers: dict[int, str] = {}
    for tier in sorted({hyper.spec.tier for hyper in hypers.values()}):
        inside = {name: own for name, own in below.items() if hypers[name].spec.tier <= tier}
        lost = {name for name in inside if tiers.get(hypers[name].spec.tier)}
        tiers[tier] = _no_level(tier, inside, lost, member_of)
    kept = sorted((tier for tier in tiers if not tiers[tier]), reverse=True)
    if len(kept) > _MOST_LEVELS:
        raise InputError(f"at most {_MOST_LEVELS} tiers", field="spec.tier", found=str(len(kept)))
    named = {(own.spec.tier_name, own.spec.tier) for own in hypers.values() if own.spec.tier_name}
    times = Counter(name for name, _ in named)
    return Domains(
        "hypernodes",
        tuple(map(tier_level, kept)),
        {node: _tier_path(node, own, kept) for node, own in member_of.items()},
        "HyperNodes of Volcano",
        tiers=tiers,
        tier_names={name: tier for name, tier in named if times[name] == 1},
        marks={
            node: {inside_label(tier_level(tier)): "yes" for tier in kept if min(own) <= tier}
            for node, own in member_of.items()
            if own
        },
    )


def inside_label(level: str) -> str:
    """Return what marks the nodes that are in a HyperNode of a tier or of a lower one.

    No label has such a name.
    """
    return f"HyperNode:{level}"


def _tier_path(
    node: str, own: Mapping[int, Sequence[str]], tiers: Sequence[int]
) -> tuple[str, ...]:
    path, last = [], node
    for tier in reversed(tiers):
        last = own.get(tier, (last,))[0]
        path.append(last)
    return tuple(reversed(path))


def _no_level(
    tier: int,
    inside: Mapping[str, Iterable[str]],
    lost: Iterable[str],
    member_of: Mapping[str, Mapping[int, Sequence[str]]],
) -> str:
    """Return why being in one HyperNode of a tier or of a lower one is no level; else nothing.

    Parameters
    ----------
    inside
        The nodes of the HyperNodes of this and of lower tiers.
    lost
        Those of lower tiers that are no levels.
    """
    for name, nodes in inside.items():
        found: dict[tuple[str, ...], str] = {}
        for node in sorted(nodes):
            found.setdefault(tuple(member_of[node].get(tier, ())), node)
        for several in (own for own in found if len(own) > 1):
            return f"{found[several]} is in {several[0]} and {several[1]}"
        if len(found) > 1 or (name in lost and () in found):
            return f"{name} is not within one of its HyperNodes"
    return ""


def _nodes_below(
    hyper: _HyperNode,
    hypers: Mapping[str, _HyperNode],
    below: Mapping[str, set[str]],
    nodes: Sequence[KubeNode],
) -> set[str]:
    labels = {node.name: node.labels for node in nodes}
    found: set[str] = set()
    for idx, member in enumerate(hyper.spec.members):
        field = f"spec.members[{idx}].selector"
        if member.type == "Node":
            found |= {n for n in labels if _selected(member.selector, n, labels[n], field)}
            continue
        chosen = [n for n in hypers if _selected(member.selector, n, {}, field)]
        if not chosen and member.selector.exact is not None:
            name = member.selector.exact.name
            raise InputError("a HyperNode that is there", field=field, value=name, known=hypers)
        for name in chosen:
            if hypers[name].spec.tier >= hyper.spec.tier:
                expected = f"HyperNodes of tiers below {hyper.spec.tier}"
                raise InputError(expected, field=field, value=name)
            found |= below[name]
    return found


def _selected(selector: _Selector, name: str, labels: Mapping[str, str], field: str) -> bool:
    """Tell whether a selector, which is of one kind, selects a node or a HyperNode."""
    given = [x for x in (selector.exact, selector.regex, selector.labels) if x is not None]
    if len(given) != 1:
        expected = "one of exactMatch, regexMatch, labelMatch"
        raise InputError(expected, field=field, found=str(len(given)))
    if selector.exact is not None:
        return selector.exact.name == name
    if selector.regex is not None:
        try:
            return re.search(selector.regex.pattern, name) is not None
        except re.error as error:
            expected = f"a regular expression ({error})"
            raise InputError(expected, field=field, value=selector.regex.pattern) from None
    return selector.labels is not None and labels_match(selector.labels, labels)


def labels_match(wanted: Labels, labels: Mapping[str, str]) -> bool:
    """Tell whether labels are those that a selector wants."""
    return (wanted.match_labels or {}).items() <= labels.items() and all(
        one.holds(labels) for one in wanted.expressions or ()
    )


# ---- The machine ---------------------------------------------------------------------------------


def machine_of_nodes(
    domains: Domains, nodes: Sequence[KubeNode], asked: Iterable[str] = ()
) -> HierarchyModel:
    """Return nodes in their domains, with what they have of every resource that any has.

    Resources that are asked for and that no node has are there too, with nothing of them.
    """
    known = [node for node in nodes if node.name in domains.paths]
    if not known:
        expected = f"nodes with the labels {', '.join(domains.levels)}"
        raise InputError(expected, field="items", found="none")
    there = {name for node in known for name, amount in node.amounts.items() if amount}
    resources = sorted({*there, *asked})
    if len(resources) > _MOST_RESOURCES:
        expected = f"at most {_MOST_RESOURCES} resources"
        raise InputError(expected, field="status.allocatable", value=", ".join(resources))
    if not resources:
        raise InputError("nodes with status.allocatable", field="items", found="none")

    def alike(node: KubeNode) -> tuple[tuple[str, ...], list[int]]:
        return domains.paths[node.name], [node.amounts.get(name, 0) for name in resources]

    hosts = [
        HostsModel(
            hosts=format_host_list(node.name for node in group),
            domains=list(path),
            capacity=dict(zip(resources, amounts, strict=True)),
        )
        for (path, amounts), group in itertools.groupby(known, key=alike)
    ]
    return HierarchyModel(
        kind="hierarchy",
        name=domains.name,
        levels=[*domains.levels, HOSTNAME],
        hosts=hosts,
        source=domains.source,
    )


EFFECTS = frozenset({"NoSchedule", "NoExecute", "PreferNoSchedule"})
"""What a taint can do."""


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Any]) -> list[Taint]:
    """Return the taints of a node that keep a pod with these tolerations away."""
    hard = [taint for taint in taints if taint.effect in {"NoSchedule", "NoExecute"}]
    return [taint for taint in hard if not any(_tolerates(one, taint) for one in tolerations)]


def _tolerates(toleration: Any, taint: Taint) -> bool:
    if toleration.effect not in (None, "", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in (None, "", taint.key)
    return toleration.key == taint.key and (toleration.value or "") == (taint.value or "")
