"""Jobs of Kubernetes: which pods run where, and what waits: Workloads, Jobs, JobSets, pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from topoplace.errors import InputError, blamed_on, number_of, unknown_name
from topoplace.formats.declared import UNKNOWN, Table, given_text, left_out, values_at
from topoplace.formats.kubernetes.assigned import (
    Admission,
    Assigned,
    AssignedPods,
    AssignedPodset,
    add_amounts,
)
from topoplace.formats.kubernetes.fields import (
    COMPOSITE,
    CONTAINER,
    GANG,
    JOB,
    JOB_SET,
    JOBSET_EXCLUSIVE,
    KUEUE,
    LWS,
    LWS_EXCLUSIVE,
    LWS_SPEC,
    PART_NAMES,
    POD,
    POD_GROUP,
    PRIORITY,
    QUEUES,
    SIZES,
    VOLCANO_JOB,
    WORKLOAD,
    WORKLOAD_NAMES,
)
from topoplace.formats.kubernetes.groups import (
    Composite,
    Gang,
    NotModelledError,
    PodGroup,
    PodGroupSpec,
    composites_of,
    gang_of,
    parts_of,
    parts_of_composites,
)
from topoplace.formats.kubernetes.kinds import (
    Conditions,
    Job,
    JobSet,
    JobSpec,
    LeaderWorkerSet,
    NetworkTopology,
    Others,
    Pod,
    Queue,
    ResourceGroup,
    Scheduling,
    Standing,
    Task,
    VolcanoJob,
    VolcanoSpec,
    Workload,
    family_of,
    job_of,
    resource_groups,
    waits_alone,
)
from topoplace.formats.kubernetes.nodes import HOSTNAME, Domains, tier_level
from topoplace.formats.kubernetes.objects import (
    KubeObject,
    Meta,
    PodSpec,
    PodTemplate,
    Reasoned,
    Resources,
    TemplateMeta,
    amounts_of,
    id_of,
    rounded_of,
    rounding,
    while_resized,
)
from topoplace.formats.kubernetes.podsets import (
    MAX_COUNT,
    Asked,
    Podset,
    TopologyRequest,
    annotated,
    asked_by_notes,
    asked_of,
    notes_of,
    notes_of_group,
    unknown_notes,
)
from topoplace.formats.kubernetes.rules import (
    CLAIM,
    IN_NO_POOL,
    NodeRules,
    PodLabels,
    Repelling,
    checked_terms,
    repelling,
    required_terms,
    without_injected,
)
from topoplace.formats.text import integer
from topoplace.formats.yaml_text import Parsed
from topoplace.snapshot.schema import Apart, LeftOut, Segment

_OWNERS = {
    ("batch", "Job"): JOB,
    ("jobset.x-k8s.io", "JobSet"): JOB_SET,
    ("batch.volcano.sh", "Job"): VOLCANO_JOB,
}
_QUEUE_NAME = f"{KUEUE}/queue-name"
_WITH_QUEUES = ("scheduling.volcano.sh", "scheduling.run.ai")
"""The groups of PodGroups of Volcano and KAI."""

# ---- What runs, and what waits -------------------------------------------------------------------


@dataclass
class Waiting:
    """A job that waits.

    Attributes
    ----------
    priority, created
        Its priority, and when it was made.
    podsets
        What it asks for.
    labels
        Those of its pods.
    family, levels
        Among whose jobs it may have domains for itself (`family_of`), and of which levels; None
        stands for podsets that have none.
    by_kueue, groups
        Whether Kueue starts it, and what its queue offers; None if no flavor is in the file.
    queue, preempts
        Its queue, and whether its pods may preempt others where it is not of Kueue.
    most
        The most that its queue can ever give of resources.
    is_loose
        Whether nothing says that its pods start together: they are taken so.
    sizes
        How many pods it should have, by the option that says so, and where that stands.
    """

    priority: int
    created: str
    podsets: list[Podset] = field(default_factory=list)
    labels: dict[PodLabels, None] = field(default_factory=dict)
    family: str | None = None
    levels: set[str | None] = field(default_factory=set)
    by_kueue: bool = False
    groups: list[ResourceGroup] | None = None
    queue: Queue = field(default_factory=Queue)
    preempts: bool = True
    most: dict[str, int] = field(default_factory=dict)
    is_loose: bool = False
    sizes: dict[str, tuple[int, str]] = field(default_factory=dict)
    _left_out: dict[tuple[str, str], LeftOut] = field(default_factory=dict)

    def hold(self, *options: LeftOut) -> None:
        """Add what restricts the job and is not modelled."""
        for one in options:
            self._left_out.setdefault((one.option, one.value), one)

    def hold_unknown(self, kind: str, names: Iterable[str], place: str) -> None:
        """Hold the job by fields that no table knows: they may restrict it."""
        self.hold(*(left_out(UNKNOWN, f"{kind}.{name}", place) for name in names))

    def add(self, new: Podset) -> None:
        """Add pods to those that are alike, or else as others."""
        for idx, other in enumerate(self.podsets):
            if replace(other, name=new.name, count=new.count) == new:
                self.podsets[idx] = replace(other, count=other.count + new.count)
                return
        name = f"pods{len(self.podsets)}" if self.podsets else "pods"
        self.podsets.append(replace(new, name=name))

    @property
    def standing(self) -> Standing:
        """Its priority and queue, among jobs that run."""
        return Standing(self.priority, self.queue if self.by_kueue else None, self.preempts)

    @property
    def num_pods(self) -> int:
        """How many pods wait."""
        return sum(podset.count for podset in self.podsets)

    @property
    def left_out(self) -> list[LeftOut]:
        """What restricts the job and is not modelled, each once, of no request yet."""
        return list(self._left_out.values())


@dataclass
class KubeJobs:
    """What the objects of a file say of jobs.

    Attributes
    ----------
    running
        By job and node what its pods take.
    parts
        The same by job and part, of pods whose labels name the part of their job.
    num_running
        By job the pods that run.
    waiting
        By job what it asks for.
    families
        By running job its family and level, as of one that waits.
    standings
        By running job its priority and queue.
    stays
        Running jobs that belong to their nodes, by what owns them.
    repelling
        What running pods keep away from them.
    admitted
        Jobs whose Workload is admitted.
    assigned
        Those whose pods have domains.
    used
        By ClusterQueue, the least that admitted Workloads use of its quota.
    """

    running: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    parts: dict[str, dict[str, dict[str, dict[str, int]]]] = field(default_factory=dict)
    num_running: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    families: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    stays: dict[str, str] = field(default_factory=dict)
    repelling: list[Repelling] = field(default_factory=list)
    admitted: list[str] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    used: dict[str, Counter[str]] = field(default_factory=dict)


def jobs_of(
    objects: Sequence[KubeObject], domains: Domains, of: Set[str] | None = None
) -> KubeJobs:
    """Return the jobs among some objects, on a machine of these domains.

    Of jobs whose pods tell what waits, only those of some names, if these are given.

    A Workload that is not admitted, a Job or JobSet that is suspended, and a Job of Volcano that is
    pending tell what waits. Of all others their pods do: those on a node run, those without wait.
    Nothing is counted twice: not a Job with a Workload or of a JobSet, nor pods of what waits.

    Raises
    ------
    InputError
        With the object and the field at fault.
    """
    reader = _Reader(objects, domains, of)
    for (group, kind), read in reader.kinds.items():  # in this order: what tells most goes first
        for one in objects:
            if (one.group, one.kind) == (group, kind):
                with one.blamed():
                    read(one)
    reader.complete()
    reader.arrange()
    return reader.jobs


class _Reader:
    """Reads objects kind by kind, and remembers what is told of already."""

    def __init__(
        self, objects: Sequence[KubeObject], domains: Domains, of: Set[str] | None
    ) -> None:
        self.jobs, self._wanted = KubeJobs(), of
        self._others = Others(objects)
        self._levels = [*domains.levels, HOSTNAME]
        self._topology = domains.name
        self._tiers, self._tier_names = domains.tiers, domains.tier_names
        self._told: set[str] = set()
        """Jobs that wait by what an object says, so that their pods do not tell."""
        self._pod_groups: dict[str, KubeObject] = {}
        """The PodGroups of jobs that wait."""
        self._specs: dict[int, PodGroupSpec] = {}
        self._started: dict[str, tuple[KubeObject, VolcanoSpec]] = {}
        """Jobs of Volcano whose pods tell what waits."""
        self._groups: dict[str, KubeObject] = {}
        """The LeaderWorkerSets of groups that wait."""
        self._composites: dict[str, dict[str, tuple[Gang, Sequence[Composite]]]] = {}
        """The gangs of jobs that are groups of groups, by name, and the groups each is in."""
        self._managed: set[tuple[str, str]] = set()
        """Kinds and ids of what has a Workload."""
        self._assigned: dict[str, Assigned] = {}
        """What is assigned, by the ids of the Workload, of its job and of pods that own it."""
        self._workloads: dict[str, str] = {}
        """Jobs by the ids of their Workloads."""
        self.kinds: dict[tuple[str, str], Callable[[KubeObject], None]] = {
            (KUEUE, "Workload"): self._workload,
            ("jobset.x-k8s.io", "JobSet"): self._job_set,
            ("batch.volcano.sh", "Job"): self._volcano_job,
            ("batch", "Job"): self._job,
            ("", "Pod"): self._pod,
        }

    def _waits(self, job: str, priority: int, meta: Meta) -> Waiting:
        self._told.add(job)
        self.jobs.waiting[job] = Waiting(self._of_kueue(priority, meta), meta.created or "")
        name = meta.label(_QUEUE_NAME) or meta.annotation(_QUEUE_NAME)
        self._queued(self.jobs.waiting[job], name, meta)
        return self.jobs.waiting[job]

    def _of_kueue(self, priority: int, meta: Meta) -> int:
        """Return a priority, or that of the WorkloadPriorityClass which a label names."""
        own = self._others.class_value("WorkloadPriorityClass", meta.label(PRIORITY))
        return priority if own is None else own

    def _queued(self, waiting: Waiting, name: str | None, meta: Meta) -> None:
        """Note the queue of Kueue in which a job waits: what it offers, and whether it is stopped.

        The name of a queue that is not in the file says nothing more.
        """
        waiting.by_kueue |= name is not None
        local = self._others.get("LocalQueue", name or "", meta.namespace)
        queue = self._others.queue(name, meta.namespace)
        if queue.name:
            waiting.queue, waiting.most = queue, self._others.most_in(queue)
        for one in filter(None, (local, self._others.get("ClusterQueue", queue.name))):
            place = f"{one.kind} {one.section('metadata').get('name')}, {one.place_of('spec')}"
            waiting.hold(*QUEUES.left_out(one.section("spec"), place))
        for why in () if name is None else self._others.closed(name, meta.namespace):
            waiting.hold(left_out("queue", why, f"queue {name}"))
        flavors = self._others.names("ResourceFlavor")
        if "resourceGroups" in queue.spec:
            waiting.groups = resource_groups(queue.spec)
        elif waiting.groups is None and flavors:
            waiting.groups = [ResourceGroup(None, flavors)]

    def _declared(
        self, waiting: Waiting, table: Table, kind: str, raw: Mapping[str, Any], place: str
    ) -> None:
        """Hold a job by what a table says of an object, and by fields that it does not know."""
        waiting.hold(*table.left_out(raw, place))
        waiting.hold_unknown(kind, table.unknown_in(raw), place)

    # ---- Podsets ----

    def _templated(
        self, one: KubeObject, owner: Meta, name: str, count: int, of: PodTemplate, where: str
    ) -> _Pods:
        place = one.place_of(f"{where}.metadata.annotations")
        asked = _asked(place, lambda: annotated(of.metadata, self._levels))
        return _Pods(one, owner, name, count, of, where, asked)

    def _podset(self, waiting: Waiting, pods: _Pods, size: int = 0) -> Podset:
        """Return a podset, after adding what is not modelled of it to its job."""
        one, asked, where = pods.one, pods.asked, f"{pods.where}.spec".strip(".")
        meta = pods.owner
        own_meta, spec = pods.template.metadata, pods.template.spec
        metas = [(f"{pods.where}.metadata".strip("."), own_meta), ("metadata", meta)]
        notes = notes_of(
            [
                *((one.place_of(place), vars(own)) for place, own in metas),
                *(
                    (other.place_of("metadata"), other.section("metadata"))
                    for other in self._others.above(meta)
                ),
                *(
                    (group.place_of("spec"), notes_of_group(group.section("spec")))
                    for _, group in self._others.groups(meta)
                    if group is not None
                ),
            ]
        )
        asked_by_notes(asked, notes, self._levels, self._topology, size)
        waiting.hold_unknown("metadata", unknown_notes(notes), one.place_of("metadata"))
        raw, place = one.at(where), one.place_of(where)
        waiting.hold(*asked.left_out)
        known = raw if asked.level is None else without_injected(raw, asked.level)
        self._declared(waiting, POD, "Pod.spec", known, place)
        for kind in ("containers", "initContainers"):
            for idx, container in enumerate(raw.get(kind) or ()):
                inside_pod = f"{place}.{kind}[{idx}]"
                self._declared(waiting, CONTAINER, "Pod.spec.containers[]", container, inside_pod)
        namespace = meta.namespace or "default"
        given = [one.resources or Resources() for one in spec.every_container]
        every = [{*(own.requests or {}), *(own.limits or {})} for own in given]
        lacking = {name for own in every for name in self._others.defaults(namespace) - own}
        if pods.is_template and lacking:
            text = f"of {namespace}, by which containers get {', '.join(sorted(lacking))}"
            waiting.hold(left_out("LimitRange", text, place))
        for why in self._others.refused(spec, namespace) if pods.is_template else ():
            waiting.hold(left_out("LimitRange", f"of {namespace}: {why}", place))
        kinds = one.kind, *(owner.kind for owner in meta.owners or ())
        waiting.family = family_of(own_meta, namespace, *kinds) or waiting.family
        waiting.levels.add(asked.level)
        if asked.level is not None and waiting.family is not None:
            asked.fields["apart"] = [Apart(level=asked.level, name=waiting.family)]
        labels = tuple(sorted((own_meta.labels or {}).items()))
        waiting.labels[PodLabels(namespace, labels, pods.is_template)] = None
        if pods.is_template:
            spec = self._of_class(waiting, spec, place)
            for key in ("schedulingGroup", "workloadRef"):
                if raw.get(key):
                    waiting.hold(left_out(key, given_text(raw[key]), f"{place}.{key}"))
        waiting.preempts &= self._others.preempts(spec)
        rules = self._rules(waiting, spec, namespace, where, place)
        if raw.get("schedulerName") == "kai-scheduler":  # whose default shard has no pools
            rules = replace(rules, affinities=(*rules.affinities, IN_NO_POOL))
        takes = amounts_of(spec, where)
        for name in filter(self._others.is_device, takes):
            waiting.hold(left_out("resourceClaims", f"of a DeviceClass, for {name}", place))
        exact = rounded_of(spec, where)
        return Podset(pods.name, pods.count, takes, asked.fields, asked.group, rules, exact=exact)

    def _of_class(self, waiting: Waiting, spec: PodSpec, place: str) -> PodSpec:
        """Return the specification that pods of a template get by their RuntimeClass."""
        if not spec.runtime_class:
            return spec
        found = self._others.runtime_class(spec.runtime_class)
        if found is None:
            field = "runtimeClassName"
            waiting.hold(left_out(field, spec.runtime_class, f"{place}.{field}"))
            return spec
        own = found.scheduling or Scheduling()
        update: dict[str, Any] = {
            "node_selector": (spec.node_selector or {}) | (own.node_selector or {}),
            "tolerations": [*(spec.tolerations or ()), *(own.tolerations or ())],
        }
        if spec.overhead is None and found.overhead is not None:
            update["overhead"] = found.overhead.pod
        return spec.model_copy(update=update)

    def _rules(
        self, waiting: Waiting, spec: PodSpec, namespace: str, where: str, place: str
    ) -> NodeRules:
        odd = {one.operator for one in spec.tolerations or ()} - {None, "", "Equal", "Exists"}
        names = [f"operator {name}" for name in sorted(map(str, odd))]
        waiting.hold_unknown("Pod.spec.tolerations", names, f"{place}.tolerations")
        terms: list[str | None] = []
        try:
            terms.append(required_terms(spec.affinity, where))
        except InputError as error:
            waiting.hold(left_out("nodeAffinity", str(error), f"{place}.affinity"))
        for volume in spec.volumes or ():
            if volume.claim is not None:
                try:
                    own = self._others.nodes_of_claim(volume.claim.name, namespace)
                except LookupError:
                    waiting.hold(left_out(CLAIM, volume.claim.name, f"{place}.volumes"))
                    continue
                terms.append(checked_terms(own, f"{where}.volumes") if own else None)
        return NodeRules(
            tuple(sorted((spec.node_selector or {}).items())),
            tuple(text for text in terms if text is not None),
            tuple(spec.tolerations or ()),
            place,
        )

    # ---- Kinds ----

    def _workload(self, one: KubeObject) -> None:
        workload = one.read_as(Workload)
        meta, spec = workload.metadata, workload.spec
        job, several = meta.id, {"LeaderWorkerSet"}  # each group has a Workload
        for owner in meta.owners or ():
            owned = id_of(meta.namespace or "default", owner.name)
            self._managed.add((owner.kind, owned))
            is_all = len(meta.owners or ()) == 1 and owner.kind not in several
            job = owned if is_all and owned not in self._workloads.values() else job
        self._workloads[meta.id] = job
        if workload.status.has_ended:
            return
        if workload.status.admission:
            local = self._others.queue(one.section("spec").get("queueName"), meta.namespace)
            queue = self._others.cluster_queue(workload.status.admission.queue or "")
            queue = queue if queue.name else local
            self._uses(queue, workload, workload.status.admission)
            self.jobs.standings[job] = Standing(spec.priority or 0, queue)
            self.jobs.admitted.append(job)
            self._is_assigned(one, workload, workload.status.admission, job)
            return
        waiting = self._waits(job, spec.priority or 0, meta)
        waiting.by_kueue = True
        waiting.created = workload.status.evicted_at or waiting.created
        self._queued(waiting, one.section("spec").get("queueName"), meta)
        raw = {key: value for key, value in one.value.items() if key in ("spec", "status")}
        self._declared(waiting, WORKLOAD, "Workload", raw, one.place_of(""))
        waiting.hold(*_conditions(workload.status, one))
        for idx, own in enumerate(spec.pod_sets):
            where = f"spec.podSets[{idx}]"
            place = one.place_of(f"{where}.topologyRequest")
            asked = _asked(place, partial(_requested, own.request or {}, self._levels))
            where = f"{where}.template"
            count = max(own.count - workload.status.ended_of(own.name), 0)
            pods = _Pods(one, meta, own.name, count, own.template, where, asked)
            waiting.podsets.append(self._podset(waiting, pods))

    def _uses(self, queue: Queue, workload: Workload, admission: Admission) -> None:
        """Note the least that an admitted Workload uses of the quota of its queue."""
        given = {own.name: own.count for own in admission.pod_sets}
        used = self.jobs.used.setdefault(queue.name, Counter())
        for own in workload.spec.pod_sets:
            count = min(own.count, given.get(own.name) or own.count)
            count -= workload.status.ended_of(own.name)
            for name, amount in amounts_of(own.template.spec, "template.spec").items():
                used[name] += max(count, 0) * (amount - rounding(name))

    def _is_assigned(
        self, one: KubeObject, workload: Workload, admission: Admission, job: str
    ) -> None:
        """Note where the pods of an admitted Workload will be."""
        meta, podsets = workload.metadata, {own.name: own for own in workload.spec.pod_sets}
        where = "status.admission.podSetAssignments"
        found = Assigned(job, one.place_of(where))
        for idx, own in enumerate(admission.pod_sets):
            if own.topology is None:
                continue
            with blamed_on(inside=f"{where}[{idx}]"):
                if own.name not in podsets:
                    raise unknown_name(own.name, podsets, field="name")
                template = podsets[own.name].template
                spec = self._of_class(Waiting(0, ""), template.spec, "")
                takes, levels = amounts_of(spec, "template.spec"), tuple(own.topology.levels)
                with blamed_on(inside="topologyAssignment"):
                    pods = [
                        AssignedPods(levels, values, count, takes)
                        for values, count in own.topology.domains()
                    ]
            wanted, ended = podsets[own.name].count, workload.status.ended_of(own.name)
            found.podsets[own.name] = AssignedPodset(pods, wanted=wanted, reclaimable=ended)
            self._keeps_away(job, template.metadata, meta, template.spec)
        if found.podsets:
            self.jobs.assigned.append(found)
            owners = (owner.name for owner in meta.owners or () if owner.kind == "Pod")
            by_pods = (id_of(meta.namespace or "default", pod) for pod in owners)
            for name in (meta.id, job, *by_pods):
                self._assigned.setdefault(name, found)

    def _assigned_of(self, job: str, meta: Meta) -> AssignedPodset | None:
        """Return what the podset of a pod is assigned; None if the pod is not among that."""
        name = self._named(meta)
        ids = [meta.id, job] if name is None else [name]
        found = next((self._assigned[one] for one in ids if one in self._assigned), None)
        return None if found is None else found.of(meta.label(f"{KUEUE}/podset"))

    def _job_set(self, one: KubeObject) -> None:
        jobset = one.read_as(JobSet)
        meta = jobset.metadata
        specs = [own.template.spec for own in jobset.spec.jobs]
        waiting = self._suspended(one, jobset, specs, JOB_SET)
        if waiting is None:
            return
        for idx, own in enumerate(jobset.spec.jobs):
            where = f"spec.replicatedJobs[{idx}].template.spec.template"
            spec = own.template.spec
            job = f"spec.replicatedJobs[{idx}].template"
            raw = one.at(f"{job}.spec")
            self._declared(waiting, JOB, "Job.spec", raw, one.place_of(f"{job}.spec"))
            count = own.replicas * spec.count()
            pods = self._templated(one, meta, own.name, count, spec.template, where)
            both = _together(spec.template.metadata, own.template.metadata)
            pods = replace(pods, template=PodTemplate(metadata=both, spec=spec.template.spec))
            waiting.podsets.append(self._podset(waiting, pods, spec.count()))
        if len(waiting.podsets) > 1:
            for level in filter(None, sorted(waiting.levels, key=str)):
                where = one.place_of("spec.replicatedJobs")
                waiting.hold(left_out("exclusive-topology", level, where))

    def _suspended(
        self, one: KubeObject, owner: Job | JobSet, jobs: Sequence[JobSpec], table: Table
    ) -> Waiting | None:
        """Return a Job or a JobSet of these jobs as one that waits; None if its pods tell."""
        meta = owner.metadata
        is_managed = (one.kind, meta.id) in self._managed or self._of_workload(meta) is not None
        if is_managed or owner.status.has_ended or not owner.spec.suspend:
            return None
        pods = [job.template.spec for job in jobs]
        every = [self._others.priority(pod.priority, pod.priority_class) for pod in pods]
        waiting = self._waits(meta.id, max(every, default=0), meta)
        if not waiting.by_kueue:
            waiting.hold(left_out("suspend", "true", one.place_of("spec.suspend")))
        kind = f"{one.kind}.spec"
        self._declared(waiting, table, kind, one.value["spec"], one.place_of("spec"))
        return waiting

    def _volcano_job(self, one: KubeObject) -> None:
        job = one.read_as(VolcanoJob)
        spec, raw = job.spec, one.value["spec"]
        if job.status.state.phase not in (None, "", "Pending"):
            self._started[job.metadata.id] = one, spec
            return
        priority = self._others.priority(None, spec.priority_class)
        waiting = self._waits(job.metadata.id, priority, job.metadata)
        self._declared(waiting, VOLCANO_JOB, "Job.spec", raw, one.place_of("spec"))
        self._in_queue(waiting, raw, one.place_of("spec.queue"))
        total = sum(task.replicas for task in spec.tasks)
        self._least(waiting, one, spec.least, total, "spec.minAvailable")
        fields = self._tier(waiting, one, spec.topology, "spec.networkTopology")
        for idx, task in enumerate(spec.tasks):
            where = f"spec.tasks[{idx}]"
            self._least(waiting, one, task.least, task.replicas, f"{where}.minAvailable")
            own = fields | self._partitions(waiting, one, task, f"{where}.partitionPolicy")
            asked = Asked(own, "job" if fields else None)
            what = job.metadata, task.name, task.replicas, task.template
            pods = _Pods(one, *what, f"{where}.template", asked)
            waiting.podsets.append(self._podset(waiting, pods))

    def _in_queue(self, waiting: Waiting, raw: Mapping[str, Any], place: str) -> None:
        """Hold a job of Volcano or KAI by its queue."""
        name = str(raw.get("queue") or "default")
        waiting.most |= self._others.most_of(name)
        for why in self._others.closed_queue(name):
            waiting.hold(left_out("queue", why, place))

    def _least(
        self, waiting: Waiting, one: KubeObject, least: int | None, count: int, where: str
    ) -> None:
        if least is not None and least < count:
            waiting.hold(left_out("minAvailable", f"{least} of {count}", one.place_of(where)))

    def _tier(
        self, waiting: Waiting, one: KubeObject, topology: NetworkTopology | None, where: str
    ) -> dict[str, Any]:
        """Return what a network topology asks for, as fields of a request."""
        if topology is None:
            return {}
        tiers, is_hard = self._tiers, topology.mode == "hard"
        tier = topology.highest or (max if is_hard else min)(tiers, default=0)
        if topology.named is not None:
            tier = self._tier_names.get(topology.named, 0)
        if tiers.get(tier) == "":
            return {"required" if is_hard else "preferred": tier_level(tier)}
        if is_hard:
            text = topology.named or f"tier {topology.highest or ''}".rstrip()
            waiting.hold(left_out("networkTopology", text, one.place_of(where)))
        return {}

    def _partitions(
        self, waiting: Waiting, one: KubeObject, task: Task, where: str
    ) -> dict[str, Any]:
        """Return what the partitions of a task ask for: each is in one domain of a tier."""
        own = task.partitions
        if own is None:
            return {}
        least = own.total if own.least is None else own.least
        if least != own.total or own.total * own.size != task.replicas:
            text = f"{least} of {number_of(own.total, 'partition')} of {own.size}"
            waiting.hold(left_out("partitionPolicy", text, one.place_of(where)))
            return {}
        level = self._tier(waiting, one, own.topology, f"{where}.networkTopology").get("required")
        return {} if level is None else {"segments": [Segment(size=own.size, level=level)]}

    def _job(self, one: KubeObject) -> None:
        job = one.read_as(Job)
        meta, spec = job.metadata, job.spec
        if any(owner.kind == "JobSet" for owner in meta.owners or ()):
            return
        waiting = self._suspended(one, job, [spec], JOB)
        if waiting is None:
            return
        count = spec.count(job.status.succeeded or 0)
        pods = self._templated(one, meta, "main", count, spec.template, "spec.template")
        waiting.podsets.append(self._podset(waiting, pods))

    def _pod(self, one: KubeObject) -> None:
        pod = one.read_as(Pod)
        namespace = pod.metadata.namespace or "default"
        gang = gang_of(pod.spec, self._others, namespace)
        above = [] if gang is None else composites_of(gang, self._others, namespace)
        own = id_of(namespace, above[-1].name) if above else _job_of_gang(gang, pod)
        job = self._of_workload(pod.metadata) or own or job_of(pod.metadata)
        assigned = self._assigned_of(job, pod.metadata)
        is_known = self._of_workload(pod.metadata) is not None or job in self._told
        if gang is None and not is_known and waits_alone(pod.metadata):
            job = pod.metadata.id
        if pod.status.phase in {"Succeeded", "Failed"}:
            if assigned is not None and pod.spec.node_name and pod.status.phase == "Succeeded":
                takes = amounts_of(pod.spec, "spec")
                add_amounts(assigned.ended, pod.spec.node_name, takes)
        elif pod.spec.node_name:
            takes = amounts_of(while_resized(pod.spec, pod.status), "spec")
            add_amounts(self.jobs.running.setdefault(job, {}), pod.spec.node_name, takes)
            part = next(filter(None, map(pod.metadata.label, PART_NAMES)), "")
            of_part = self.jobs.parts.setdefault(job, {}).setdefault(part, {})
            add_amounts(of_part, pod.spec.node_name, takes)
            if assigned is not None:
                add_amounts(assigned.there, pod.spec.node_name, takes)
            priority = self._others.priority(pod.spec.priority, pod.spec.priority_class)
            self.jobs.standings.setdefault(job, Standing(priority))
            for owner in pod.metadata.owners or ():
                if owner.kind in ("DaemonSet", "Node"):
                    self.jobs.stays[job] = f"{owner.kind} {owner.name}"
            self.jobs.num_running[job] = self.jobs.num_running.get(job, 0) + 1
            self._keeps_away(job, pod.metadata, pod.metadata, pod.spec)
        elif job in self._told:
            waiting, level = self.jobs.waiting[job], _exclusive_level(pod.metadata)
            if level is not None and level not in waiting.levels:
                place = one.place_of("metadata.annotations")
                waiting.hold(left_out("exclusive-topology", level, place))
        elif self._wanted is not None and job not in self._wanted:
            return
        elif assigned is None and pod.metadata.deleted is None:
            self._waiting_pod(job, pod, one, gang, above)

    def _named(self, meta: Meta) -> str | None:
        """Return the id of the Workload that a pod or a job names; None if it names none."""
        names = (meta.label(key) or meta.annotation(key) for key in WORKLOAD_NAMES)
        ids = (id_of(meta.namespace or "default", name) for name in names if name)
        return next((one for one in ids if one in self._workloads), None)

    def _of_workload(self, meta: Meta) -> str | None:
        """Return the job of the Workload that a pod or a job names; None if it names none."""
        return self._workloads.get(self._named(meta) or "")

    def _keeps_away(self, job: str, meta: TemplateMeta, owner: Meta, spec: PodSpec) -> None:
        """Note which pods those that run, or are assigned, keep away."""
        namespace, affinity = owner.namespace or "default", spec.affinity
        level = _exclusive_level(meta)
        kinds = {one.kind for one in owner.owners or ()}
        family = family_of(meta, namespace, "JobSet" if "JobSet" in kinds else "")
        self.jobs.families[job] = family, level
        if level is not None:
            affinity = without_injected({"affinity": affinity}, level).get("affinity")
        self.jobs.repelling += repelling(owner.id, namespace, affinity, "spec")

    def _waiting_pod(
        self,
        job: str,
        pod: Pod,
        one: KubeObject,
        gang: Gang | None,
        above: Sequence[Composite],
    ) -> None:
        meta = pod.metadata
        place = one.place_of("metadata.annotations")
        asked = _asked(place, lambda: annotated(meta, self._levels))
        priority = self._others.priority(pod.spec.priority, pod.spec.priority_class)
        for _, group in self._others.groups(meta):
            name = None if group is None else group.section("spec").get("priorityClassName")
            own_class = self._others.class_value("PriorityClass", name)
            priority = priority if own_class is None else own_class
        if gang is not None:
            highest = above[-1].spec if above else gang.spec
            own_class = self._others.class_value("PriorityClass", highest.priority_class)
            given = (highest.priority, own_class, priority)
            priority = next(value for value in given if value is not None)
        priority = self._of_kueue(priority, meta)
        waiting = self.jobs.waiting.setdefault(job, Waiting(priority, meta.created or ""))
        self._queued(waiting, meta.label(_QUEUE_NAME), meta)
        sized = any(meta.annotation(key) for key in SIZES)
        together = waiting.by_kueue or sized or any(self._others.groups(meta)) or gang is not None
        waiting.is_loose = not together
        if gang is not None:
            self._in_gang(waiting, gang, asked, place, alone=not above)
        own = PodTemplate(metadata=meta, spec=pod.spec)
        new = self._podset(waiting, _Pods(one, meta, "pods", 1, own, "", asked, False))
        if gang is not None and above:
            new = replace(new, member=(gang.name,))
            self._composites.setdefault(job, {})[gang.name] = gang, above
        for _, group in self._others.groups(meta):
            if group is not None:
                self._pod_groups[job] = group
                new = replace(new, member=self._spec_of(group).member(meta.labels or {}))
        self._of_owners(waiting, one, meta)
        for key, option in SIZES.items():
            text = meta.annotation(key)
            if text is not None:
                size = integer(text, 1, MAX_COUNT, field=f"metadata.annotations.{key}")
                waiting.sizes[option] = size, one.place_of(f"metadata.annotations.{key}")
        waiting.add(new)
        name = meta.label(f"{LWS}/name")
        leader = None if name is None else self._others.get("LeaderWorkerSet", name, meta.namespace)
        if leader is not None:
            self._groups[job] = leader

    def _in_gang(
        self, waiting: Waiting, gang: Gang, asked: Asked, place: str, *, alone: bool
    ) -> None:
        """Add what the group of a pod of Kubernetes asks for, or hold the pod by it.

        If it is not alone, the groups that it is in decide the rest (`arrange`).
        """
        if gang.one is None:
            waiting.hold(left_out("pod-group", gang.name, place))
            return
        where, spec = gang.one.place_of(gang.where), gang.spec
        self._declared(waiting, GANG, "PodGroup", gang.raw, where)
        if not alone:
            return
        if spec.least is not None:
            waiting.sizes["minCount"] = spec.least, f"{where}.gang.minCount"
        is_whole = spec.least is not None and not asked.fields and not asked.group
        if len(spec.keys) == 1 and is_whole and spec.keys[0] in self._levels:
            asked.fields, asked.group = {"required": spec.keys[0]}, "job"
        elif spec.keys:
            text = ", ".join(spec.keys)
            waiting.hold(left_out("schedulingConstraints", text, f"{where}.schedulingConstraints"))

    def complete(self) -> None:
        """Add the workers of groups of which only pods that wait are there, as the leader is."""
        for job, one in self._groups.items():
            waiting = self.jobs.waiting[job]
            where = one.place_of("spec")
            self._declared(waiting, LWS_SPEC, "LeaderWorkerSet.spec", one.section("spec"), where)
            missing = waiting.sizes.get("size", (0, ""))[0] - waiting.num_pods
            if missing > 0 and job not in self.jobs.running:
                with one.blamed():
                    group = one.read_as(LeaderWorkerSet)
                    where = "spec.leaderWorkerTemplate.workerTemplate"
                    of = group.spec.template.workers
                    pods = self._templated(one, group.metadata, "pods", missing, of, where)
                    waiting.add(self._podset(waiting, pods))

    def _spec_of(self, group: KubeObject) -> PodGroupSpec:
        if id(group) not in self._specs:
            self._specs[id(group)] = group.checked_as(PodGroup).spec
        return self._specs[id(group)]

    def arrange(self) -> None:
        """Give the pods of PodGroups the domains of these, and of their sub-groups."""
        for job, (one, own) in self._started.items():
            if job in self.jobs.waiting:
                self._in_tier(job, one, own.topology)
                for idx, task in enumerate(own.tasks):
                    topology = task.partitions and task.partitions.topology
                    if topology and topology.mode == "hard" and job not in self._pod_groups:
                        where = one.place_of(f"spec.tasks[{idx}].partitionPolicy")
                        self.jobs.waiting[job].hold(left_out("partitionPolicy", "started", where))
        for job, group in self._pod_groups.items():
            waiting, spec = self.jobs.waiting[job], self._spec_of(group)
            if spec.tasks and sum(spec.tasks.values()) != waiting.num_pods:
                text = f"{sum(spec.tasks.values())} of {waiting.num_pods}"
                waiting.hold(left_out("minTaskMember", text, group.place_of("spec.minTaskMember")))
            self._in_tier(job, group, spec.topology)
            if job in self.jobs.running:
                options = {"subGroups": spec.sub_groups, "subGroupPolicy": spec.policies}
                for option in (name for name, own in options.items() if own):
                    waiting.hold(left_out(option, "some run", group.place_of(f"spec.{option}")))
                continue
            with group.blamed():
                if not spec.sub_groups and not spec.policies:
                    continue
                try:
                    waiting.podsets[:] = parts_of(
                        spec,
                        waiting.podsets,
                        self._levels,
                        self._topology,
                        partial(self._hard_tier, waiting, group),
                    )
                except NotModelledError as error:
                    waiting.hold(error.held_by(group.place_of("spec")))
        for job, gangs in self._composites.items():
            self._arrange_composites(job, gangs)

    def _arrange_composites(
        self, job: str, gangs: Mapping[str, tuple[Gang, Sequence[Composite]]]
    ) -> None:
        """Give the pods of groups of groups the domains of all these."""
        waiting = self.jobs.waiting[job]
        every = {own.name: own.one for _, above in gangs.values() for own in above}
        where = [one.place_of("spec") for one in every.values() if one is not None]
        for one in filter(None, every.values()):
            raw = one.section("spec")
            self._declared(waiting, COMPOSITE, "CompositePodGroup", raw, one.place_of("spec"))
        try:
            if job in self.jobs.running:
                raise NotModelledError("CompositePodGroup", "some of its pods run")
            waiting.podsets[:] = parts_of_composites(gangs, waiting.podsets, self._levels)
        except NotModelledError as error:
            waiting.hold(error.held_by(next(iter(where), "pods")))

    def _in_tier(self, job: str, one: KubeObject, topology: NetworkTopology | None) -> None:
        """Give the pods of a job that wait the domain of all its pods, if it is more than a wish.

        Where some run, that holds the job; a wish is nothing there.
        """
        waiting = self.jobs.waiting[job]
        with one.blamed():
            fields = self._tier(waiting, one, topology, "spec.networkTopology")
        if not fields or ("required" not in fields and job in self.jobs.running):
            return
        if not any(own.asked for own in waiting.podsets):
            waiting.podsets[:] = [
                replace(own, asked=fields, group="job") for own in waiting.podsets
            ]
        elif "required" in fields and any(own.asked != fields for own in waiting.podsets):
            text = f"{fields['required']}, beside others"
            waiting.hold(left_out("networkTopology", text, one.place_of("spec.networkTopology")))

    def _hard_tier(
        self, waiting: Waiting, group: KubeObject, topology: NetworkTopology | None
    ) -> str | None:
        return self._tier(waiting, group, topology, "spec.subGroupPolicy").get("required")

    def _of_owners(self, waiting: Waiting, one: KubeObject, meta: Meta) -> None:
        """Hold a pod by what its owners and its PodGroup say."""
        for owner in self._others.above(meta):
            if owner.kind in {"Job", "JobSet"} and _has_ended(owner):
                text = f"{owner.kind} {owner.section('metadata').get('name')} has ended"
                waiting.hold(left_out("owner", text, one.place_of("metadata.ownerReferences")))
            if (owner.group, owner.kind) in _OWNERS:
                names = _OWNERS[owner.group, owner.kind].unknown_in(owner.section("spec"))
                waiting.hold_unknown(f"{owner.kind}.spec", names, owner.place_of("spec"))
        for name, group in self._others.groups(meta):
            if group is None:
                waiting.hold(left_out("pod-group", name, one.place_of("metadata")))
                continue
            raw = group.section("spec")
            self._declared(waiting, POD_GROUP, "PodGroup.spec", raw, group.place_of("spec"))
            if group.group in _WITH_QUEUES:
                self._in_queue(waiting, raw, group.place_of("spec.queue"))
            if isinstance(raw.get("minMember"), int):
                waiting.sizes["minMember"] = raw["minMember"], group.place_of("spec.minMember")


@dataclass(frozen=True)
class _Pods:
    """The pods of a podset as an object describes them: `where` in it, with what asked for."""

    one: KubeObject
    owner: Meta
    name: str
    count: int
    template: PodTemplate
    where: str
    asked: Asked
    is_template: bool = True


def _job_of_gang(gang: Gang | None, pod: Pod) -> str | None:
    """Return the job of a pod of a group of Kubernetes: the group, if its pods start together."""
    if gang is None:
        return None
    is_basic = gang.one is not None and gang.spec.least is None
    return pod.metadata.id if is_basic else id_of(pod.metadata.namespace or "default", gang.name)


def _exclusive_level(meta: TemplateMeta) -> str | None:
    return meta.annotation(LWS_EXCLUSIVE) or meta.annotation(JOBSET_EXCLUSIVE)


def _asked(place: str, read: Callable[[], Asked]) -> Asked:
    """Return what pods ask of the topology; what is wrong in it holds their job, and no other."""
    try:
        return read()
    except InputError as error:
        return Asked(left_out=[left_out("topology", str(error), place)])


def _requested(raw: Any, levels: Sequence[str]) -> Asked:
    """Return what the topology request of a podset asks for."""
    return asked_of(Parsed(raw, {}).validated(TopologyRequest), levels)


def _has_ended(owner: KubeObject) -> bool:
    """Tell whether an owner has ended; what is wrong in it is for its own reader to say."""
    try:
        return Parsed(owner.section("status"), {}).validated(Conditions).has_ended
    except InputError:
        return False


def _together(one: TemplateMeta, other: TemplateMeta) -> TemplateMeta:
    """Return the labels and annotations of both; those of the first go before."""
    return TemplateMeta(
        labels=(other.labels or {}) | (one.labels or {}),
        annotations=(other.annotations or {}) | (one.annotations or {}),
    )


def _conditions(status: Conditions, one: KubeObject) -> Iterator[LeftOut]:
    """Yield what the conditions of a Workload say of why it waits, beside the topology."""
    states = {(own.type, own.status) for own in status.conditions or ()}
    at = next(values_at(one.section("status"), "requeueState.requeueAt"), None)
    if at is not None and ("Requeued", "True") not in states:
        yield left_out("requeued", f"not before {at}", one.place_of("status.requeueState"))
    for idx, own in enumerate(status.conditions or ()):
        place = one.place_of(f"status.conditions[{idx}]")
        if own.status != "False":
            continue
        if own.type == "QuotaReserved" and not _is_of_topology(own):
            option = "quota" if "quota" in f"{own.reason} {own.message}".lower() else "queue"
            yield left_out(option, own.message or own.reason, place)
        elif own.type == "Requeued":
            yield left_out("requeued", own.reason or "false", place)


def _is_of_topology(own: Reasoned) -> bool:
    """Return whether a Workload has no quota because of the topology, or for a reason now past."""
    past = {"PendingEvaluation", "PendingDelayedTopologyRequests"}
    if own.reason != "Pending" or not own.message:
        return own.reason in {"", "Pending", "TopologyPlacementFailed", *past}
    of_others = (
        *("Previously: ", "Preempted to accommodate "),
        "Workload no longer fits after processing another workload",
    )
    is_full = "topology" in own.message and "quota" not in own.message
    return is_full or own.message.startswith(of_others)
