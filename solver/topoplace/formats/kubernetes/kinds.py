"""Kinds of objects that make pods, as far as they are read, and what these refer to.

Models of Jobs, JobSets, Workloads and Jobs of Volcano, whose pods `jobs` walks through; and the
owners, groups, classes and volumes that a pod names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from topoplace.formats.declared import values_at
from topoplace.formats.kubernetes.assigned import Admission
from topoplace.formats.kubernetes.fields import GANGS, GROUP_NAMES, KUEUE, LWS, is_read
from topoplace.formats.kubernetes.nodes import Labels, labels_match
from topoplace.formats.kubernetes.objects import (
    Kube,
    KubeModel,
    KubeObject,
    Meta,
    PodSpec,
    PodStatus,
    PodTemplate,
    Quantities,
    Reasoned,
    Resources,
    TemplateMeta,
    Toleration,
    base_units,
    id_of,
    in_units,
    quantity,
)
from topoplace.formats.kubernetes.podsets import MAX_COUNT
from topoplace.formats.yaml_text import Parsed

_JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
_JOB_LABELS = (
    f"{KUEUE}/pod-group-name",
    _JOB_SET_NAME,
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""Labels that name the job of a pod, those that count most first."""

_NAMESPACE = "kubernetes.io/metadata.name"
"""A label of every namespace: its name."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]

# ---- The objects ---------------------------------------------------------------------------------


Pod = Kube[PodSpec, PodStatus]


class JobSpec(KubeModel):
    """What a Job asks for."""

    suspend: bool | None = None
    parallelism: Count | None = None
    completions: Count | None = None
    template: PodTemplate

    def count(self, succeeded: int = 0) -> int:
        """Return how many pods run at once, when some have succeeded."""
        parallelism = 1 if self.parallelism is None else self.parallelism
        if self.completions is None:
            return parallelism
        return max(min(parallelism, self.completions - succeeded), 0)


class Reclaimable(KubeModel):
    """Pods of a podset that have ended and are not made again."""

    name: str = "main"
    count: Count


class Conditions(KubeModel):
    """The status of a Job, a JobSet or a Workload."""

    conditions: list[Reasoned] | None = None
    admission: Admission | None = None
    reclaimable: Annotated[list[Reclaimable] | None, Field(alias="reclaimablePods")] = None
    succeeded: Count | None = None

    def ended_of(self, podset: str) -> int:
        """Return how many pods of a podset have ended and are not made again."""
        return sum(own.count for own in self.reclaimable or () if own.name == podset)

    @property
    def evicted_at(self) -> str | None:
        """When Kueue put a Workload at the end of its queue, None if it did not."""
        late = {"PodsReadyTimeout", "AdmissionCheck"}
        every = (one for one in self.conditions or () if one.type == "Evicted")
        return next((o.since for o in every if o.status == "True" and o.reason in late), None)

    @property
    def has_ended(self) -> bool:
        """Whether it is complete, failed or finished."""
        ends = {"Complete", "Completed", "Failed", "Finished"}
        return any(one.type in ends and one.status == "True" for one in self.conditions or ())


Job = Kube[JobSpec, Conditions]


class JobTemplate(KubeModel):
    """What a JobSet makes Jobs of."""

    metadata: TemplateMeta = Field(default_factory=TemplateMeta)
    spec: JobSpec


class ReplicatedJob(KubeModel):
    """A number of equal Jobs of a JobSet."""

    name: str
    replicas: Count = 1
    template: JobTemplate


class JobSetSpec(KubeModel):
    """What a JobSet asks for."""

    suspend: bool | None = None
    jobs: Annotated[list[ReplicatedJob], Field(alias="replicatedJobs")]


JobSet = Kube[JobSetSpec, Conditions]


class PodSet(KubeModel):
    """A number of equal pods of a Workload."""

    name: str = "main"
    count: Count
    template: PodTemplate
    request: Annotated[Any, Field(alias="topologyRequest")] = None


class WorkloadSpec(KubeModel):
    """What a Workload asks for."""

    pod_sets: Annotated[list[PodSet], Field(alias="podSets")]
    active: bool | None = None
    priority: int | None = None


Workload = Kube[WorkloadSpec, Conditions]


class NetworkTopology(KubeModel):
    """Up to which tier of the network the pods of Volcano may be apart."""

    mode: Literal["hard", "soft"] = "hard"
    highest: Annotated[int | None, Field(alias="highestTierAllowed", ge=1)] = None
    named: Annotated[str | None, Field(alias="highestTierName")] = None


class Partitions(KubeModel):
    """Groups of pods of a task, each in one domain."""

    total: Annotated[int, Field(alias="totalPartitions", ge=1, le=MAX_COUNT)]
    size: Annotated[int, Field(alias="partitionSize", ge=1, le=MAX_COUNT)]
    least: Annotated[int | None, Field(alias="minPartitions")] = None
    topology: Annotated[NetworkTopology | None, Field(alias="networkTopology")] = None


class Task(KubeModel):
    """A number of equal pods of a Job of Volcano."""

    name: str = "task"
    replicas: Count = 1
    template: PodTemplate
    least: Annotated[int | None, Field(alias="minAvailable")] = None
    partitions: Annotated[Partitions | None, Field(alias="partitionPolicy")] = None


class VolcanoSpec(KubeModel):
    """What a Job of Volcano asks for."""

    tasks: list[Task]
    topology: Annotated[NetworkTopology | None, Field(alias="networkTopology")] = None
    least: Annotated[int | None, Field(alias="minAvailable")] = None
    priority_class: Annotated[str | None, Field(alias="priorityClassName")] = None


class VolcanoStatus(KubeModel):
    """The status of a Job of Volcano: its phase."""

    state: PodStatus = Field(default_factory=PodStatus)


VolcanoJob = Kube[VolcanoSpec, VolcanoStatus]


class _GroupTemplate(KubeModel):
    workers: Annotated[PodTemplate, Field(alias="workerTemplate")]


class _GroupsSpec(KubeModel):
    template: Annotated[_GroupTemplate, Field(alias="leaderWorkerTemplate")]


LeaderWorkerSet = Kube[_GroupsSpec, Any]


class Scheduling(KubeModel):
    """What a RuntimeClass adds to where a pod may run."""

    node_selector: Annotated[dict[str, str] | None, Field(alias="nodeSelector")] = None
    tolerations: list[Toleration] | None = None


class Overhead(KubeModel):
    """What a RuntimeClass adds to what a pod takes."""

    pod: Annotated[Quantities | None, Field(alias="podFixed")] = None


class RuntimeClass(KubeModel):
    """A RuntimeClass."""

    scheduling: Scheduling | None = None
    overhead: Overhead | None = None


# ---- Which jobs may preempt which ----------------------------------------------------------------


@dataclass(frozen=True)
class Queue:
    """A ClusterQueue of Kueue: its name, nothing if it is not in the file, and specification."""

    name: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def cohort(self) -> str | None:
        """The cohort, which shares quotas."""
        return self.spec.get("cohortName") or self.spec.get("cohort")

    def policies_against(self, other: Queue) -> set[str]:
        """Return its policies on jobs of another queue, or of its own."""
        own = self.spec.get("preemption")
        if not isinstance(own, dict) or not self.name or not other.name:
            return set()
        if self.name == other.name:
            return {str(own.get("withinClusterQueue"))}
        if self.cohort is None or self.cohort != other.cohort:
            return set()
        return self._policies_in_cohort

    @property
    def _policies_in_cohort(self) -> set[str]:
        own = self.spec.get("preemption")
        own = own if isinstance(own, dict) else {}
        borrow = own.get("borrowWithinCohort")
        of_borrowers = borrow.get("policy") if isinstance(borrow, dict) else None
        return {str(own.get("reclaimWithinCohort")), str(of_borrowers)}

    def may_end(self, other: Queue) -> bool:
        """Return whether a policy lets its jobs end some of another queue, or of its own."""
        return bool(self.policies_against(other) & _ENDING)

    def unsure_of(self, other: Queue) -> str:
        """Return why it is not known which jobs of another queue may end, or of its own."""
        if not self.name:
            return "its ClusterQueue is not in the file"
        if not other.name:
            return "the ClusterQueue of others is not in the file"
        if self.name != other.name and self.may_end(other):
            return f"of cohort {self.cohort} only jobs of queues that borrow may end"
        is_apart = self.cohort and other.cohort and self.cohort != other.cohort
        return f"what is above cohort {self.cohort}" if is_apart and self._reclaims else ""

    @property
    def _reclaims(self) -> bool:
        return bool(self._policies_in_cohort & _ENDING)


_BY_PRIORITY = {"LowerPriority", "LowerOrNewerEqualPriority"}
_ENDING = {*_BY_PRIORITY, "Any"}
"""Policies that let a job end others."""


_Quotas = Mapping[tuple[str, str], Mapping[str, Fraction]]
"""By flavor and resource: what there is, may be borrowed, may be lent, as far as it is said."""


def _quotas_of(spec: Mapping[str, Any], where: str) -> _Quotas:
    return {
        (str(flavor.get("name")), str(own.get("name"))): {
            key: in_units(str(own.get("name")), quantity(own[key], f"{where}: {key}"))
            for key in ("nominalQuota", "borrowingLimit", "lendingLimit")
            if own.get(key) is not None
        }
        for flavor in values_at(spec, "resourceGroups[].flavors[]")
        for own in values_at(flavor, "resources[]")
    }


def _most_of(own: _Quotas, lent: Sequence[_Quotas] | None) -> dict[str, int]:
    """Return the most that a queue can have of resources, in all its flavors.

    Parameters
    ----------
    lent
        The quotas of others in its cohort; empty if it has none, None if more may lend.
    """
    most: dict[str, list[tuple[Fraction, Fraction | None]]] = {}
    for (flavor, name), quota in own.items():
        nominal, others = quota.get("nominalQuota", Fraction()), Fraction()
        for other in (one.get((flavor, name), {}) for one in lent or ()):
            there = other.get("nominalQuota", Fraction())
            others += min(there, other.get("lendingLimit", there))
        limits = [quota.get("borrowingLimit"), None if lent is None else others]
        known = [one for one in limits if one is not None]
        most.setdefault(name, []).append((nominal, min(known, default=None)))
    return {
        name: int(sum(nominal + (more or 0) for nominal, more in some))
        for name, some in most.items()
        if all(more is not None for _, more in some)
    }


def _there(amounts: Mapping[str, Any], where: str) -> dict[str, int]:
    """Return amounts that there are of resources."""
    return {
        name: base_units(name, quantity(text, where), where, up=False)
        for name, text in amounts.items()
    }


@dataclass(frozen=True)
class ResourceGroup:
    """Resources that a queue gives by one of some flavors; None stands for a queue not known."""

    resources: frozenset[str] | None
    flavors: frozenset[str]


def resource_groups(spec: Mapping[str, Any]) -> list[ResourceGroup]:
    """Return the groups of resources of a ClusterQueue."""
    return [
        ResourceGroup(
            frozenset(map(str, values_at(own, "coveredResources[]"))),
            frozenset(map(str, values_at(own, "flavors[].name"))),
        )
        for own in values_at(spec, "resourceGroups[]")
    ]


@dataclass(frozen=True)
class Standing:
    """The priority of a job, and its queue; None if Kueue does not start it."""

    priority: int
    queue: Queue | None = None
    preempts: bool = True

    def may_preempt(self, other: Standing) -> bool:
        """Return whether a job that waits may make one that runs end."""
        is_higher = self.priority > other.priority
        if self.queue is None:
            return is_higher and self.preempts
        policies = self.queue.policies_against(other.queue or Queue())
        equal = "LowerOrNewerEqualPriority" in policies and self.priority == other.priority
        return "Any" in policies or (is_higher and bool(policies & _BY_PRIORITY)) or equal

    def unsure_of(self, other: Standing) -> str:
        """Return why it is not known whether a job that waits may end one that runs."""
        if self.queue is None or other.queue is None:
            return ""
        if self.priority > other.priority:
            return self.queue.unsure_of(other.queue)
        return "some of no lower priority may end too" if self.may_preempt(other) else ""


# ---- What pods refer to --------------------------------------------------------------------------


class Others:
    """Objects by kind and name: what others refer to."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._of: dict[str, dict[str, KubeObject]] = {}
        self._classes: dict[str, RuntimeClass] = {}
        self._children: dict[str, set[str]] = {}
        for one in (one for one in objects if is_read(one.kind, one.group)):
            meta = one.section("metadata")
            name = str(meta.get("name"))
            is_gang = one.group == GANGS and one.kind != "PriorityClass"
            kind = f"{GANGS}/{one.kind}" if is_gang else one.kind
            parent = one.section("spec").get("parentCompositePodGroupName")
            if is_gang and parent:
                above = id_of(str(meta.get("namespace") or "default"), str(parent))
                self._children.setdefault(above, set()).add(name)
            of_kind = self._of.setdefault(kind, {})
            of_kind.setdefault(id_of(str(meta.get("namespace") or "default"), name), one)
            if one.kind == "RuntimeClass":
                self._classes[name] = one.checked_as(RuntimeClass)

    def get(self, kind: str, name: str, namespace: str | None = None) -> KubeObject | None:
        """Return an object; None if it is not in the file.

        The kinds of Kubernetes whose names others have too begin with their group.
        """
        return self._every(kind).get(id_of(namespace or "default", name))

    def _every(self, kind: str) -> Mapping[str, KubeObject]:
        return self._of.get(kind, {})

    def children(self, name: str, namespace: str) -> frozenset[str]:
        """Return the names of the groups whose parent a CompositePodGroup is."""
        return frozenset(self._children.get(id_of(namespace, name), ()))

    def above(self, meta: Meta) -> Iterator[KubeObject]:
        """Yield what owns an object, and what owns that."""
        namespace = meta.namespace or "default"
        pending = [(owner.kind, owner.name) for owner in meta.owners or ()]
        for kind, name in pending:
            one = self.get(kind, name, namespace)
            if one is None:
                continue
            yield one
            owners = one.section("metadata").get("ownerReferences")
            for owner in owners if isinstance(owners, list) else ():
                key = (owner.get("kind"), owner.get("name")) if isinstance(owner, dict) else ()
                if len(key) == 2 and key not in pending:
                    pending.append((str(key[0]), str(key[1])))

    def groups(self, meta: Meta) -> Iterator[tuple[str, KubeObject | None]]:
        """Yield the names of the PodGroups of a pod, and those that are in the file."""
        for key in GROUP_NAMES:
            name = meta.annotation(key) or meta.label(key)
            if name is not None:
                yield name, self.get("PodGroup", name, meta.namespace or "default")

    def priority(self, given: int | None, name: str | None) -> int:
        """Return a priority that is given, or that of a class."""
        value = self.class_value("PriorityClass", name) if given is None else given
        return value or 0

    def class_value(self, kind: str, name: object) -> int | None:
        """Return the priority of a class; None if it is not in the file."""
        one = self.get(kind, str(name or ""))
        value = None if one is None else one.value.get("value")
        return value if isinstance(value, int) else None

    def queue(self, name: str | None, namespace: str | None) -> Queue:
        """Return the ClusterQueue of a LocalQueue; one without a name if it is not in the file."""
        local = self.get("LocalQueue", name or "", namespace)
        own = str({} if local is None else local.section("spec").get("clusterQueue"))
        return self.cluster_queue(own)

    def cluster_queue(self, name: str) -> Queue:
        """Return a ClusterQueue; one without a name if it is not in the file."""
        cluster = self.get("ClusterQueue", name)
        return Queue() if cluster is None else Queue(name, cluster.section("spec"))

    def most_in(self, queue: Queue) -> dict[str, int]:
        """Return the most that a ClusterQueue can ever have of resources, as far as that is known.

        It may borrow what others of its cohort have in the file, and the cohort itself, unless
        that is in another one.
        """
        lent: list[_Quotas] | None = []
        cohort = self.get("Cohort", queue.cohort or "")
        spec = {} if cohort is None else cohort.section("spec")
        if spec.get("parentName") or spec.get("parent"):
            lent = None
        elif queue.cohort:
            of_cohort: dict[str, Mapping[str, Any]] = {f"Cohort {queue.cohort}": spec}
            for name in self.names("ClusterQueue") - {queue.name}:
                other = self.cluster_queue(name)
                if other.cohort == queue.cohort:
                    of_cohort[name] = other.spec
            lent = [_quotas_of(own, name) for name, own in of_cohort.items()]
        return _most_of(_quotas_of(queue.spec, f"ClusterQueue {queue.name}"), lent)

    def names(self, kind: str) -> frozenset[str]:
        """Return the names of all objects of a kind that belongs to the whole cluster."""
        every = self._every(kind).values()
        return frozenset(str(one.section("metadata").get("name")) for one in every)

    def closed(self, name: str, namespace: str | None) -> Iterator[str]:
        """Yield why Kueue starts nothing in a LocalQueue, as far as the file says.

        A queue that is not in the file is missing only if others of its kind are there.
        """
        found: list[KubeObject] = []
        for kind, below in (("LocalQueue", "clusterQueue"), ("ClusterQueue", "")):
            one = self.get(kind, name, namespace if below else None)
            if one is None:
                if self.names(kind):
                    yield f"{kind} {name} is not in the file"
                return
            for own in values_at(one.section("status"), "conditions[]"):
                if own.get("type") == "Active" and own.get("status") == "False":
                    yield f"{kind} {name} is not active: {own.get('reason')}"
            found.append(one)
            name = str(one.section("spec").get(below)) if below else name
        spec, flavors = found[-1].section("spec"), self.names("ResourceFlavor")
        missing = {*map(str, values_at(spec, "resourceGroups[].flavors[].name"))} - flavors
        if flavors and missing:
            yield f"ClusterQueue {name} offers {', '.join(sorted(missing))}, not in the file"
        yield from self._not_selected(spec.get("namespaceSelector"), namespace or "default")

    def closed_queue(self, name: str) -> Iterator[str]:
        """Yield why Volcano or KAI starts nothing in a queue, or where is not known."""
        one = self.get("Queue", name)
        if one is None:
            if self._every("Queue"):
                yield f"Queue {name} is not in the file"
            return
        state = one.section("status").get("state")
        if state not in (None, "", "Open"):
            yield f"Queue {name} is {state}"
        if one.section("spec").get("affinity"):
            yield f"Queue {name} has an affinity to groups of nodes"

    def most_of(self, name: str) -> dict[str, int]:
        """Return the most that a queue of Volcano or KAI gives of resources, as far as it says."""
        one = self.get("Queue", name)
        spec = {} if one is None else one.section("spec")
        limit = next(values_at(spec, "resources.gpu.limit"), -1)
        limits = {"nvidia.com/gpu": limit} if isinstance(limit, int | float) and limit >= 0 else {}
        return _there((spec.get("capability") or {}) | limits, f"Queue {name}")

    def _not_selected(self, selector: Any, namespace: str) -> Iterator[str]:
        """Yield that a queue does not select a namespace, or that this is not known."""
        if selector is None:
            yield "namespaceSelector: none, which selects nothing"
            return
        own = self.get("Namespace", namespace)
        wanted = Parsed(selector, {}).validated(Labels)
        keys = {*(wanted.match_labels or {}), *(one.key for one in wanted.expressions or ())}
        given = {} if own is None else own.section("metadata").get("labels") or {}
        if own is None and keys - {_NAMESPACE}:
            yield f"namespaceSelector: Namespace {namespace} is not in the file"
        elif not labels_match(wanted, {**given, _NAMESPACE: namespace}):
            yield f"namespaceSelector: it does not select {namespace}"

    def _limits(self, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield the limits of the LimitRanges of a namespace."""
        for one in self._every("LimitRange").values():
            if (one.section("metadata").get("namespace") or "default") == namespace:
                yield from values_at(one.section("spec"), "limits[]")

    def defaults(self, namespace: str) -> frozenset[str]:
        """Return the resources of which a LimitRange gives an amount to containers without one."""
        own = (one for one in self._limits(namespace) if one.get("type") == "Container")
        keys = ("default", "defaultRequest")
        return frozenset(name for one in own for key in keys for name in one.get(key) or {})

    def refused(self, spec: PodSpec, namespace: str) -> Iterator[str]:
        """Yield why LimitRanges refuse the pods of a specification."""
        given = [one.resources or Resources() for one in spec.every_container]
        each = [(_exact(one.requests), _exact(one.limits)) for one in given]
        whole = [(_summed([own[0] for own in each]), _summed([own[1] for own in each]))]
        for limit in self._limits(namespace):
            kind = str(limit.get("type"))
            of_kind = {"Container": each, "Pod": whole}.get(kind, [])
            for key, sign, first in (("max", 1, 1), ("min", -1, 0)):
                for name, bound in _exact(limit.get(key) if of_kind else None).items():
                    amounts = [one[first].get(name, one[1 - first].get(name)) for one in of_kind]
                    if any(own is None or sign * own > sign * bound for own in amounts):
                        yield f"{key} of {name} of a {kind.lower()}"

    def is_device(self, resource: str) -> bool:
        """Return whether a resource is the devices of a DeviceClass."""
        own = self._every("DeviceClass").values()
        names = {one.section("spec").get("extendedResourceName") for one in own}
        return resource in names or resource.startswith("deviceclass.resource.kubernetes.io/")

    def preempts(self, spec: PodSpec) -> bool:
        """Return whether pods of a specification may preempt those of lower priority."""
        of_class = self.get("PriorityClass", spec.priority_class or "")
        policy = spec.preemption or (of_class and of_class.value.get("preemptionPolicy"))
        return policy != "Never"

    def runtime_class(self, name: str) -> RuntimeClass | None:
        """Return a RuntimeClass; None if it is not in the file."""
        return self._classes.get(name)

    def nodes_of_claim(self, name: str, namespace: str) -> Any:
        """Return the terms that select the nodes of a volume, nothing if any will do.

        Raises
        ------
        LookupError
            If the claim or its volume is not in the file, or only one pod may use it.
        """
        claim = self.get("PersistentVolumeClaim", name, namespace)
        own = {} if claim is None else claim.section("spec")
        volume = self.get("PersistentVolume", str(own.get("volumeName") or ""))
        if volume is None or "ReadWriteOncePod" in str(own.get("accessModes")):
            raise LookupError(name)
        affinity = volume.section("spec").get("nodeAffinity")
        return affinity.get("required") if isinstance(affinity, dict) else None


def _exact(amounts: object) -> dict[str, Fraction]:
    """Return amounts as they are; nothing if there are none."""
    given = amounts if isinstance(amounts, dict) else {}
    return {name: quantity(text, name) for name, text in given.items()}


def _summed(every: Sequence[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    names = {name for own in every for name in own}
    return {name: sum((own.get(name, Fraction()) for own in every), Fraction()) for name in names}


def family_of(meta: TemplateMeta, namespace: str, *kinds: str) -> str | None:
    """Return among whose pods those that are exclusive share no domain, None if nobody's.

    A group of a LeaderWorkerSet keeps the pods of all others of its namespace away, and a Job of a
    JobSet those of all others. `kinds` are those of what has the pods, and of its owners.
    """
    if "LeaderWorkerSet" in kinds or meta.label(f"{LWS}/name") is not None:
        return f"leaderworkersets:{namespace}"
    return "jobsets" if "JobSet" in kinds or meta.label(_JOB_SET_NAME) is not None else None


def waits_alone(meta: Meta) -> bool:
    """Return whether a pod of a ReplicaSet or StatefulSet is of no gang: it starts without others.

    Nothing says that it starts with others: no PodGroup, no Job and no group of Kueue.
    """
    owners = {owner.kind for owner in meta.owners or () if owner.controller}
    names = (*GROUP_NAMES, *_JOB_LABELS, f"{LWS}/name")
    grouped = any(meta.annotation(key) or meta.label(key) for key in names)
    return not grouped and bool(owners & {"ReplicaSet", "StatefulSet"})


def job_of(meta: Meta) -> str:
    """Return the job that a pod is of: of a label, of its controller or group, or its own."""
    namespace = meta.namespace or "default"
    for key in _JOB_LABELS:
        name = meta.label(key)
        if name is not None:
            return id_of(namespace, name)
    name, index = meta.label(f"{LWS}/name"), meta.label(f"{LWS}/group-index")
    if name is not None and index is not None:
        return id_of(namespace, f"{name}-{index}")
    for owner in meta.owners or ():
        if owner.controller:
            return id_of(namespace, owner.name)
    groups = (meta.annotation(key) or meta.label(key) for key in GROUP_NAMES)
    group = next(filter(None, groups), None)
    return meta.id if group is None else id_of(namespace, group)
