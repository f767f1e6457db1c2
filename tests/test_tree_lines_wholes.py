"""Certificates of grids with prices of whole leaves: right ones hold, changed ones do not."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from topoplace.certify.report import RefusedError
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.lines.certificate import line_nogood
from topoplace.placement.tree.exact.lines.program import LineProgram
from topoplace.placement.tree.exact.lines.tables import tables_of
from topoplace.result.tree import LineNogood
from topoplace.snapshot.schema import Communication, Pattern, PatternUse, Snapshot
from tree_cases import model_of, snapshot_on
from tree_line_cases import follow, job_on

Document = dict[str, Any]


@cache
def whole_case() -> tuple[Snapshot, Document]:
    """Return a request that takes nearly all free nodes, and what rules some thresholds out."""
    use = PatternUse(pattern=Pattern.STENCIL_2D)
    running = [(f"n{node}", Communication.STRICT) for node in range(30 * 18, 30 * 18 + 11)]
    snapshot = snapshot_on(model_of([18] * 31), running, [(512, [use])])
    job = job_on(snapshot)
    tables = tables_of(job)
    hops = 4 + 5 * np.array([18 + 7, 18 + 18]) / 18  # only leaves of 7 beside full ones
    thresholds = np.rint(hops * job.scale).astype(np.int64)
    proof = LineProgram(tables).test(thresholds, 1, wholes=True)
    at = np.searchsorted(Relaxation(job).values, thresholds).tolist()
    nogood = line_nogood(at, proof)
    return snapshot, json.loads(nogood.model_dump_json())


def rules_out(document: Document) -> bool:
    """Tell whether the checker follows a nogood; any thresholds cost more than 1."""
    try:
        follow(whole_case()[0], [LineNogood.model_validate(document)], Fraction(1))
    except RefusedError:
        return False
    return True


def test_whole_leaves_in_a_line_are_followed() -> None:
    document = whole_case()[1]
    assert document["proof"]["wholes"]
    assert rules_out(document)


@pytest.mark.parametrize("how", ["none", "zero", "raised", "short", "huge"])
def test_changed_prices_of_whole_leaves_are_rejected(how: str) -> None:
    document = copy.deepcopy(whole_case()[1])
    proof = document["proof"]
    wholes = proof["wholes"]
    if how == "none":
        proof["wholes"] = None
    elif how == "zero":
        proof["wholes"] = [[0] * len(own) for own in wholes]
    elif how == "raised":
        proof["wholes"] = [[price + (1 << 30) for price in own] for own in wholes]
    elif how == "short":
        wholes[0].pop()
    else:
        wholes[0][0] = 1 << 60
    assert not rules_out(document)
