"""What podsets of Kubernetes ask for: by annotations, or by the fields of a Workload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from topoplace.errors import InputError, unknown_name
from topoplace.formats.declared import Use
from topoplace.formats.kubernetes.fields import (
    JOBSET_EXCLUSIVE,
    KAI,
    KAI_PREFERRED,
    KAI_REQUIRED,
    KAI_TOPOLOGY,
    KUEUE,
    LWS_EXCLUSIVE,
    NOTES,
    OWN_PREFIXES,
)
from topoplace.formats.kubernetes.objects import IN_A_NAME, KubeModel, TemplateMeta
from topoplace.formats.kubernetes.rules import NodeRules
from topoplace.formats.text import integer
from topoplace.snapshot.schema import LeftOut, Segment

_SLICE_SIZE = f"{KUEUE}/podset-slice-size"
_SLICE_LAYERS = f"{KUEUE}/podset-slice-required-topology-constraints"
_NAMES_OF_ANNOTATIONS = {
    "required": f"{KUEUE}/podset-required-topology",
    "preferred": f"{KUEUE}/podset-preferred-topology",
    "slice_level": f"{KUEUE}/podset-slice-required-topology",
    "slice_size": _SLICE_SIZE,
    "layers": _SLICE_LAYERS,
    "group": f"{KUEUE}/podset-group-name",
}

MAX_COUNT = 1 << 21
"""The most pods of a podset."""

# ---- What a podset asks for, by annotations or by the fields of a Workload -----------------------


@dataclass(frozen=True)
class Podset:
    """A number of equal pods.

    Attributes
    ----------
    name, count, takes
        Its name, its pods, and what each takes of its node.
    asked
        Where the pods may go, as fields of a request.
    group
        The podsets that go with it.
    rules
        Which nodes they may come to.
    member
        The sub-group of their PodGroup that they are of.
    exact
        What each takes that `takes` has rounded up, in the same units.
    """

    name: str
    count: int
    takes: Mapping[str, int]
    asked: Mapping[str, Any]
    group: str | None
    rules: NodeRules
    member: tuple[str, ...] = ()
    exact: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass
class Asked:
    """Where the pods of a podset may go.

    Attributes
    ----------
    fields
        As fields of a request.
    group
        The podsets that go with it.
    level
        The level whose domains are for it alone in its family (`kinds.family_of`), if it has one.
    left_out
        What restricts the pods and is not modelled.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    group: str | None = None
    level: str | None = None
    left_out: list[LeftOut] = field(default_factory=list)


def annotated(meta: TemplateMeta, levels: Sequence[str]) -> Asked:
    """Return what Kueue's annotations ask for."""
    said: dict[str, Any] = {
        name: meta.annotation(key) for name, key in _NAMES_OF_ANNOTATIONS.items()
    }
    if said["slice_size"] is not None:
        said["slice_size"] = integer(said["slice_size"], 1, MAX_COUNT, field=_SLICE_SIZE)
    said["layers"] = _layers(said["layers"])
    return asked_of(TopologyRequest(**said), levels, _NAMES_OF_ANNOTATIONS)


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
    size: Annotated[int, Field(ge=1, le=MAX_COUNT)]


class TopologyRequest(KubeModel):
    """What a podset asks of a topology, as the fields of a Workload have it."""

    required: str | None = None
    preferred: str | None = None
    slice_level: Annotated[str | None, Field(alias="podSetSliceRequiredTopology")] = None
    slice_size: Annotated[int | None, Field(alias="podSetSliceSize", ge=1, le=MAX_COUNT)] = None
    layers: Annotated[
        list[_Layer] | None, Field(alias="podsetSliceRequiredTopologyConstraints")
    ] = None
    group: Annotated[str | None, Field(alias="podSetGroupName")] = None


NAMES_OF_FIELDS = {
    name: str(info.alias or name) for name, info in TopologyRequest.model_fields.items()
}


def asked_of(
    request: TopologyRequest, levels: Sequence[str], names: Mapping[str, str] = NAMES_OF_FIELDS
) -> Asked:
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
    for level in asked.values():
        for own in segments:
            if levels.index(own.level) < levels.index(level):
                expected = f"{level} or a level within it"
                raise InputError(expected, field=names["slice_level"], value=own.level)
    return Asked(asked | ({"segments": segments} if segments else {}), group)


