"""Every field of a result is covered by a claim of the checker, or listed with a reason.

`scripts/build_checked_fields.py` has the list. The changes are found by walking the models.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel

from few import few_of
from field_changes import Change, Changer, Field, fields, models_of
from field_samples import solved
from scripts_of_the_project import script
from topoplace.certify import Report, check_document, sha256_of
from topoplace.errors import InputError
from topoplace.machine import parse_node_set
from topoplace.machine.hostlist import expand_host_list
from topoplace.result import Fraction
from topoplace.result.mapping import MappingResult
from topoplace.result.several import Several

PAGE = script("build_checked_fields")
Group = tuple[type[BaseModel], type[BaseModel], str, str]
"""Document, model, field and sort of cover."""


@cache
def reports() -> dict[str, Report]:
    return {name: check_document(result) for name, result in solved().items()}


def cover_of(field: Field) -> Any:
    """Return what covers a field; numbers and prisms are part of the field that holds them."""
    covers = (PAGE.FIELDS[model][name] for model, name in reversed(field.holders))
    return next(cover for cover in covers if cover.kind != "holder")


@cache
def groups() -> dict[Group, list[tuple[str, Changer, Field]]]:
    """Return all fields of the samples by what they are."""
    models = models_of(list(solved().values()))
    found: dict[Group, list[tuple[str, Changer, Field]]] = defaultdict(list)
    for name, result in solved().items():
        changer = Changer(result, models)
        for field in fields(result):
            group = (type(result), *field.key, cover_of(field).kind)
            found[group].append((name, changer, field))
    return found


# ---- The list -----------------------------------------------------------------------------------


def test_every_field_has_an_entry_and_every_entry_a_field() -> None:
    found = {model: set(model.model_fields) for model in PAGE.every_model()}
    assert {model: set(covers) for model, covers in PAGE.FIELDS.items()} == found
    assert len(found) > 50


def test_claims_and_reasons_are_real() -> None:
    known = {claim.name for report in reports().values() for claim in report.claims}
    for covers in PAGE.FIELDS.values():
        for cover in covers.values():
            assert set(cover.names) <= known
            assert bool(cover.names) == (cover.kind in ("claim", "evidence"))
            assert cover.reason.endswith(".") or (not cover.reason and cover.kind != "harmless")


def test_the_page_is_up_to_date() -> None:
    written = PAGE.PAGE.read_text(encoding="utf-8")
    assert written == PAGE.page_text(), "python scripts/build_checked_fields.py writes it anew"


# ---- The changes --------------------------------------------------------------------------------


def test_samples_are_right_and_of_every_kind() -> None:
    for name, report in reports().items():
        assert report.holds, (name, report.failures)
    met = {field[2].key for members in groups().values() for field in members}
    needed = {
        (model, name)
        for model, covers in PAGE.FIELDS.items()
        for name, cover in covers.items()
        if cover.kind != "fixed"
    }
    assert needed <= met


def some_changes(
    document: type[BaseModel], seed: int, most: int
) -> Iterator[tuple[str, Change, BaseModel]]:
    """Yield sample, change and changed result; a few of every group of a kind of result."""
    for group, members in groups().items():
        if group[0] is not document:
            continue
        every = _changes(random.Random(seed).sample(members, len(members)))
        some = list(itertools.islice(every, 2 * most))
        assert some or group[-1] == "fixed", f"no legal change of {group}"
        yield from random.Random(seed).sample(some, min(most, len(some)))


def _changes(
    members: list[tuple[str, Changer, Field]],
) -> Iterator[tuple[str, Change, BaseModel]]:
    for name, changer, field in members:
        for change, changed in changer.changes(field):
            yield name, change, changed


def complaint(change: Change, before: Any, after: Any) -> tuple[str, str]:
    """Check a changed result; return what came of it, and what is wrong with that, if anything."""
    cover = cover_of(change.field)
    try:
        report = check_document(after)
    except InputError:
        return "not read", ""
    if change.field.path[0] == "instance" and not is_told(report, before, after):
        return "accepted", "another question with the same sum"
    if not report.holds:
        caught = report.failures[0].name
        stray = cover.kind == "claim" and caught not in cover.names
        return "refused", f"refused by {caught}" if stray else ""
    if cover.kind == "claim" and not cover.reason and not _is_zero(change, before):
        return "accepted", "accepted"
    if cover.kind in ("evidence", "harmless") and _bounds(after) != _bounds(before):
        return "accepted", "accepted with another bound"
    return "accepted", ""


def is_told(report: Report, before: Any, after: Any) -> bool:
    """Tell whether the sum of another instance is another one, or it means the same."""
    if report.sha256 != sha256_of(before.instance):
        return True
    own, other = (_meant(result.instance.model_dump()) for result in (before, after))
    return bool(own == other)


def _meant(value: Any, key: str = "", holder: Any = None) -> Any:
    """Return a part of an instance with sets of nodes as sets, and defaults of a torus."""
    if key in ("wrap", "bandwidth") and "shape" in holder and not value:
        return [True if key == "wrap" else 1] * len(holder["shape"])
    if key in ("seed", "spacing") and "dims" in holder and not value:  # of an anchored prism
        return [0] * len(holder["dims"]) if key == "seed" else holder["dims"]
    if isinstance(value, str) and key in ("nodes", "down", "service", "classes", "switches"):
        return _set_of(value, in_order="switches" in holder)
    if isinstance(value, dict):
        below = "classes" if key == "classes" else ""
        return {name: _meant(item, below or name, value) for name, item in value.items()}
    return [_meant(item, key, holder) for item in value] if isinstance(value, list) else value


def _set_of(text: str, *, in_order: bool) -> list[Any]:
    try:
        return list(parse_node_set(text, 1 << 30).tolist())
    except InputError:
        names = expand_host_list(text)
        return names if in_order else sorted(names)


def _is_zero(change: Change, result: BaseModel) -> bool:
    """Tell whether a change is of what zero is divided by."""
    model, name = change.field.key
    number: Any = result
    for step in change.field.path[:-1]:
        number = number[step] if isinstance(step, int) else getattr(number, step)
    return (model, name) == (Fraction, "denominator") and number.numerator == 0


def _bounds(result: Any) -> list[Any]:
    if isinstance(result, Several):
        return [(step.required, step.level, step.bound) for step in result.steps]
    return [(level.status, level.objective, level.bound) for level in result.levels]


def tally(changes: Iterable[tuple[str, Change, BaseModel]]) -> int:
    """Try changes, print how many of them came to what, and fail for any that should not.

    Return how many are refused.
    """
    counts: Counter[tuple[str, str]] = Counter()
    complaints = []
    for name, change, changed in changes:
        outcome, wrong = complaint(change, solved()[name], changed)
        counts[cover_of(change.field).kind, outcome] += 1
        if wrong:
            complaints.append(f"{name}: {change.text}: {wrong}")
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind:10}{outcome:10}{count:7}")
    assert not complaints, "\n".join(complaints)
    return sum(count for (_, outcome), count in counts.items() if outcome == "refused")


@pytest.mark.parametrize("document", PAGE.RESULTS)
@pytest.mark.parametrize("least", few_of((100, 1_000), 1))
def test_changes_of_every_kind_are_refused(document: type[BaseModel], least: int) -> None:
    most = 48 if document is MappingResult else 24  # it has fewer fields
    assert tally(some_changes(document, seed=1, most=most * least // 1_000)) >= least


@pytest.mark.slow
@pytest.mark.parametrize("document", PAGE.RESULTS)
@pytest.mark.parametrize("sort", ["claim", "evidence", "harmless", "parts", "question"])
def test_all_changes_of_every_field(document: type[BaseModel], sort: str) -> None:
    found = [m for group, own in groups().items() if group[0::3] == (document, sort) for m in own]
    tally(_changes(found))
