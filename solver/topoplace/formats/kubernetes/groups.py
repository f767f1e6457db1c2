"""PodGroups, with the groups that they are in, and sub-groups, as parts of a request.

A sub-group is in one domain of a level, and so may be those of one parent, or all pods. A part has
one group that shares a domain, so what only one part is about becomes a segment of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from topoplace.errors import number_of
from topoplace.formats.declared import left_out
from topoplace.formats.kubernetes.fields import GANGS, KAI
from topoplace.formats.kubernetes.kinds import Count, NetworkTopology, Others
from topoplace.formats.kubernetes.nodes import Labels, labels_match
from topoplace.formats.kubernetes.objects import IN_A_NAME, Kube, KubeModel, KubeObject, PodSpec
from topoplace.formats.kubernetes.podsets import Podset
from topoplace.formats.yaml_text import Parsed
from topoplace.snapshot.schema import LeftOut, Segment

_SUB_GROUP = f"{KAI}/subgroup-name"

# ---- What PodGroups say --------------------------------------------------------------------------


class _Constraint(KubeModel):
    topology: str | None = None
    required: Annotated[str | None, Field(alias="requiredTopologyLevel")] = None
    preferred: Annotated[str | None, Field(alias="preferredTopologyLevel")] = None


class _SubGroup(KubeModel):
    """A sub-group of KAI: of pods, or of other sub-groups."""

    name: str
    parent: str | None = None
    least: Annotated[Count | None, Field(alias="minMember")] = None
    children: Annotated[Count | None, Field(alias="minSubGroup")] = None
    constraint: Annotated[_Constraint | None, Field(alias="topologyConstraint")] = None


class _Match(KubeModel):
    key: Annotated[str, Field(alias="labelKey")]


class _Policy(KubeModel):
    """Sub-groups of Volcano: pods that labels select, by the values of other labels."""

    name: str = ""
    selector: Annotated[Labels | None, Field(alias="labelSelector")] = None
    label_keys: Annotated[list[str] | None, Field(alias="matchLabelKeys")] = None
    match: Annotated[list[_Match] | None, Field(alias="matchPolicy")] = None
    size: Annotated[Count | None, Field(alias="subGroupSize")] = None
    least: Annotated[Count | None, Field(alias="minSubGroups")] = None
    topology: Annotated[NetworkTopology | None, Field(alias="networkTopology")] = None

    @property
    def keys(self) -> list[str]:
        """The labels whose values make the sub-groups."""
        return [*(self.label_keys or ()), *(one.key for one in self.match or ())]


class PodGroupSpec(KubeModel):
    """What a PodGroup says of its pods."""

    topology: Annotated[NetworkTopology | None, Field(alias="networkTopology")] = None
    constraint: Annotated[_Constraint | None, Field(alias="topologyConstraint")] = None
    sub_groups: Annotated[list[_SubGroup] | None, Field(alias="subGroups")] = None
    children: Annotated[Count | None, Field(alias="minSubGroup")] = None
    policies: Annotated[list[_Policy] | None, Field(alias="subGroupPolicy")] = None
    tasks: Annotated[dict[str, Count] | None, Field(alias="minTaskMember")] = None

    def member(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the sub-group of a pod: nothing if it is in none."""
        name = labels.get(_SUB_GROUP)
        if self.sub_groups:
            return () if name is None else (name,)
        for idx, own in enumerate(self.policies or ()):
            if own.selector is None or labels_match(own.selector, labels):
                return str(idx), *(labels.get(key, "") for key in own.keys)
        return ()


PodGroup = Kube[PodGroupSpec, Any]

# ---- Gangs of Kubernetes itself ------------------------------------------------------------------


class _Least(KubeModel):
    least: Annotated[Count, Field(alias="minCount")]


class _StartPolicy(KubeModel):
    gang: _Least | None = None


class _Key(KubeModel):
    """A topology constraint, as one of the two versions has it."""

    key: str = ""
    old: Annotated[str, Field(alias="topologyKey")] = ""


class _Constraints(KubeModel):
    topology: list[_Key] | None = None
    old: Annotated[list[_Key] | None, Field(alias="topologyConstraints")] = None


