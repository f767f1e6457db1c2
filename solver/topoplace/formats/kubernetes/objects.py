"""Kubernetes objects as kubectl prints them: lists or documents, in JSON or YAML; quantities."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import ConfigDict, Field

from topoplace.errors import UNSEEN, InputError, blamed_on
from topoplace.formats.yaml_text import Parsed, read_parsed, value_at
from topoplace.snapshot.faults import kind_of_text
from topoplace.snapshot.schema import NAME_PATTERN, Model

# ---- Objects, and where they stand ---------------------------------------------------------------


class KubeModel(Model):
    """What is read of an object, which says much more."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


IN_A_NAME = re.compile(rf"[^\s,;{UNSEEN}]{{1,100}}")
KubeName = Annotated[str, Field(min_length=1, pattern=NAME_PATTERN)]
"""A name that can be in the id of a job, or that of a host."""
_LabelValue = Annotated[str, Field(pattern=rf"^[^\s,;{UNSEEN}]*$")]


class Owner(KubeModel):
    """What an object belongs to."""

    kind: str
    name: KubeName
    controller: bool | None = None


class TemplateMeta(KubeModel):
    """Labels and annotations."""

    labels: dict[str, _LabelValue] | None = None
    annotations: dict[str, str] | None = None

    def label(self, key: str) -> str | None:
        """Return the value of a label, None if it is absent or empty."""
        return (self.labels or {}).get(key) or None

    def annotation(self, key: str) -> str | None:
        """Return the value of an annotation, None if it is absent."""
        return (self.annotations or {}).get(key)


class Meta(TemplateMeta):
    """Name, labels, annotations and owners."""

    name: KubeName
    namespace: _LabelValue | None = None
    owners: Annotated[list[Owner] | None, Field(alias="ownerReferences")] = None
    created: Annotated[str | None, Field(alias="creationTimestamp")] = None
    deleted: Annotated[str | None, Field(alias="deletionTimestamp")] = None

    @property
    def id(self) -> str:
        """Namespace and name, as the id of a job."""
        return id_of(self.namespace or "default", self.name)


Spec = TypeVar("Spec")
Status = TypeVar("Status")


class Kube(KubeModel, Generic[Spec, Status]):
    """An object with its specification, and its status, which may be left out."""

    metadata: Meta
    spec: Spec
    status: Status = Field(default_factory=dict, validate_default=True)


class Condition(KubeModel):
    """Something that is so, or not, or unknown."""

    type: str
    status: str


class Reasoned(Condition):
    """A condition, why it is so, and since when."""

    reason: str = ""
    message: str = ""
    since: Annotated[str | None, Field(alias="lastTransitionTime")] = None


Kind = TypeVar("Kind", bound=KubeModel)


@dataclass(frozen=True)
class KubeObject:
    """An object of a file.

    Attributes
    ----------
    group, version, kind
        Such as ``kueue.x-k8s.io``, ``v1beta1`` and ``Topology``; the group is empty for pods and
        nodes.
    place
        Where it stands in its document, such as ``items[3]``; empty for all of it.
    value, document
        Its fields, and what they stand in.
    """

    group: str
    version: str
    kind: str
    place: str
    value: dict[str, Any]
    document: Parsed

    def section(self, name: str) -> dict[str, Any]:
        """Return ``metadata``, ``spec`` or ``status`` as it stands there; empty if it is none."""
        value = self.value.get(name)
        return value if isinstance(value, dict) else {}

    def at(self, field: str) -> Any:
        """Return what stands at a field such as ``spec.template.spec``."""
        return value_at(self.value, field)

    @cached_property
    def title(self) -> str:
        """Its kind, namespace and name; nothing if it has no name that a line can show."""
        names = [self.section("metadata").get(key) for key in ("namespace", "name")]
        shown = "/".join(str(name) for name in names if name)
        is_named = isinstance(names[1], str) and IN_A_NAME.fullmatch(names[1]) and len(shown) <= 300
        return f"{self.kind} {shown}" if is_named else ""

    def place_of(self, field: str) -> str:
        """Return where a field stands: its line, if that is known, the object, and the field."""
        whole = ".".join(filter(None, (self.place, field)))
        line = self.document.line_of(whole)
        named = ": ".join(filter(None, (self.title, field))) if self.title else whole
        return ", ".join(filter(None, ("" if line is None else f"line {line}", named)))

    def read_as(self, model: type[Kind]) -> Kind:
        """Return what is read of the object; to be called where it is `blamed`."""
        return Parsed(self.value, {}).validated(model)

    def checked_as(self, model: type[Kind]) -> Kind:
        """Return what is read of the object, or raise its faults with its place."""
        with self.blamed():
            return self.read_as(model)

    @contextlib.contextmanager
    def blamed(self, field: str = "") -> Iterator[None]:
        """Name the object, and the line of the field, in an `InputError` that the block raises."""
        try:
            yield
        except InputError as error:
            for fault in error.faults:
                fault.field = self.place_of(".".join(filter(None, (field, fault.field))))
            raise


