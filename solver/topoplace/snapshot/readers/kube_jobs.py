"""Jobs of Kubernetes: which pods run where, and what waits: Workloads, Jobs, JobSets, pods."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from topoplace.errors import InputError, unknown_name
from topoplace.snapshot.readers.kube_nodes import tier_level
from topoplace.snapshot.readers.kube_objects import (
    IN_A_NAME,
    Condition,
    KubeModel,
    KubeObject,
    Meta,
    PodSpec,
    PodTemplate,
    TemplateMeta,
    Toleration,
    amounts_of,
    id_of,
)
from topoplace.snapshot.readers.tables import integer
from topoplace.snapshot.schema import Segment

_KUEUE = "kueue.x-k8s.io"
_REQUIRED, _PREFERRED = f"{_KUEUE}/podset-required-topology", f"{_KUEUE}/podset-preferred-topology"
_SLICE_LEVEL = f"{_KUEUE}/podset-slice-required-topology"
_SLICE_SIZE = f"{_KUEUE}/podset-slice-size"
_SLICE_LAYERS = f"{_KUEUE}/podset-slice-required-topology-constraints"
_GROUP = f"{_KUEUE}/podset-group-name"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"

_JOB_LABELS = (
    f"{_KUEUE}/pod-group-name",
    "jobset.sigs.k8s.io/jobset-name",
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""Labels that name the job of a pod, those that count most first."""

_MAX_COUNT = 1 << 21

Count = Annotated[int, Field(ge=0, le=_MAX_COUNT)]

# ---- What a podset asks for, by annotations or by the fields of a Workload -----------------------


@dataclass(frozen=True)
class Podset:
    """So many pods alike.

    Attributes
    ----------
    name, count, takes
        Its name, its pods, and what each takes of its node.
    asked
        Where the pods may go, as fields of a request.
    group
        The podsets that go with it.
    tolerations
        The taints of nodes that it tolerates.
    is_selective
        Whether it selects nodes in ways that a snapshot cannot say.
    """

    name: str
    count: int
    takes: Mapping[str, int]
    asked: Mapping[str, Any]
    group: str | None
    tolerations: tuple[Toleration, ...]
    is_selective: bool


def _podset(
    name: str,
    count: int,
    spec: PodSpec,
    asked: Mapping[str, Any],
    where: str,
    group: str | None = None,
) -> Podset:
    return Podset(
        name,
        count,
        amounts_of(spec, where),
        asked,
        group,
        tuple(spec.tolerations or ()),
        bool(spec.node_selector or spec.affinity),
    )


