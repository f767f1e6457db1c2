"""Objectives, bounds, gaps, statuses and proofs that do not fit."""

from __future__ import annotations

import random

from mutations.registry import (
    CAUGHT_AS,
    MUTATIONS,
    Document,
    Mutation,
    mutation,
    refigure,
)
from solved_results import Case


def lied_objective(level_idx: int) -> Mutation:
    def lie(rng: random.Random, case: Case) -> Document:
        document = case.spoilt()
        document["levels"][level_idx]["objective"] += rng.choice((-2, -1, 1, 2))
        return refigure(document)

    return lie


def lied_bound(level_idx: int) -> Mutation:
    def lie(_: random.Random, case: Case) -> Document:
        document = case.spoilt()
        document["levels"][level_idx]["bound"] -= 1 if level_idx < 2 else -1
        return refigure(document)

    return lie


for _idx in range(3):
    for _name, _lie in (("objective", lied_objective), ("bound", lied_bound)):
        MUTATIONS[f"lied_{_name}_of_level_{_idx + 1}"] = _lie(_idx)
        CAUGHT_AS[f"lied_{_name}_of_level_{_idx + 1}"] = ("figures", "bound")


@mutation("figures")
def objective_withheld(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    rng.choice(document["levels"])["objective"] = None
    return refigure(document)


@mutation("figures", "explanations")
def solution_withheld(_: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    document["solution"] = None
    return document


@mutation("figures")
def wrong_status(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    level = rng.choice(document["levels"])
    names = ["optimal", "feasible", "infeasible", "unknown"]
    level["status"] = rng.choice([name for name in names if name != level["status"]])
    document["status"] = document["levels"][0]["status"]
    return document


@mutation("figures")
def wrong_gap(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    level = rng.choice(document["levels"])
    level["gap"] = rng.choice((level["gap"] + 0.001, level["gap"] / 2 if level["gap"] else None))
    document["gap"] = document["levels"][0]["gap"]
    return document


@mutation("figures")
def wrong_proof(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    rng.choice(document["levels"])["proof"] = rng.choice(("search", "none"))
    document["proof"] = document["levels"][0]["proof"]
    return document


@mutation("levels")
def top_not_of_first_level(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    field = rng.choice(("objective", "bound", "gap"))
    document[field] += 1
    return document


@mutation("links")
def wrong_num_shared_links(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    document["solution"]["num_shared_links"] += rng.choice((-1, 1, 7))
    return document


@mutation("links")
def conforming_flipped(_: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    document["solution"]["conforming"] = not document["solution"]["conforming"]
    return document


@mutation("figures")
def dropped_certificate(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    rng.choice(document["levels"])["certificate"] = None
    return document


@mutation("figures")
def dropped_bound(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    rng.choice(document["levels"])["bound"] = None
    return refigure(document)


@mutation("levels")
def levels_swapped(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    a, b = rng.sample(document["levels"], 2)
    a["name"], b["name"] = b["name"], a["name"]
    return document


@mutation("levels")
def sense_flipped(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    level = rng.choice(document["levels"])
    level["sense"] = "min" if level["sense"] == "max" else "max"
    return document


@mutation("levels")
def level_missing(rng: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    document["levels"].pop(rng.randrange(1, 3))
    return document


@mutation("instance")
def instance_only_named(_: random.Random, case: Case) -> Document | None:
    document = case.spoilt()
    document["instance"]["machine"] = "blue_waters"
    return document