class _GroupSpec(KubeModel):
    """What groups of pods, and groups of such groups, say alike."""

    parent: Annotated[str | None, Field(alias="parentCompositePodGroupName")] = None
    constraints: Annotated[_Constraints | None, Field(alias="schedulingConstraints")] = None
    priority: int | None = None
    priority_class: Annotated[str | None, Field(alias="priorityClassName")] = None

    @property
    def keys(self) -> list[str]:
        """The labels in one domain of which all pods are."""
        own = self.constraints or _Constraints()
        return [one.key or one.old for one in (*(own.topology or ()), *(own.old or ()))]

    def level(self, levels: Sequence[str]) -> str | None:
        """Return the level in one domain of which all pods are; None if there is no such rule."""
        if len(self.keys) > 1 or not {*self.keys} <= {*levels}:
            raise NotModelledError("schedulingConstraints", ", ".join(self.keys))
        return next(iter(self.keys), None)


class GangSpec(_GroupSpec):
    """What a PodGroup of Kubernetes, or a group of its Workload, says of its pods."""

    policy: Annotated[_StartPolicy | None, Field(alias="schedulingPolicy")] = None
    old: Annotated[_StartPolicy | None, Field(alias="policy")] = None

    @property
    def least(self) -> int | None:
        """How many pods have to start together; None if each starts for itself."""
        policy = self.policy or self.old
        return None if policy is None or policy.gang is None else policy.gang.least


class _LeastGroups(KubeModel):
    least: Annotated[Count, Field(alias="minGroupCount")]


class _GroupsPolicy(KubeModel):
    gang: _LeastGroups | None = None


class CompositeSpec(_GroupSpec):
    """What a CompositePodGroup says of the groups that name it as their parent."""

    policy: Annotated[_GroupsPolicy, Field(alias="schedulingPolicy")] = _GroupsPolicy()


CompositePodGroup = Kube[CompositeSpec, Any]


@dataclass(frozen=True)
class Composite:
    """A CompositePodGroup: its children, and the object, None if it is not in the file."""

    name: str
    one: KubeObject | None
    spec: CompositeSpec
    children: frozenset[str]


def composites_of(gang: Gang, others: Others, namespace: str) -> list[Composite]:
    """Return the groups of groups that a gang is in, up to the highest that decides anything."""
    found: list[Composite] = []
    name = gang.spec.parent
    while name is not None:
        one = others.get(f"{GANGS}/CompositePodGroup", name, namespace)
        again = name in {own.name for own in found}  # which Kubernetes calls invalid
        spec = CompositeSpec() if one is None else one.checked_as(CompositePodGroup).spec
        children = others.children(name, namespace)
        found.append(Composite(name, None if again else one, spec, children))
        name = None if again else spec.parent
    while found and found[-1].one and not found[-1].spec.policy.gang and not found[-1].spec.keys:
        found.pop()  # its groups start each for itself
    return found


@dataclass(frozen=True)
class Gang:
    """The group of a pod.

    Attributes
    ----------
    name
        Its name in the namespace.
    one, where, raw
        The object that says what it is, None if it is not in the file; where in it, and what.
    """

    name: str
    one: KubeObject | None = None
    where: str = "spec"
    raw: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def spec(self) -> GangSpec:
        """What is read of it; nothing if it is not in the file."""
        with nullcontext() if self.one is None else self.one.blamed(self.where):
            return Parsed(self.raw, {}).validated(GangSpec)


def gang_of(spec: PodSpec, others: Others, namespace: str) -> Gang | None:
    """Return the group of Kubernetes that a pod is of."""
    own, of = spec.scheduling_group, spec.workload_ref
    if own is not None and own.name is not None:
        one = others.get(f"{GANGS}/PodGroup", own.name, namespace)
        return Gang(own.name, one, raw={} if one is None else one.section("spec"))
    if of is None:
        return None
    name = ".".join(filter(None, (of.name, of.group, of.replica)))
    one = others.get(f"{GANGS}/Workload", of.name, namespace)
    groups = None if one is None else one.section("spec").get("podGroups")
    for idx, raw in enumerate(groups if isinstance(groups, list) else ()):
        if isinstance(raw, dict) and raw.get("name") == of.group:
            return Gang(name, one, f"spec.podGroups[{idx}]", raw)
    return Gang(name)


class NotModelledError(Exception):
    """Names the option that holds a job, as parts cannot say its sub-groups, and its value."""

    def __init__(self, option: str, value: str) -> None:
        super().__init__(option, value)
        self.option, self.value = option, value

    def held_by(self, where: str) -> LeftOut:
        """Return what holds the job."""
        return left_out(self.option, self.value, where)