@contextlib.contextmanager
def _inside(where: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise error.inside(where) from None


def _annotated(meta: TemplateMeta, levels: Sequence[str]) -> tuple[dict[str, Any], str | None]:
    """Return what Kueue's annotations ask for, and the podset group."""
    level, size = meta.annotation(_SLICE_LEVEL), meta.annotation(_SLICE_SIZE)
    request = _TopologyRequest(
        required=meta.annotation(_REQUIRED),
        preferred=meta.annotation(_PREFERRED),
        slice_level=level,
        slice_size=None if size is None else integer(size, 1, _MAX_COUNT, field=_SLICE_SIZE),
        layers=_layers(meta.annotation(_SLICE_LAYERS)),
        group=meta.annotation(_GROUP),
    )
    return _asked(request, levels, _NAMES_OF_ANNOTATIONS)


def _layers(text: str | None) -> list[_Layer] | None:
    if text is None:
        return None
    try:
        return [_Layer.model_validate(layer) for layer in json.loads(text)]
    except (ValueError, TypeError, RecursionError):
        expected = 'a list such as [{"topology": "example.com/rack", "size": 4}]'
        raise InputError(expected, field=_SLICE_LAYERS, value=text) from None


class _Layer(KubeModel):
    topology: str
    size: Annotated[int, Field(ge=1, le=_MAX_COUNT)]


class _TopologyRequest(KubeModel):
    required: str | None = None
    preferred: str | None = None
    slice_level: Annotated[str | None, Field(alias="podSetSliceRequiredTopology")] = None
    slice_size: Annotated[int | None, Field(alias="podSetSliceSize", ge=1, le=_MAX_COUNT)] = None
    layers: Annotated[
        list[_Layer] | None, Field(alias="podsetSliceRequiredTopologyConstraints")
    ] = None
    group: Annotated[str | None, Field(alias="podSetGroupName")] = None


_NAMES_OF_FIELDS = {
    name: str(info.alias or name) for name, info in _TopologyRequest.model_fields.items()
}
_NAMES_OF_ANNOTATIONS = {
    "required": _REQUIRED,
    "preferred": _PREFERRED,
    "slice_level": _SLICE_LEVEL,
    "slice_size": _SLICE_SIZE,
    "layers": _SLICE_LAYERS,
    "group": _GROUP,
}


def _asked(
    request: _TopologyRequest, levels: Sequence[str], names: Mapping[str, str]
) -> tuple[dict[str, Any], str | None]:
    """Return a topology request as fields of a request of ours, and the podset group.

    `names` are those of its fields, for errors. What is required goes before what is preferred, as
    Kueue has it.
    """

    def known(level: str, name: str) -> str:
        if level not in levels:
            raise unknown_name(level, levels, field=names[name])
        return level

    if (request.slice_level is None) != (request.slice_size is None):
        one, other = names["slice_level"], names["slice_size"]
        alone = other if request.slice_level is None else one
        raise InputError(f"both {one} and {other}", field=alone, found="one of them")
    asked: dict[str, Any] = {}
    if request.required is not None:
        asked["required"] = known(request.required, "required")
    elif request.preferred is not None:
        asked["preferred"] = known(request.preferred, "preferred")
    group = request.group if asked else None
    if group is not None and not IN_A_NAME.fullmatch(group):
        expected = "a name without spaces, commas or semicolons"
        raise InputError(expected, field=names["group"], value=group)
    segments = [
        Segment(size=layer.size, level=known(layer.topology, "layers"))
        for layer in request.layers or ()
    ]
    if request.slice_level is not None and request.slice_size is not None:
        level = known(request.slice_level, "slice_level")
        segments.append(Segment(size=request.slice_size, level=level))
    return asked | ({"segments": segments} if segments else {}), group


# ---- The objects ---------------------------------------------------------------------------------


class _PodStatus(KubeModel):
    phase: str | None = None


class _Pod(KubeModel):
    metadata: Meta
    spec: PodSpec
    status: _PodStatus = Field(default_factory=_PodStatus)


class _JobSpec(KubeModel):
    suspend: bool | None = None
    parallelism: Count | None = None
    completions: Count | None = None
    template: PodTemplate

    @property
    def count(self) -> int:
        """How many pods run at once."""
        parallelism = 1 if self.parallelism is None else self.parallelism
        return parallelism if self.completions is None else min(parallelism, self.completions)


class _Conditions(KubeModel):
    conditions: list[Condition] | None = None
    admission: dict[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it is complete, failed or finished."""
        ends = {"Complete", "Completed", "Failed", "Finished"}
        return any(one.type in ends and one.status == "True" for one in self.conditions or ())


class _Job(KubeModel):
    metadata: Meta
    spec: _JobSpec
    status: _Conditions = Field(default_factory=_Conditions)


class _JobTemplate(KubeModel):
    metadata: TemplateMeta = Field(default_factory=TemplateMeta)
    spec: _JobSpec


class _ReplicatedJob(KubeModel):
    name: str
    replicas: Count = 1
    template: _JobTemplate


class _JobSetSpec(KubeModel):
    suspend: bool | None = None
    jobs: Annotated[list[_ReplicatedJob], Field(alias="replicatedJobs")]


class _JobSet(KubeModel):
    metadata: Meta
    spec: _JobSetSpec
    status: _Conditions = Field(default_factory=_Conditions)


class _PodSet(KubeModel):
    name: str = "main"
    count: Count
    template: PodTemplate
    request: Annotated[_TopologyRequest | None, Field(alias="topologyRequest")] = None


class _WorkloadSpec(KubeModel):
    pod_sets: Annotated[list[_PodSet], Field(alias="podSets")]
    active: bool | None = None
    priority: int | None = None


class _Workload(KubeModel):
    metadata: Meta
    spec: _WorkloadSpec
    status: _Conditions = Field(default_factory=_Conditions)


class _NetworkTopology(KubeModel):
    mode: Literal["hard", "soft"] = "hard"
    highest: Annotated[int | None, Field(alias="highestTierAllowed", ge=1)] = None


class _Task(KubeModel):
    name: str = "task"
    replicas: Count = 1
    template: PodTemplate


class _VolcanoSpec(KubeModel):
    tasks: list[_Task]
    topology: Annotated[_NetworkTopology | None, Field(alias="networkTopology")] = None


class _Phase(KubeModel):
    phase: str | None = None


class _VolcanoStatus(KubeModel):
    state: _Phase = Field(default_factory=_Phase)


class _VolcanoJob(KubeModel):
    metadata: Meta
    spec: _VolcanoSpec
    status: _VolcanoStatus = Field(default_factory=_VolcanoStatus)


# ---- What runs, and what waits -------------------------------------------------------------------


@dataclass
class Waiting:
    """A job that waits: its podsets, its priority, and when it was made."""

    podsets: list[Podset]
    priority: int
    created: str


@dataclass
class KubeJobs:
    """What the objects of a file say of jobs.

    Attributes
    ----------
    running
        By job and node what its pods take.
    waiting
        By job what it asks for.
    """

    running: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)


def jobs_of(objects: Sequence[KubeObject], levels: Sequence[str]) -> KubeJobs:
    """Return the jobs among some objects.

    A Workload that is not admitted, a Job or JobSet that is suspended, and a Job of Volcano that is
    pending tell what waits. Of all others their pods do: those on a node run, those without wait.
    Nothing is counted twice: not a Job with a Workload or of a JobSet, nor pods of what waits.

    Raises
    ------
    InputError
        With the object and the field at fault.
    """
    reader = _Reader(levels)
    for (group, kind), read in reader.kinds.items():  # in this order: what tells most goes first
        for one in objects:
            if (one.group, one.kind) == (group, kind):
                with one.blamed():
                    read(one)
    return reader.jobs


class _Reader:
    """Reads objects kind by kind, and remembers what is told of already."""

    def __init__(self, levels: Sequence[str]) -> None:
        self.jobs = KubeJobs()
        self._levels = levels
        self._told: set[str] = set()
        """Jobs that wait by what an object says, so that their pods do not tell."""
        self._managed: set[tuple[str, str]] = set()
        """Kinds and ids of what has a Workload."""
        self.kinds: dict[tuple[str, str], Callable[[KubeObject], None]] = {
            (_KUEUE, "Workload"): self._workload,
            ("jobset.x-k8s.io", "JobSet"): self._job_set,
            ("batch.volcano.sh", "Job"): self._volcano_job,
            ("batch", "Job"): self._job,
            ("", "Pod"): self._pod,
        }

    def _wait(self, job: str, podsets: list[Podset], priority: int, created: str | None) -> None:
        self._told.add(job)
        self.jobs.waiting[job] = Waiting(podsets, priority, created or "")

    def _templated(self, name: str, count: int, template: PodTemplate, where: str) -> Podset:
        with _inside(f"{where}.metadata.annotations"):
            asked, group = _annotated(template.metadata, self._levels)
        return _podset(name, count, template.spec, asked, f"{where}.spec", group)

    def _workload(self, one: KubeObject) -> None:
        workload = one.read_as(_Workload)
        meta, spec = workload.metadata, workload.spec
        job = meta.id
        for owner in meta.owners or ():
            owned = id_of(meta.namespace or "default", owner.name)
            self._managed.add((owner.kind, owned))
            job = owned if len(meta.owners or ()) == 1 else job
        if workload.status.has_ended or workload.status.admission or spec.active is False:
            return
        podsets = []
        for idx, own in enumerate(spec.pod_sets):
            where = f"spec.podSets[{idx}]"
            with _inside(f"{where}.topologyRequest"):
                request = own.request or _TopologyRequest()
                asked, group = _asked(request, self._levels, _NAMES_OF_FIELDS)
            spec_of_pod = own.template.spec
            podsets.append(
                _podset(own.name, own.count, spec_of_pod, asked, f"{where}.template.spec", group)
            )
        self._wait(job, podsets, spec.priority or 0, meta.created)

    def _job_set(self, one: KubeObject) -> None:
        jobset = one.read_as(_JobSet)
        meta = jobset.metadata
        if ("JobSet", meta.id) in self._managed or jobset.status.has_ended:
            return
        if not jobset.spec.suspend:
            return
        podsets = []
        for idx, own in enumerate(jobset.spec.jobs):
            where = f"spec.replicatedJobs[{idx}].template.spec.template"
            spec = own.template.spec
            podset = self._templated(own.name, own.replicas * spec.count, spec.template, where)
            podsets.append(self._exclusive(podset, meta, own, spec.count))
        every = [own.template.spec.template.spec.priority or 0 for own in jobset.spec.jobs]
        priority = max(every, default=0)
        self._wait(meta.id, podsets, priority, meta.created)

    def _exclusive(self, podset: Podset, meta: Meta, own: _ReplicatedJob, size: int) -> Podset:
        """Return a podset each of whose jobs has a domain for itself, if a JobSet says so."""
        metas = (meta, own.template.metadata, own.template.spec.template.metadata)
        level = next(filter(None, (one.annotation(_EXCLUSIVE) for one in metas)), None)
        if level is None or level not in self._levels or not size:
            return podset
        whole = Segment(size=size, level=level)
        asked = {"segments": [whole], **podset.asked, "exclusive": level, "spread": whole}
        return replace(podset, asked=asked)

    def _volcano_job(self, one: KubeObject) -> None:
        job = one.read_as(_VolcanoJob)
        if job.status.state.phase not in (None, "", "Pending"):
            return
        asked: dict[str, Any] = {}
        topology = job.spec.topology
        tiers = [level for level in self._levels if level.startswith(tier_level(0)[:-1])]
        if topology is not None and tiers:
            level = tiers[-1] if topology.highest is None else tier_level(topology.highest)
            if topology.mode == "hard" and topology.highest is None:
                level = tiers[0]
            if level not in tiers:
                where = "spec.networkTopology.highestTierAllowed"
                raise unknown_name(level, tiers, field=where)
            asked["required" if topology.mode == "hard" else "preferred"] = level
        podsets = [
            _podset(
                task.name,
                task.replicas,
                task.template.spec,
                asked,
                f"spec.tasks[{idx}].template.spec",
                "job" if asked else None,
            )
            for idx, task in enumerate(job.spec.tasks)
        ]
        self._wait(job.metadata.id, podsets, 0, job.metadata.created)

    def _job(self, one: KubeObject) -> None:
        job = one.read_as(_Job)
        meta, spec = job.metadata, job.spec
        if ("Job", meta.id) in self._managed or job.status.has_ended or not spec.suspend:
            return
        if any(owner.kind == "JobSet" for owner in meta.owners or ()):
            return
        podset = self._templated("main", spec.count, spec.template, "spec.template")
        self._wait(meta.id, [podset], spec.template.spec.priority or 0, meta.created)

    def _pod(self, one: KubeObject) -> None:
        pod = one.read_as(_Pod)
        if pod.status.phase in {"Succeeded", "Failed"}:
            return
        job = _job_of(pod.metadata)
        if pod.spec.node_name:
            held = self.jobs.running.setdefault(job, {}).setdefault(pod.spec.node_name, {})
            for name, amount in amounts_of(pod.spec, "spec").items():
                held[name] = held.get(name, 0) + amount
        elif job not in self._told:
            self._waiting_pod(job, pod)

    def _waiting_pod(self, job: str, pod: _Pod) -> None:
        with _inside("metadata.annotations"):
            asked, group = _annotated(pod.metadata, self._levels)
        new = _podset("pods", 1, pod.spec, asked, "spec", group)
        started = Waiting([], pod.spec.priority or 0, pod.metadata.created or "")
        podsets = self.jobs.waiting.setdefault(job, started).podsets
        for idx, other in enumerate(podsets):
            if replace(other, name=new.name, count=new.count) == new:
                podsets[idx] = replace(other, count=other.count + 1)
                return
        podsets.append(replace(new, name=f"pods{len(podsets)}" if podsets else "pods"))


def _job_of(meta: Meta) -> str:
    """Return the job that a pod is of: of a label, of its controller, or its own."""
    namespace = meta.namespace or "default"
    for key in _JOB_LABELS:
        name = meta.label(key)
        if name is not None:
            return id_of(namespace, name)
    for owner in meta.owners or ():
        if owner.controller:
            return id_of(namespace, owner.name)
    return meta.id
