"""Objectives, bounds, gaps, statuses, proofs and explanations that do not fit."""

from __future__ import annotations

import math
import random

from edits import Document, Edit, add, append, change, draw, need, pick, put
from mutations.registry import mutation, table
from solved_results import Case, explanations, nodes_of


def refigure(document: Document, _: random.Random) -> None:
    """Make gap and status of all levels, and the top, fit objectives and bounds again."""
    for level in document["levels"]:
        objective, bound = level["objective"], level["bound"]
        known = objective is not None and bound is not None
        level["gap"] = abs(objective - bound) / max(1, abs(objective)) if known else None
        level["status"] = "unknown" if objective is None else "feasible"
        if known and objective == bound:
            level["status"] = "optimal"
    top(document, _)


def top(document: Document, _: random.Random) -> None:
    """Make the top fit the first level again."""
    for field in ("status", "objective", "bound", "gap", "proof"):
        document[field] = document["levels"][0][field]


def _other(*options: str) -> Edit:
    return draw(
        "levels/*/status", lambda rng, was: rng.choice([name for name in options if name != was])
    )


def _gap(rng: random.Random, gap: float) -> float | None:
    return rng.choice((gap + 0.001, gap / 2 if gap else None))


LIES = {}
for _k in range(3):
    LIES[f"lied_objective_of_level_{_k + 1}"] = add(f"levels/{_k}/objective", -2, -1, 1, 2)
    LIES[f"lied_bound_of_level_{_k + 1}"] = add(f"levels/{_k}/bound", -1 if _k < 2 else 1)
table("figures bound", LIES, refigure)
table(
    "figures",
    {
        "objective_withheld": put("levels/*/objective", None),
        "dropped_bound": put("levels/*/bound", None),
    },
    refigure,
)
table(
    "figures",
    {
        "wrong_status": _other("optimal", "feasible", "infeasible", "unknown"),
        "wrong_gap": draw("levels/*/gap", _gap),
        "wrong_proof": draw("levels/*/proof", lambda rng, _: rng.choice(("search", "none"))),
        "dropped_certificate": put("levels/*/certificate", None),
    },
    top,
)
table("figures explanations", {"solution_withheld": put("solution", None)})
table(
    "links",
    {
        "wrong_num_shared_links": add("solution/num_shared_links", -1, 1, 7),
        "conforming_flipped": change("solution/conforming", lambda was: not was),
    },
)
table(
    "levels",
    {
        "sense_flipped": change("levels/*/sense", lambda was: "min" if was == "max" else "max"),
        "level_missing": lambda document, rng: document["levels"].pop(rng.randrange(1, 3)),
        "top_not_of_first_level": lambda document, rng: add(
            rng.choice(("objective", "bound", "gap")), 1
        )(document, rng),
    },
)
table("instance", {"instance_only_named": put("instance/machine", "blue_waters")})


@mutation("levels")
def levels_swapped(rng: random.Random, case: Case, document: Document) -> None:
    a, b = rng.sample(document["levels"], 2)
    a["name"], b["name"] = b["name"], a["name"]


# Explanations


def with_prism(document: Document) -> list[Document]:
    """Return the explanations that name a prism."""
    return [e for e in document["explanations"] if e["prism"] is not None]


def of_prism(edit: Edit, *, blamed: bool = False) -> Edit:
    """Edit an explanation that names a prism, or also jobs."""

    def spoil(document: Document, rng: random.Random) -> None:
        found = [e for e in with_prism(document) if e["jobs"] or not blamed]
        edit(pick(rng, found), rng)

    return spoil


def _wrong_reason(rng: random.Random, was: str) -> str:
    """Blame running jobs for what started ones do, and the reverse; or that no shape fits."""
    return rng.choice(sorted({"outbid", "blocked", "no-shape"} - {was}))


NOTHING: Document = {"reason": "no-shape", "prism": None, "jobs": [], "nodes_to_free": None}
table(
    "explanations",
    {
        "stranger_explained": append(
            "explanations", {"request": "stranger", "reason": "no-shape", "text": "?"}
        ),
        "wrong_nodes_to_free": of_prism(add("nodes_to_free", -1, 1)),
        "stranger_in_the_way": of_prism(append("jobs", "stranger")),
        "job_in_the_way_unnamed": of_prism(lambda e, _: e["jobs"].pop(), blamed=True),
        "reason_without_prism": of_prism(put("prism", None)),
        "wrong_reason": of_prism(draw("reason", _wrong_reason), blamed=True),
        "reason_that_comes_later": of_prism(lambda e, _: e.update(NOTHING)),
    },
)


@mutation("explanations")
def explained_prism_outside(rng: random.Random, case: Case, document: Document) -> None:
    of_prism(put("prism/extents/0", case.tiny.shape[0] + 1))(document, rng)


@mutation("explanations")
def explained_though_started(rng: random.Random, case: Case, document: Document) -> None:
    name = pick(rng, sorted(case.chosen))
    document["explanations"].append({"request": name, "reason": "outbid", "text": "?"})


@mutation("explanations")
def another_prism(rng: random.Random, case: Case, document: Document) -> None:
    """Name the prism that is farthest from free, with its own jobs and nodes."""
    true = {e["request"]: e for e in with_prism(document)}
    for false in explanations(rng, case.tiny, case.chosen, nodes_of(document), farthest=True):
        if false.prism is None or false.request not in true:
            continue
        old = true[false.request]
        nearer = old["nodes_to_free"], math.prod(old["prism"]["extents"])
        if (false.nodes_to_free, math.prod(false.prism.extents)) != nearer:
            old |= false.model_dump(mode="json")
            return
    need(False)
