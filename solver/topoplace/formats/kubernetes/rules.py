"""Which nodes a pod of Kubernetes may come to, and which pods a running pod keeps away."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from topoplace.errors import blamed_on
from topoplace.formats.declared import given_text, left_out
from topoplace.formats.kubernetes.fields import NODE_POOL
from topoplace.formats.kubernetes.nodes import (
    Expression,
    KubeNode,
    Labels,
    labels_match,
    untolerated,
)
from topoplace.formats.kubernetes.objects import KubeModel, Toleration, hash_of, id_of
from topoplace.formats.yaml_text import Parsed
from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.schema import LeftOut

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

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

    def text(self, sets: NodeSets) -> str:
        """Return it as an expression over sets of nodes."""
        if self.operator in ("Gt", "Lt"):
            sign, bound = ">" if self.operator == "Gt" else "<", (self.values or [""])[0]
            return sets.named(f"{self.key}{sign}{bound}", self.holds)
        if self.operator in ("Exists", "DoesNotExist"):
            found = sets.named(self.key, lambda labels: self.key in labels)
        else:
            values = dict.fromkeys(self.values or ())
            names = [sets.labelled(self.key, value) for value in values]
            found = _joined("|", names or [sets.named("none", lambda _: False)])
        return found if self.operator in ("In", "Exists") else f"!{found}"


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= 20


def _joined(sign: str, texts: Sequence[str]) -> str:
    """Return expressions joined by a sign, in parentheses if there are several."""
    return texts[0] if len(texts) == 1 else f"({f' {sign} '.join(texts)})"


class _Term(KubeModel):
    expressions: Annotated[list[_Expression] | None, Field(alias="matchExpressions")] = None
    fields: Annotated[list[_Expression] | None, Field(alias="matchFields")] = None

    @property
    def every(self) -> list[_Expression]:
        """All expressions; `KubeNode.labels` has the field ``metadata.name`` too."""
        fields = [one.model_copy(update={"key": f"{one.key}:"}) for one in self.fields or ()]
        return [*(self.expressions or ()), *fields]


class _Terms(KubeModel):
    terms: Annotated[list[_Term], Field(alias="nodeSelectorTerms")]

    def select(self, labels: Mapping[str, str]) -> bool:
        """Return whether one of the terms selects a node; one without expressions selects none."""
        every = [term.every for term in self.terms]
        return any(own and all(one.holds(labels) for one in own) for own in every)

    def text(self, sets: NodeSets) -> str:
        """Return them as an expression over sets of nodes."""
        every = [[one.text(sets) for one in term.every] for term in self.terms]
        texts = [_joined("&", own) for own in every if own]
        return _joined("|", texts or [sets.named("none", lambda _: False)])


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
        Terms of which a node has to match one, as JSON.
    tolerations
        Taints that a node may have.
    where
        Where the specification of the pod stands.
    """

    selector: tuple[tuple[str, str], ...] = ()
    affinities: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    where: str = field(default="", compare=False)

    def allow(self, node: KubeNode) -> bool:
        """Return whether a pod may come to a node."""
        return (
            all(node.labels.get(key) == value for key, value in self.selector)
            and all(_terms(text).select(node.labels) for text in self.affinities)
            and not untolerated(node.taints, self.tolerations)
        )


NOWHERE = json.dumps({"nodeSelectorTerms": []})
"""Terms that no node matches."""
_NO_POOL = {"key": NODE_POOL, "operator": "DoesNotExist"}
IN_NO_POOL = json.dumps({"nodeSelectorTerms": [{"matchExpressions": [_NO_POOL]}]})
"""Terms that nodes match which are in no node pool of KAI."""


class NodeSets:
    """The sets of nodes that rules name: nodes with a label, or with a taint.

    Attributes
    ----------
    sets
        The nodes of every set, as a host list.
    """

    def __init__(self, nodes: Sequence[KubeNode]) -> None:
        self.sets: dict[str, str] = {}
        self._nodes = nodes
        self._taints = list(dict.fromkeys(taint for node in nodes for taint in node.taints))
        self._known: dict[NodeRules, str | None] = {}

    def of(self, rules: NodeRules) -> str | None:
        """Return the nodes that a pod may come to, as an expression over sets; None for all."""
        if rules not in self._known:
            every = all(map(rules.allow, self._nodes))
            self._known[rules] = None if every else self._text(rules)
        return self._known[rules]

    def named(self, name: str, has: Callable[[Mapping[str, str]], bool]) -> str:
        """Return the name of the set of nodes with such labels, after making it if it is new."""
        return self._of_nodes(name, (node for node in self._nodes if has(node.labels)))

    def labelled(self, key: str, value: str) -> str:
        """Return the name of the set of nodes with a label."""
        return self.named(f"{key}={value}", lambda labels: labels.get(key) == value)

    def _of_nodes(self, name: str, nodes: Iterable[KubeNode]) -> str:
        known = _NOT_IN_A_NAME.sub("_", name)
        known = id_of(known if known == name else f"{known}~{hash_of(name)}")
        if known not in self.sets:
            self.sets[known] = format_host_list(node.name for node in nodes)
        return known

    def _text(self, rules: NodeRules) -> str:
        before = {**self.sets}
        texts = [self.labelled(key, value) for key, value in rules.selector]
        texts += [_terms(text).text(self) for text in rules.affinities]
        for taint in untolerated(self._taints, rules.tolerations):
            name = f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
            tainted = (node for node in self._nodes if taint in node.taints)
            texts.append(f"!{self._of_nodes(name, tainted)}")
        text = " & ".join(texts)
        if len(text) <= _LONGEST_TEXT:
            return text
        self.sets = before
        return self._of_nodes(f"nodes~{hash_of(text)}", filter(rules.allow, self._nodes))


_NOT_IN_A_NAME = re.compile(r"[\s,;&|!()]")
_LONGEST_TEXT = 1000


_AFFINITY = f"affinity.nodeAffinity.{_REQUIRED}"


def required_terms(affinity: Mapping[str, Any] | None, where: str) -> str | None:
    """Return the terms that a node affinity requires, as JSON, after checking them."""
    node_affinity = (affinity or {}).get("nodeAffinity")
    required = node_affinity.get(_REQUIRED) if isinstance(node_affinity, dict) else None
    return None if not required else checked_terms(required, f"{where}.{_AFFINITY}")


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


_INJECTED = ("group-key", "subgroup-key", "job-key")
"""Labels by which LeaderWorkerSet and JobSet keep the pods of a group together, others away."""


def without_injected(spec: Mapping[str, Any], level: str) -> dict[str, Any]:
    """Return the specification of a pod without the affinities that say that it is exclusive."""
    affinity = spec.get("affinity")
    if not isinstance(affinity, dict):
        return dict(spec)
    kept = {**affinity}
    for kind in {"podAffinity", "podAntiAffinity"} & affinity.keys():
        own = affinity[kind]
        terms = own.get(_REQUIRED) if isinstance(own, dict) else None
        if isinstance(terms, list):
            kept[kind] = own | {_REQUIRED: [one for one in terms if not _injected(one, level)]}
    return {**spec, "affinity": kept}


def _injected(term: Any, level: str) -> bool:
    selector = term.get("labelSelector") if isinstance(term, dict) else None
    every = (selector or {}).get("matchExpressions") if isinstance(selector, dict) else None
    keys = [one.get("key") for one in every or () if isinstance(one, dict)]
    return (
        bool(keys)
        and not (selector or {}).get("matchLabels")
        and term.get("topologyKey") == level
        and all(str(key).rpartition("/")[2] in _INJECTED for key in keys)
    )


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