def as_waiting(one: KubeObject) -> KubeObject:
    """Return a pod that runs, or a Workload that is admitted, as one that waits."""
    value = {**one.value}
    if one.kind == "Pod" and one.section("status").get("phase") not in ("Succeeded", "Failed"):
        spec = {key: own for key, own in one.section("spec").items() if key != "nodeName"}
        value |= {"spec": spec, "status": {"phase": "Pending"}}
    elif one.kind == "Workload":
        status = {key: own for key, own in one.section("status").items() if key != "admission"}
        value["status"] = status
    return replace(one, value=value)


def read_kube_objects(path: str | Path) -> list[KubeObject]:
    """Read the objects of a file, out of lists too.

    Raises
    ------
    InputError
        For what is no YAML or JSON, or no object of Kubernetes.
    """
    found: list[KubeObject] = []
    with blamed_on(path):
        for document in read_parsed(path):
            if document.value is not None:  # which an empty document is
                found += _objects(document)
    return found


def _objects(document: Parsed) -> Iterator[KubeObject]:
    whole = _object(document, document.value, "", "")
    if not whole.kind.endswith("List"):
        yield whole
        return
    items = whole.value.get("items")
    if not isinstance(items, list):
        found = "nothing" if items is None else None
        raise document.placed(InputError("a list", field="items", value=items, found=found))
    api = str(whole.value.get("apiVersion", ""))
    for idx, item in enumerate(items):
        yield _object(document, item, f"items[{idx}]", whole.kind.removesuffix("List"), api)


def _object(document: Parsed, value: object, place: str, kind: str, api: str = "") -> KubeObject:
    """Return an object, whose kind and version its list may tell instead."""
    try:
        if not isinstance(value, dict):
            found = kind_of_text(value.encode()) if isinstance(value, str) else None
            raise InputError(
                "an object of Kubernetes", field=place or None, value=value, found=found
            )
        for key in ("apiVersion", "kind"):
            if not isinstance(value.get(key, "" if kind else None), str):
                found = "nothing" if value.get(key) is None else None
                field = f"{place}.{key}".strip(".")
                raise InputError("text", field=field, value=value.get(key), found=found)
    except InputError as error:
        raise document.placed(error) from None
    group, _, version = value.get("apiVersion", api).rpartition("/")
    return KubeObject(group, version, value.get("kind", kind), place, value, document)


_MAX_ID = 128


def id_of(*names: str) -> str:
    """Return names joined by slashes as the id of a job; what is too long ends in a checksum."""
    text = "/".join(names)
    if len(text) <= _MAX_ID:
        return text
    return f"{text[: _MAX_ID - 9]}~{hash_of(text)}"