# ---- Annotations and labels of KAI, JobSet and LeaderWorkerSet -----------------------------------

Notes = Mapping[str, tuple[str, str]]
"""Annotations and labels of a pod and its owners: each with its value, and where it stands."""


def notes_of(metas: Iterable[tuple[str, Any]]) -> Notes:
    """Return the annotations and labels of a pod and its owners, those of the nearest first.

    Each `metadata` comes with its place.
    """
    found: dict[str, tuple[str, str]] = {}
    for place, meta in metas:
        for kind in ("annotations", "labels"):
            own = meta.get(kind) if isinstance(meta, dict) else None
            for key, value in (own if isinstance(own, dict) else {}).items():
                found.setdefault(key, (str(value), f"{place}.{kind}"))
    return found


def notes_of_group(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the topology of a PodGroup of KAI as the metadata of a pod that asks for it."""
    own = spec.get("topologyConstraint")
    fields = {
        KAI_TOPOLOGY: "topology",
        KAI_REQUIRED: "requiredTopologyLevel",
        KAI_PREFERRED: "preferredTopologyLevel",
    }
    said = {key: own.get(name) for key, name in fields.items()} if isinstance(own, dict) else {}
    return {"annotations": {key: value for key, value in said.items() if value}}


def unknown_notes(notes: Notes) -> list[str]:
    """Return the annotations and labels of schedulers that are not in the table."""
    return NOTES.unknown(key for key in notes if key.startswith(OWN_PREFIXES))


_HOLDING = {field.name for field in NOTES.fields if field.use is Use.RESTRICTS}


def asked_by_notes(
    asked: Asked, notes: Notes, levels: Sequence[str], topology: str, size: int = 0
) -> None:
    """Add what annotations ask for, beside those of Kueue that the pod itself has.

    Parameters
    ----------
    levels, topology
        The levels of the machine, and the name of its topology.
    size
        The pods of a job, for podsets that are jobs of a JobSet.

    What keeps others of its family away has no name yet (`Asked.level`).
    """
    own, _ = notes.get(KAI_TOPOLOGY, (topology, ""))
    modelled = {KAI_PREFERRED}
    for key, model in _MODELS.items():
        level, _ = notes.get(key, ("", ""))
        is_known = level in levels and (own == topology or not key.startswith(f"{KAI}/"))
        if is_known and model(asked, level, size):
            modelled.add(key)
    for key in [key for key in notes if key in _HOLDING and key not in modelled]:
        value, place = notes[key]
        asked.left_out += NOTES.left_out({key: value}, place)


def _required_by_kai(asked: Asked, level: str, _: int) -> bool:
    """Model a level that KAI requires, of all pods of a job together."""
    if asked.fields or asked.group:
        return False
    asked.fields, asked.group = {"required": level}, "job"
    return True


def _preferred_by_kai(asked: Asked, level: str, _: int) -> bool:
    if not asked.fields and not asked.group:
        asked.fields, asked.group = {"preferred": level}, "job"
    return True


def _by_group(asked: Asked, level: str, _: int) -> bool:
    """Model the groups of a LeaderWorkerSet, which have a domain each."""
    if asked.fields or asked.group:
        return False
    asked.fields, asked.group, asked.level = {"required": level}, "group", level
    return True


def _by_job(asked: Asked, level: str, size: int) -> bool:
    """Model the jobs of a JobSet, which have a domain each."""
    if not size:
        return False
    whole = Segment(size=size, level=level)
    asked.fields = {"segments": [whole], **asked.fields, "spread": whole}
    asked.level = level
    return True


_MODELS: Mapping[str, Callable[[Asked, str, int], bool]] = {
    KAI_REQUIRED: _required_by_kai,
    KAI_PREFERRED: _preferred_by_kai,
    LWS_EXCLUSIVE: _by_group,
    JOBSET_EXCLUSIVE: _by_job,
}
"""What models the level that an annotation names, in this order; each returns whether it could."""
