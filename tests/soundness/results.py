"""Results that are bent at random: those that the checker still accepts have to be right."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from pydantic import BaseModel, ValidationError

from field_samples import refigured
from soundness.attack import Json, Place, faulty, replaced, value_at
from topoplace.certify import check_document

Mover = Callable[[random.Random, Json], None]
"""Puts something of a result where it might be, its own figures as they come."""


def every_place(document: Json, place: Place = ()) -> Iterator[Place]:
    """Yield where a JSON value has a field or an entry."""
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield (*place, key)
            yield from every_place(document[key], (*place, key))


def exchanged(rng: random.Random, document: Json) -> Json:
    """Return a JSON value with something in it as it is elsewhere, in a field of the same name."""
    places: dict[Json, list[Place]] = {}
    for place in every_place(document):
        names = [key for key in place if isinstance(key, str)]
        places.setdefault((isinstance(place[-1], str), *names[-1:]), []).append(place)
    own = rng.choice([own for own in places.values() if len(own) > 1] or [[()]])
    return replaced(document, rng.choice(own), copy.deepcopy(value_at(document, rng.choice(own))))


def bent(rng: random.Random, document: Json, moved: Mover) -> Json:
    """Return a result with other numbers, figures or places, or to another question."""
    mutant = copy.deepcopy(document)
    instance, way = mutant["instance"], rng.randrange(6)
    if way == 0:  # the question stays
        del mutant["instance"]
        return {**faulty(rng, mutant, rng.randint(1, 2)), "instance": instance}
    if way == 1:
        mutant["instance"] = faulty(rng, instance)
    elif way == 2:
        mutant["instance"] = exchanged(rng, instance)
    elif way == 3 or not mutant["solution"]["placements"]:
        level = rng.choice(mutant["levels"])
        level[rng.choice(("objective", "bound"))] += rng.choice((-1, 1, 2))
    elif way == 4:
        mutant["solution"] = exchanged(rng, mutant["solution"])
    else:
        moved(rng, mutant)
    return refigured(mutant) if rng.random() < 0.7 else mutant


def bent_curve(rng: random.Random, document: Json, moved: Mover) -> Json:
    """Return a trade-off with other numbers, points, steps or places, or to another question."""
    mutant = copy.deepcopy(document)
    instance, way = mutant["instance"], rng.randrange(7)
    point, step = rng.choice(mutant["points"]), rng.choice(mutant["steps"])
    if way == 0:
        del mutant["instance"]
        return {**faulty(rng, mutant, rng.randint(1, 2)), "instance": instance}
    if way == 1:
        mutant["instance"] = rng.choice((faulty, exchanged))(rng, instance)
    elif way == 2:
        point["values"][rng.randrange(len(point["values"]))] += rng.choice((-1, 1, 2))
    elif way == 3:
        step["bound"] += rng.choice((-1, 1, -2))
    elif way == 4:
        step["required"][rng.randrange(len(step["required"]))] = rng.choice((None, 0, 1, 2))
    elif way == 5 and point["solution"]["steps"]:
        moved(rng, point | {"instance": instance})
    else:
        mutant["open"], mutant["complete"] = [], True
        mutant[rng.choice(("points", "steps"))].pop()
    return mutant


def hold_bent(
    results: Sequence[BaseModel],
    moved: Mover,
    is_right: Callable[[Json], bool],
    tries: int,
    bend: Callable[[random.Random, Json, Mover], Json] = bent,
) -> None:
    """Require that bent results are refused or right, of those that are changed at all."""
    tally: Counter[str] = Counter()
    documents = [result.model_dump(mode="json", by_alias=True) for result in results]
    for number in range(tries):
        rng = random.Random(f"bent-{number}")
        document = rng.choice(documents)
        mutant = bend(rng, document, moved)
        if mutant == document:
            continue
        try:
            result = type(results[0]).model_validate_json(json.dumps(mutant))
        except ValidationError:
            tally["no result"] += 1
            continue
        holds = check_document(result).holds
        tally["held" if holds else "refused"] += 1
        assert not holds or is_right(mutant), (number, mutant)
    assert tally["refused"] > 0.4 * tries, tally
    assert tally["held"] > 0.005 * tries, tally