def hash_of(text: str) -> str:
    """Return a short checksum of a text, for names."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# ---- Quantities, and what a pod asks for ---------------------------------------------------------

_QUANTITY = re.compile(
    r"([0-9]{1,24}(?:\.[0-9]{0,24})?|\.[0-9]{1,24})([A-Za-z]*|[eE][+-]?[0-9]{1,2})"
)
_UNITS = {
    **{"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)},
    **{unit: Fraction(1000**k) for k, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Fraction(1024**k) for k, unit in enumerate("KMGTPE", start=1)},
}
_BYTES = re.compile(r"memory|ephemeral-storage|storage|hugepages-.*")
_MAX_AMOUNT = 1 << 30
_NONE = Fraction(0)


def quantity(text: str | int | float, field: str) -> Fraction:
    """Return a quantity such as ``250m``, ``16Gi`` or ``1e3``.

    Raises
    ------
    InputError
        For anything else, or one below zero.
    """
    amount = _amount(str(text))
    if amount is None:
        raise InputError("a quantity such as 250m or 16Gi", field=field, value=text)
    return amount


@lru_cache(maxsize=4096)
def _amount(text: str) -> Fraction | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, unit = Fraction(match[1]), match[2]
    if unit in _UNITS:
        return number * _UNITS[unit]
    is_power = unit[1:].lstrip("+-").isdigit()
    return number * Fraction(10) ** int(unit[1:]) if is_power else None


def base_units(resource: str, amount: Fraction, field: str, *, up: bool) -> int:
    """Return an amount as an integer: of thousandths of a CPU, of MiB, or of the thing itself.

    It is rounded up if asked for, down if it is what there is.
    """
    amount = in_units(resource, amount)
    whole = -(-amount.numerator // amount.denominator) if up else int(amount)
    if whole > _MAX_AMOUNT:
        raise InputError(f"at most {_MAX_AMOUNT} units", field=field, value=str(whole))
    return whole


def in_units(resource: str, amount: Fraction) -> Fraction:
    """Return an amount in thousandths of a CPU, in MiB, or in the thing itself, as it is."""
    if resource == "cpu":
        return amount * 1000
    return amount / (1 << 20) if _BYTES.fullmatch(resource) else amount


def rounding(resource: str) -> int:
    """Return by how much an amount that is asked for may be too high, as it is rounded."""
    return 1 if _BYTES.fullmatch(resource) else 0


_ResourceName = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME_PATTERN)]
Quantities = dict[_ResourceName, str | int | float]
"""Quantities by the name of the resource."""


class Resources(KubeModel):
    """What a container asks for, and what it is limited to."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(KubeModel):
    """A container of a pod."""

    name: str | None = None
    resources: Resources | None = None
    restart_policy: Annotated[str | None, Field(alias="restartPolicy")] = None


class ContainerStatus(KubeModel):
    """What a container of a pod was given, and what its node has set aside for it."""

    name: str | None = None
    resources: Resources | None = None
    allocated: Annotated[Quantities | None, Field(alias="allocatedResources")] = None


class PodStatus(KubeModel):
    """The phase of a pod, or of a Job of Volcano, and what its containers were given."""

    phase: str | None = None
    conditions: list[Reasoned] | None = None
    containers: Annotated[list[ContainerStatus] | None, Field(alias="containerStatuses")] = None
    init_containers: Annotated[
        list[ContainerStatus] | None, Field(alias="initContainerStatuses")
    ] = None


class Claim(KubeModel):
    """The claim of a persistent volume."""

    name: Annotated[str, Field(alias="claimName")]


class Volume(KubeModel):
    """A volume of a pod."""

    claim: Annotated[Claim | None, Field(alias="persistentVolumeClaim")] = None