@dataclass(frozen=True)
class _Leaf:
    """The pods of a sub-group, the level of its domain, and the sub-groups around that have one."""

    podsets: tuple[Podset, ...]
    level: str | None
    around: tuple[tuple[str, str], ...]


Tier = Callable[[NetworkTopology | None], str | None]
"""Returns the level that is hard for pods of Volcano."""


def parts_of(
    spec: PodGroupSpec, podsets: Sequence[Podset], levels: Sequence[str], topology: str, tier: Tier
) -> list[Podset]:
    """Return the podsets of a group as those of its sub-groups, with the domains of these.

    Raises
    ------
    NotModelledError
        With an option and its value, if the parts of a request cannot say it.
    """
    members: dict[tuple[str, ...], list[Podset]] = {}
    for podset in podsets:
        members.setdefault(podset.member, []).append(podset)
    whole = podsets[0].asked.get("required") if podsets[0].group == "job" else None
    root = () if whole is None else (("job", str(whole)),)
    if spec.sub_groups:
        leaves = list(_of_kai(spec, members, root, _Known(levels, topology)))
    else:
        leaves = list(_of_volcano(spec, members, root, tier))
    return _parts(leaves, levels)


def parts_of_composites(
    gangs: Mapping[str, tuple[Gang, Sequence[Composite]]],
    podsets: Sequence[Podset],
    levels: Sequence[str],
) -> list[Podset]:
    """Return the podsets of gangs that start together, with the domains of all groups.

    Parameters
    ----------
    gangs
        The gangs below the highest group by their names, each with the groups it is in.

    Raises
    ------
    NotModelledError
        With an option and its value, if fewer pods or groups may start, or as `parts_of` has it.
    """
    leaves, there = list[_Leaf](), dict[str, set[str]]()
    for name, (gang, above) in gangs.items():
        own = tuple(podset for podset in podsets if podset.member == (name,))
        number = sum(podset.count for podset in own)
        if gang.spec.least != number:
            raise NotModelledError("minCount", f"{gang.spec.least or 'basic'} of {number}, {name}")
        around = [(one.name, one.spec.level(levels)) for one in above]
        wanted = tuple((node, level) for node, level in around if level is not None)
        leaves.append(_Leaf(own, gang.spec.level(levels), wanted))
        for child, parent in zip((name, *(one.name for one in above)), above, strict=False):
            there.setdefault(parent.name, set()).add(child)
    for one in {one.name: one for _, above in gangs.values() for one in above}.values():
        if one.one is None:
            raise NotModelledError("CompositePodGroup", one.name)
        least = 0 if one.spec.policy.gang is None else one.spec.policy.gang.least
        if {*one.children} != there[one.name] or least != len(one.children):
            text = f"{least} of {len(one.children)}, {len(there[one.name])} of them with pods"
            raise NotModelledError("minGroupCount", text)
    return _parts(leaves, levels)


def _parts(leaves: Sequence[_Leaf], levels: Sequence[str]) -> list[Podset]:
    """Return podsets with the domains that sub-groups say; those that are alike are one."""
    for own in (podset for leaf in leaves for podset in leaf.podsets):
        if own.group != "job" and {"required", "segments"} & own.asked.keys():
            raise NotModelledError("subGroups", "of pods with a topology of their own")
    alike = Counter(map(_key, leaves))
    first = {_key(leaf): leaf for leaf in reversed(leaves)}
    found: list[tuple[Podset, list[tuple[str, int]], tuple[tuple[str, str], ...]]] = []
    for key, times in alike.items():
        leaf = first[key]
        if len(leaf.podsets) == 1:
            (own,) = leaf.podsets
            part = replace(own, count=own.count * times)
            found.append((part, [(leaf.level, own.count)] if leaf.level else [], leaf.around))
            continue
        for copy in range(times):
            name = f"{leaf.podsets[0].name}{copy}"
            around = (*leaf.around, (f"of {name}", leaf.level)) if leaf.level else leaf.around
            found += [(own, [], around) for own in leaf.podsets]
    shared = Counter(node for _, _, around in found for node in around)
    return [
        _part(own, rules, around, shared, levels, k) for k, (own, rules, around) in enumerate(found)
    ]


def _key(leaf: _Leaf) -> Hashable:
    plain = (replace(own, name="", member=()) for own in leaf.podsets)
    return leaf.level, leaf.around, tuple((p.count, tuple(p.takes.items()), p.rules) for p in plain)


