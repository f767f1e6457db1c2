"""Where Kueue has assigned the pods of admitted Workloads, and what of it no pod takes yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import Field

from topoplace.errors import InputError, number_of
from topoplace.formats.declared import left_out
from topoplace.formats.kubernetes.nodes import HOSTNAME, KubeNode
from topoplace.formats.kubernetes.objects import KubeModel
from topoplace.formats.kubernetes.podsets import MAX_COUNT
from topoplace.snapshot.held import ASSIGNMENT
from topoplace.snapshot.schema import LeftOut

_Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Amounts = dict[str, dict[str, int]]
"""By host, what is taken of it."""

# ---- The status of a Workload --------------------------------------------------------------------


class _Domain(KubeModel):
    values: list[str]
    count: _Count


class _Individual(KubeModel):
    prefix: str | None = None
    suffix: str | None = None
    roots: list[str]


class _LevelValues(KubeModel):
    universal: str | None = None
    individual: _Individual | None = None

    @property
    def all(self) -> list[str] | None:
        """The values of every domain, None if all have one."""
        own = self.individual
        if own is None:
            return None
        return [f"{own.prefix or ''}{root}{own.suffix or ''}" for root in own.roots]


class _PodCounts(KubeModel):
    universal: _Count | None = None
    individual: list[_Count] | None = None


class _Slice(KubeModel):
    """Domains of one list, with what they have in common said once."""

    number: Annotated[int, Field(alias="domainCount", ge=1, le=MAX_COUNT)]
    levels: Annotated[list[_LevelValues], Field(alias="valuesPerLevel")]
    pods: Annotated[_PodCounts, Field(alias="podCounts")]

    def domains(self) -> Iterator[tuple[Sequence[str], int]]:
        """Yield the domains with their pods."""
        columns = [_column(own.all, own.universal, self.number) for own in self.levels]
        counts = _column(self.pods.individual, self.pods.universal, self.number)
        yield from zip(zip(*columns, strict=True), counts, strict=True)


_Value = TypeVar("_Value")


def _column(each: list[_Value] | None, every: _Value | None, number: int) -> list[_Value]:
    if each is None and every is not None:
        return [every] * number
    if each is None or len(each) != number:
        found = number_of(len(each or ()), "value")
        raise InputError(
            f"{number_of(number, 'value')}, or one for all", field="slices", found=found
        )
    return each


class TopologyAssignment(KubeModel):
    """How many pods of a podset are in which domains: a list, or slices of one."""

    levels: Annotated[list[str], Field(min_length=1)]
    listed: Annotated[list[_Domain] | None, Field(alias="domains")] = None
    slices: list[_Slice] | None = None

    def domains(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield the domains with their pods.

        Raises
        ------
        InputError
            If neither form is there, or a domain has another number of values than of levels.
        """
        if not self.listed and not self.slices:
            raise InputError("domains or slices", found="neither")
        every: list[tuple[Sequence[str], int]] = [(d.values, d.count) for d in self.listed or ()]
        for own in self.slices or ():
            every += own.domains()
        for values, count in every:
            if len(values) != len(self.levels):
                expected = number_of(len(self.levels), "value")
                raise InputError(expected, field="domains", value=", ".join(values))
            yield tuple(values), count


class _PodSetAssignment(KubeModel):
    name: str = "main"
    count: _Count | None = None
    topology: Annotated[TopologyAssignment | None, Field(alias="topologyAssignment")] = None


class Admission(KubeModel):
    """What Kueue gave to a Workload, and from which ClusterQueue."""

    queue: Annotated[str | None, Field(alias="clusterQueue")] = None
    pod_sets: Annotated[list[_PodSetAssignment], Field(alias="podSetAssignments")] = Field(
        default_factory=list
    )


# ---- What of it no pod takes yet -----------------------------------------------------------------


@dataclass(frozen=True)
class AssignedPods:
    """So many pods of a podset in a domain: the values of its levels, and what each pod takes."""

    levels: tuple[str, ...]
    values: tuple[str, ...]
    count: int
    takes: Mapping[str, int]


@dataclass
class AssignedPodset:
    """Pods of an admitted Workload that have domains.

    Attributes
    ----------
    pods
        How many of them are where.
    there, ended
        What they take of their nodes, and what those took that have ended well.
    wanted, reclaimable
        How many there are in all, and how many of them have ended and are not made again. An
        assignment is of those that had not ended when it was made.
    """

    pods: list[AssignedPods] = field(default_factory=list)
    there: Amounts = field(default_factory=dict)
    ended: Amounts = field(default_factory=dict)
    wanted: int = 0
    reclaimable: int = 0

    def add(self, other: AssignedPodset) -> None:
        """Add those of another podset."""
        self.pods += other.pods
        for own, more in ((self.there, other.there), (self.ended, other.ended)):
            for host, amounts in more.items():
                add_amounts(own, host, amounts)
        self.wanted += other.wanted
        self.reclaimable += other.reclaimable