class Toleration(KubeModel):
    """A taint that a pod tolerates."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class WorkloadRef(KubeModel):
    """The group of a Workload of Kubernetes that a pod is of."""

    name: KubeName
    group: Annotated[KubeName, Field(alias="podGroup")]
    replica: Annotated[KubeName | None, Field(alias="podGroupReplicaKey")] = None


class SchedulingGroup(KubeModel):
    """The PodGroup of Kubernetes that a pod is of."""

    name: Annotated[KubeName | None, Field(alias="podGroupName")] = None


class PodSpec(KubeModel):
    """What is read of the specification of a pod."""

    node_name: Annotated[str | None, Field(alias="nodeName")] = None
    containers: list[Container] = Field(default_factory=list)
    init_containers: Annotated[list[Container] | None, Field(alias="initContainers")] = None
    overhead: Quantities | None = None
    resources: Resources | None = None
    node_selector: Annotated[dict[str, str] | None, Field(alias="nodeSelector")] = None
    affinity: dict[str, Any] | None = None
    tolerations: list[Toleration] | None = None
    priority: int | None = None
    priority_class: Annotated[str | None, Field(alias="priorityClassName")] = None
    preemption: Annotated[str | None, Field(alias="preemptionPolicy")] = None
    runtime_class: Annotated[str | None, Field(alias="runtimeClassName")] = None
    volumes: list[Volume] | None = None
    scheduling_group: Annotated[SchedulingGroup | None, Field(alias="schedulingGroup")] = None
    workload_ref: Annotated[WorkloadRef | None, Field(alias="workloadRef")] = None

    @property
    def every_container(self) -> list[Container]:
        """Its containers, and the initial ones."""
        return [*self.containers, *(self.init_containers or ())]


class PodTemplate(KubeModel):
    """What a job makes pods of."""

    metadata: TemplateMeta = Field(default_factory=TemplateMeta)
    spec: PodSpec


def amounts_of(spec: PodSpec, field: str) -> dict[str, int]:
    """Return what a pod of a specification takes of its node, one of ``pods`` among it."""
    asked = _asked_in_all(spec, field)
    amounts = {name: base_units(name, own, field, up=True) for name, own in sorted(asked.items())}
    return {name: amount for name, amount in amounts.items() if amount} | {"pods": 1}


def rounded_of(spec: PodSpec, field: str) -> dict[str, Fraction]:
    """Return what a pod takes that is no whole number of the units of a resource, as it is."""
    exact = {name: in_units(name, own) for name, own in _asked_in_all(spec, field).items()}
    return {name: own for name, own in exact.items() if own.denominator > 1 and rounding(name)}


def _asked_in_all(spec: PodSpec, field: str) -> dict[str, Fraction]:
    """Return what a pod asks for, as it is.

    That is what its containers ask for together (their limits, where they ask for nothing), or
    the most that is needed while the initial ones run, or what the pod asks for as a whole; and
    its overhead.
    """
    asked: dict[str, Fraction] = {}
    for idx, container in enumerate(spec.containers):
        asked = _plus(asked, _asked_by(container, f"{field}.containers[{idx}]"))
    peak: dict[str, Fraction] = {}
    sidecars: dict[str, Fraction] = {}
    for idx, container in enumerate(spec.init_containers or ()):
        own = _asked_by(container, f"{field}.initContainers[{idx}]")
        if container.restart_policy == "Always":
            sidecars = _plus(sidecars, own)
            own = {}
        peak = {
            name: max(peak.get(name, _NONE), sidecars.get(name, _NONE) + own.get(name, _NONE))
            for name in {*peak, *sidecars, *own}
        }
    asked = _plus(asked, sidecars)
    asked = {name: max(asked.get(name, _NONE), peak.get(name, _NONE)) for name in {*asked, *peak}}
    whole, told = _asked_by(spec, field), (spec.resources or Resources()).requests or {}
    asked |= {name: own for name, own in whole.items() if name in told or name not in asked}
    overhead = {n: quantity(q, f"{field}.overhead.{n}") for n, q in (spec.overhead or {}).items()}
    return _plus(asked, overhead)


def while_resized(spec: PodSpec, status: PodStatus) -> PodSpec:
    """Return the specification of a pod that runs with what the scheduler counts for it.

    While a pod is resized in place, that is the most of what a container asks for, of what it was
    given and of what it has; of a resize that the node can never allow, what it was given and has.
    """
    given = {
        one.name: [(one.resources or Resources()).requests or {}, one.allocated or {}]
        for one in (*(status.containers or ()), *(status.init_containers or ()))
        if one.name is not None and (one.resources is not None or one.allocated)
    }
    if not given:
        return spec
    reasons = {(own.type, own.reason) for own in status.conditions or ()}
    asks = ("PodResizePending", "Infeasible") not in reasons

    def counted(one: Container) -> Container:
        if one.name not in given:
            return one
        own = one.resources or Resources()
        asked = {**(own.limits or {}), **(own.requests or {})}
        most: dict[str, str | int | float] = {}
        for amounts in [*given[one.name], *([asked] if asks else ())]:
            for name, text in amounts.items():
                amount, known = quantity(text, "resources"), most.get(name)
                if known is None or amount > quantity(known, "resources"):
                    most[name] = text
        return one.model_copy(update={"resources": Resources(requests={**asked, **most})})

    containers = [counted(one) for one in spec.containers]
    first = spec.init_containers and [counted(one) for one in spec.init_containers]
    return spec.model_copy(update={"containers": containers, "init_containers": first})


def _asked_by(container: Container | PodSpec, field: str) -> dict[str, Fraction]:
    resources = container.resources or Resources()
    asked = {}
    for kind in ("limits", "requests"):
        for name, text in (getattr(resources, kind) or {}).items():
            asked[name] = quantity(text, f"{field}.resources.{kind}.{name}")
    return asked


def _plus(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> dict[str, Fraction]:
    if not one or not other:
        return dict(one or other)
    return {name: one.get(name, _NONE) + other.get(name, _NONE) for name in {*one, *other}}