def _part(
    own: Podset,
    rules: list[tuple[str, int]],
    around: tuple[tuple[str, str], ...],
    shared: Mapping[tuple[str, str], int],
    levels: Sequence[str],
    number: int,
) -> Podset:
    """Return a part with its segments, and with its group if others are in one domain with it."""
    groups = [node for node in around if shared[node] > 1]
    if len(groups) > 1:
        raise NotModelledError("subGroups", "one in another, each in one domain")
    rules = rules + [(level, own.count) for node, level in around if shared[node, level] == 1]
    if groups:  # a domain within that of the group is all that can matter
        rules = [one for one in rules if levels.index(one[0]) > levels.index(groups[0][1])]
    kept: list[tuple[str, int]] = []
    for level, size in sorted(rules, key=lambda rule: (-rule[1], -levels.index(rule[0]))):
        if not kept or levels.index(level) > levels.index(kept[-1][0]):
            kept.append((level, size))
    asked: dict[str, Any] = {
        key: own.asked[key] for key in ("preferred", "apart") if key in own.asked
    }
    if kept and kept[0][1] == own.count and not groups:
        asked["required"] = kept.pop(0)[0]
    if kept:
        asked["segments"] = [Segment(size=size, level=level) for level, size in reversed(kept)]
    group = None
    if groups:
        group, asked["required"] = groups[0]
    group = group if group is None or IN_A_NAME.fullmatch(group) else group.replace(" ", "-")
    return replace(own, name=f"pods{number or ''}", asked=asked, group=group)


# ---- KAI -----------------------------------------------------------------------------------------


class _Known:
    """The levels of the machine, for constraints of its topology."""

    def __init__(self, levels: Sequence[str], topology: str) -> None:
        self._levels, self._topology = levels, topology

    def level(self, constraint: _Constraint | None) -> str | None:
        """Return the level that a constraint requires."""
        if constraint is None or constraint.required is None:
            return None
        if constraint.topology not in (None, "", self._topology) or (
            constraint.required not in self._levels
        ):
            raise NotModelledError("subGroups", f"{constraint.topology} {constraint.required}")
        return constraint.required


def _of_kai(
    spec: PodGroupSpec,
    members: Mapping[tuple[str, ...], list[Podset]],
    root: tuple[tuple[str, str], ...],
    known: _Known,
) -> Iterator[_Leaf]:
    of = {own.name: own for own in spec.sub_groups or ()}
    children = Counter(own.parent for own in of.values())
    for parent, least in (
        (None, spec.children),
        *((own.name, own.children) for own in of.values()),
    ):
        if least is not None and least != children[parent]:
            raise NotModelledError("minSubGroup", f"{least} of {children[parent]}")
    for name in [own.name for own in of.values() if not children[own.name]]:
        there = sum(podset.count for podset in members.get((name,), ()))
        least = of[name].least
        if least not in (None, there) or not there:
            raise NotModelledError("subGroups", f"{name}: {least}, not {there}")
    for member, podsets in members.items():
        own = of.get(member[0]) if member else None
        around, at = [*root], None if own is None else of.get(own.parent or "")
        seen: set[str] = set()
        while at is not None and at.name not in seen:
            seen.add(at.name)
            level = known.level(at.constraint)
            around += [] if level is None else [(at.name, level)]
            at = of.get(at.parent or "")
        level = None if own is None else known.level(own.constraint)
        yield _Leaf(tuple(podsets), level, tuple(around))


# ---- Volcano -------------------------------------------------------------------------------------


def _of_volcano(
    spec: PodGroupSpec,
    members: Mapping[tuple[str, ...], list[Podset]],
    root: tuple[tuple[str, str], ...],
    tier: Tier,
) -> Iterator[_Leaf]:
    policies = spec.policies or []
    sub_groups = Counter(member[0] for member in members if member)
    for idx, own in enumerate(policies):
        there = sub_groups[str(idx)]
        if own.least not in (None, there) or not there:
            raise NotModelledError("subGroupPolicy", f"{own.least} of {there}")
    for member, podsets in members.items():
        policy = policies[int(member[0])] if member else None
        there = sum(podset.count for podset in podsets)
        if policy is not None and policy.size not in (None, there):
            raise NotModelledError(
                "subGroupPolicy", f"{number_of(there, 'pod')}, not {policy.size}"
            )
        yield _Leaf(tuple(podsets), None if policy is None else tier(policy.topology), root)
