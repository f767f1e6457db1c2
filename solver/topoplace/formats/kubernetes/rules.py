"""Which nodes a pod of Kubernetes may come to, and which pods a running pod keeps away."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from topoplace.errors import blamed_on
from topoplace.formats.declared import given_text, left_out
from topoplace.formats.kubernetes.nodes import (
    Expression,
    KubeNode,
    Labels,
    labels_match,
    untolerated,
)
from topoplace.formats.kubernetes.objects import KubeModel, Toleration
from topoplace.formats.yaml_text import Parsed
from topoplace.snapshot.schema import LeftOut

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

SELECTOR, AFFINITY, TAINTS = "nodeSelector", "nodeAffinity", "taints"
CLAIM = "persistentVolumeClaim"

# ---- Nodes ---------------------------------------------------------------------------------------


class _Expression(Expression):
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]  # type: ignore[assignment]

    def holds(self, labels: Mapping[str, str]) -> bool:
        if self.operator not in ("Gt", "Lt"):
            return super().holds(labels)
        value, bound = labels.get(self.key, ""), (self.values or [""])[0]
        if not (_is_integer(value) and _is_integer(bound)):
            return False
        return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= 20


class _Term(KubeModel):
    expressions: Annotated[list[_Expression] | None, Field(alias="matchExpressions")] = None
    fields: Annotated[list[_Expression] | None, Field(alias="matchFields")] = None

    def selects(self, node: KubeNode) -> bool:
        if not (self.expressions or self.fields):
            return False
        by_label = all(one.holds(node.labels) for one in self.expressions or ())
        own = {"metadata.name": node.name}
        return by_label and all(one.holds(own) for one in self.fields or ())


class _Terms(KubeModel):
    terms: Annotated[list[_Term], Field(alias="nodeSelectorTerms")]


@lru_cache(maxsize=4096)
def _terms(text: str) -> _Terms:
    return Parsed(json.loads(text), {}).validated(_Terms)


@dataclass(frozen=True)
class NodeRules:
    """Which nodes a pod may come to.

    Attributes
    ----------
    selector
        Labels that a node has to have.
    affinities
        Terms of which a node has to match one, as JSON, each under the option it is held by.
    tolerations
        Taints that a node may have.
    where
        Where the specification of the pod stands.
    """

    selector: tuple[tuple[str, str], ...] = ()
    affinities: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    where: str = field(default="", compare=False)

    def forbidding(self, node: KubeNode) -> list[LeftOut]:
        """Return what keeps a pod from a node, of no request yet, and where in the pod it is."""
        found = []
        if any(node.labels.get(key) != value for key, value in self.selector):
            text = ",".join(f"{key}={value}" for key, value in self.selector)
            found.append(left_out(SELECTOR, text, SELECTOR))
        for option, text in self.affinities:
            if not any(term.selects(node) for term in _terms(text).terms):
                found.append(left_out(option, text, _PLACES[option]))
        for taint in untolerated(node.taints, self.tolerations)[:1]:
            text = f"{taint.key}={taint.value or ''}:{taint.effect}"
            found.append(left_out(TAINTS, text, "tolerations"))
        return found


_PLACES = {AFFINITY: f"affinity.nodeAffinity.{_REQUIRED}", CLAIM: "volumes"}


def required_terms(affinity: Mapping[str, Any] | None, where: str) -> str | None:
    """Return the terms that a node affinity requires, as JSON, after checking them."""
    node_affinity = (affinity or {}).get("nodeAffinity")
    required = node_affinity.get(_REQUIRED) if isinstance(node_affinity, dict) else None
    return None if not required else checked_terms(required, f"{where}.{_PLACES[AFFINITY]}")


def checked_terms(terms: Any, field: str) -> str:
    """Return terms that select nodes as JSON, after checking them."""
    text = json.dumps(terms, separators=(",", ":"))
    with blamed_on(inside=field):
        _terms(text)
    return text


# ---- Pods that running pods keep away ------------------------------------------------------------

_GENERATED = (
    *("job-name", "batch.kubernetes.io/", "controller-uid", "jobset.sigs.k8s.io/"),
    *("leaderworkerset.sigs.k8s.io/", "volcano.sh/", "apps.kubernetes.io/", "pod-template-hash"),
    *("controller-revision-hash", "kueue.x-k8s.io/", "statefulset.kubernetes.io/"),
)
"""How labels begin that controllers give the pods of a template."""


@dataclass(frozen=True)
class PodLabels:
    """Namespace and labels of a pod; those of a template get more when it becomes a pod."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    is_template: bool


class _AntiTerm(KubeModel):
    selector: Annotated[Labels | None, Field(alias="labelSelector")] = None
    namespaces: list[str] | None = None
    namespace_selector: Annotated[dict[str, Any] | None, Field(alias="namespaceSelector")] = None


class _AntiAffinity(KubeModel):
    terms: Annotated[list[_AntiTerm] | None, Field(alias=_REQUIRED)] = None


@dataclass(frozen=True)
class Repelling:
    """A running pod, and the pods that it lets come near it no more."""

    pod: str
    namespace: str
    term: _AntiTerm

    def may_keep_away(self, pod: PodLabels) -> bool:
        """Tell whether a pod that waits may be one of those."""
        term = self.term
        near = term.namespace_selector is not None or pod.namespace in (
            term.namespaces or [self.namespace]
        )
        if term.selector is None or not near:
            return False
        labels = dict(pod.labels)
        expressions = term.selector.expressions or []
        named = {*(term.selector.match_labels or {}), *(one.key for one in expressions)}
        if pod.is_template and any(key.startswith(_GENERATED) for key in named - {*labels}):
            return True
        return labels_match(term.selector, labels)


def repelling(
    pod: str, namespace: str, affinity: Mapping[str, Any] | None, where: str
) -> list[Repelling]:
    """Return what the anti-affinity of a running pod keeps away."""
    raw = (affinity or {}).get("podAntiAffinity") or {}
    with blamed_on(inside=f"{where}.affinity.podAntiAffinity"):
        anti = Parsed(raw, {}).validated(_AntiAffinity)
    return [Repelling(pod, namespace, term) for term in anti.terms or ()]


def repelled(pods: Sequence[PodLabels], running: Sequence[Repelling]) -> list[LeftOut]:
    """Return what of running pods may keep away pods that wait, of no request yet."""
    keepers = [one for one in running if any(one.may_keep_away(pod) for pod in pods)]
    names = given_text(list(dict.fromkeys(one.pod for one in keepers)))
    return [left_out("podAntiAffinity", f"of {names}", "running pods")] if keepers else []
