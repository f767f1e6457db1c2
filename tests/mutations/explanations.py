"""Explanations that are not true."""

from __future__ import annotations

import math
import random

from mutations.registry import Document, mutation
from solved_results import Case, explanations, nodes_of


@mutation("explanations")
def explained_though_started(rng: random.Random, case: Case) -> Document | None:
    if not case.chosen:
        return None
    document = case.spoilt()
    name = rng.choice(sorted(case.chosen))
    document["explanations"].append({"request": name, "reason": "outbid", "text": "?"})
    return document


@mutation("explanations")
def stranger_explained(_: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    document["explanations"].append({"request": "stranger", "reason": "no-shape", "text": "?"})
    return document


def with_prism(document: Document) -> list[Document]:
    """Return the explanations that name a prism."""
    return [e for e in document["explanations"] if e["prism"] is not None]


@mutation("explanations")
def wrong_nodes_to_free(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not with_prism(document):
        return None
    rng.choice(with_prism(document))["nodes_to_free"] += rng.choice((-1, 1))
    return document


@mutation("explanations")
def stranger_in_the_way(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not with_prism(document):
        return None
    rng.choice(with_prism(document))["jobs"].append("stranger")
    return document


@mutation("explanations")
def job_in_the_way_unnamed(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    named = [e for e in with_prism(document) if e["jobs"]]
    if not named:
        return None
    rng.choice(named)["jobs"].pop()
    return document


@mutation("explanations")
def reason_without_prism(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not with_prism(document):
        return None
    rng.choice(with_prism(document))["prism"] = None
    return document


@mutation("explanations")
def wrong_reason(rng: random.Random, case: Case) -> Document | None:
    """Blame running jobs for what started ones do, and the reverse; or that no shape fits."""
    document = case.spoilt()
    named = [e for e in with_prism(document) if e["jobs"]]
    if not named:
        return None
    explanation = rng.choice(named)
    reasons = {"outbid", "blocked", "no-shape"} - {explanation["reason"]}
    explanation["reason"] = rng.choice(sorted(reasons))
    return document


@mutation("explanations")
def explained_prism_outside(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    if not with_prism(document):
        return None
    prism = rng.choice(with_prism(document))["prism"]
    prism["extents"][0] = case.tiny.shape[0] + 1
    return document


@mutation("explanations")
def another_prism(rng: random.Random, case: Case) -> Document | None:
    """Name the prism that is farthest from free, with its own jobs and nodes."""
    document = case.spoilt()
    true = {e["request"]: e for e in with_prism(document)}
    for false in explanations(rng, case.tiny, case.chosen, nodes_of(document), farthest=True):
        if false.prism is None or false.request not in true:
            continue
        old = true[false.request]
        nearer = old["nodes_to_free"], math.prod(old["prism"]["extents"])
        if (false.nodes_to_free, math.prod(false.prism.extents)) != nearer:
            old |= false.model_dump(mode="json")
            return document
    return None


@mutation("explanations")
def reason_that_comes_later(rng: random.Random, case: Case) -> Document | None:
    """Say that no shape fits where one does."""
    document = case.spoilt()
    if not with_prism(document):
        return None
    explanation = rng.choice(with_prism(document))
    explanation |= {"reason": "no-shape", "prism": None, "jobs": [], "nodes_to_free": None}
    return document