@dataclass
class Assigned:
    """An admitted Workload whose pods have domains.

    Attributes
    ----------
    job
        Its name as a job.
    where
        Where it stands in the file.
    podsets
        Its podsets that have domains, by name.
    others
        Its pods that do not say of which podset they are.
    """

    job: str
    where: str
    podsets: dict[str, AssignedPodset] = field(default_factory=dict)
    others: AssignedPodset = field(default_factory=AssignedPodset)

    def of(self, podset: str | None) -> AssignedPodset | None:
        """Return what pods of a podset are among; None if it has no domains."""
        if podset is not None:
            return self.podsets.get(podset)
        return next(iter(self.podsets.values())) if len(self.podsets) == 1 else self.others

    def parts(self) -> list[tuple[str, AssignedPodset]]:
        """Return the podsets by name; together, without a name, if pods do not say theirs."""
        if not self.others.there and not self.others.ended:
            return [*self.podsets.items()]
        every = AssignedPodset()
        for own in (*self.podsets.values(), self.others):
            every.add(own)
        return [("", every)]


@dataclass(frozen=True)
class Unplaced:
    """Pods that will be on some of these nodes, and what holds the jobs that may be there too."""

    nodes: frozenset[str]
    held_by: LeftOut


def add_amounts(of: Amounts, host: str, amounts: Mapping[str, int]) -> None:
    """Add what is taken of a host."""
    held = of.setdefault(host, {})
    for name, amount in amounts.items():
        held[name] = held.get(name, 0) + amount


def place_assigned(
    assigned: Sequence[Assigned],
    nodes: Sequence[KubeNode],
    running: dict[str, Amounts],
    parts: dict[str, dict[str, Amounts]],
) -> list[Unplaced]:
    """Add to what runs, and to its parts, what Workloads are assigned beyond their pods.

    That is what Kueue counts.

    Returns
    -------
    list
        The pods without a node whose domain has several.
    """
    found: list[Unplaced] = []
    places = _Places(nodes)
    for workload in assigned:
        job = workload.job
        for part, own in workload.parts():
            more, in_domains = _beyond(own, places)
            for host, amounts in more.items():
                add_amounts(running.setdefault(job, {}), host, amounts)
                add_amounts(parts.setdefault(job, {}).setdefault(part, {}), host, amounts)
            for hosts, (name, count) in in_domains.items():
                text = f"{number_of(count, 'pod')} of {job} in {name}, on no node yet"
                held_by = left_out(ASSIGNMENT, text, workload.where)
                found.append(Unplaced(frozenset(hosts), held_by))
    return found


_Domains = dict[tuple[str, ...], tuple[str, int]]
"""By the hosts of a domain what it is called, and a number of pods."""


def _beyond(own: AssignedPodset, places: _Places) -> tuple[Amounts, _Domains]:
    """Return what pods are assigned of nodes beyond those that are there, and in which domains."""
    there = {host: {**amounts} for host, amounts in own.there.items()}
    if _num_pods(there.values()) + own.reclaimable >= own.wanted:
        return {}, {}  # even if some are elsewhere
    since = own.reclaimable - own.wanted + sum(pods.count for pods in own.pods)
    if _num_pods(own.ended.values()) <= since:  # else some are made again, or were elsewhere
        for host, amounts in own.ended.items():
            add_amounts(there, host, amounts)
    on_hosts: Amounts = {}
    in_domains: _Domains = {}
    for pods in own.pods:
        hosts = places.of(pods.levels, pods.values)
        if len(hosts) == 1:
            takes = {name: pods.count * amount for name, amount in pods.takes.items()}
            add_amounts(on_hosts, hosts[0], takes)
        else:
            _, count = in_domains.get(hosts, ("", 0))
            in_domains[hosts] = pods.values[-1], count + pods.count
    more: Amounts = {}
    for host, amounts in on_hosts.items():
        on_host = there.get(host, {})
        missing = {name: n - on_host.get(name, 0) for name, n in amounts.items()}
        if any(amount > 0 for amount in missing.values()):
            more[host] = {name: amount for name, amount in missing.items() if amount > 0}
    lacking = {
        hosts: (name, count - _num_pods(there.get(host, {}) for host in hosts))
        for hosts, (name, count) in in_domains.items()
    }
    return more, {hosts: own for hosts, own in lacking.items() if own[1] > 0}


def _num_pods(amounts: Iterable[Mapping[str, int]]) -> int:
    return sum(own.get("pods", 0) for own in amounts)


class _Places:
    """The nodes of every domain of some levels."""

    def __init__(self, nodes: Sequence[KubeNode]) -> None:
        self._nodes = nodes
        self._of: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}

    def of(self, levels: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the nodes of a domain; what it is called, if none is in the file."""
        if levels not in self._of:
            own = self._of[levels] = {}
            for node in self._nodes:
                labels = {HOSTNAME: node.name, **node.labels}
                key = tuple(labels.get(level, "") for level in levels)
                own.setdefault(key, []).append(node.name)
        return tuple(self._of[levels].get(values, values[-1:]))
