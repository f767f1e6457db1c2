"""The checker of allocations accepts what is right and rejects results changed in every way."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from allocation_mutations import MUTATIONS, allocations, proofs
from edits import Document, InapplicableError
from topoplace.certify import check_document, check_file
from topoplace.certify.switches.instance import steps_of
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.schema import Communication, Pattern
from topoplace.snapshot.tree_state import prepare_tree
from topoplace.solving import solve
from tree_brute_force import steps_of as slow_steps
from tree_cases import HEURISTICS, apart, model_of, snapshot_on, uses
from tree_exact_cases import solved, tiny_state

STRICT, NONE = Communication.STRICT, Communication.NONE


@cache
def results() -> tuple[Document, ...]:
    """Return right results with and without certificates, of one request and of several."""
    rd, ring = uses(Pattern.RECURSIVE_DOUBLING), uses(Pattern.RING)
    halo = uses(Pattern.STENCIL_2D, Pattern.VECTOR_DOUBLING)
    running = [("n0,n5", STRICT), ("n9", NONE)]
    states = [
        prepare_tree(snapshot_on(model_of([5, 5, 6]), running, queue, down="n15"))
        for queue in ([(8, rd)], [(4, rd), (3, ring)], [(4, halo), (2, ())], [(9, rd), (9, ring)])
    ]
    states.append(prepare_tree(snapshot_on(apart([5, 5, 6]), running, [(3, ring)] * 4, "n15")))
    found = [solved(state) for state in states] + [solve(states[1], "balanced")]
    return tuple(result.model_dump(mode="json") for result in found)


def holds(document: Document) -> bool:
    return check_document(AllocationResult.model_validate_json(json.dumps(document))).holds


def test_right_results_hold() -> None:
    assert all(holds(document) for document in results())
    assert any(proofs(document) for document in results())
    for seed in range(30):
        state = tiny_state(seed, most_ranks=5, num_requests=2)
        for name in HEURISTICS:
            report = check_document(solve(state, name))
            assert report.holds, (seed, name, report.failures)


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_rejected(name: str) -> None:
    applied = 0
    for number, document in enumerate(results()):
        mutant = copy.deepcopy(document)
        with suppress(InapplicableError):
            MUTATIONS[name](mutant, random.Random(f"{name}-{number}"))
        if mutant == document:
            continue
        if name == "ranks_in_another_order" and same_cost(document, mutant):
            continue
        applied += 1
        assert not holds(mutant), number
    assert applied


def same_cost(document: Document, mutant: Document) -> bool:
    """Tell whether the first request's ranks happen to cost the same in another order."""
    mutant = copy.deepcopy(mutant)
    name = allocations(mutant)[0]["request"]
    wish = next(r for r in document["instance"]["queue"] if r["id"] == name)
    leaf = [0 if int(n[1:]) < 5 else 1 if int(n[1:]) < 10 else 2 for n in _nodes(mutant)]
    before = [0 if int(n[1:]) < 5 else 1 if int(n[1:]) < 10 else 2 for n in _nodes(document)]
    for use in wish["patterns"] or []:
        for pairs, _ in slow_steps(Pattern(use["pattern"]), len(leaf)):
            met = [{frozenset((on[a], on[b])) for a, b in pairs} for on in (leaf, before)]
            if met[0] != met[1]:
                return False
    return True


def _nodes(document: Document) -> list[str]:
    found: list[str] = allocations(document)[0]["nodes"]
    return found


@pytest.mark.parametrize("pattern", list(Pattern))
def test_steps_of_the_checker(pattern: Pattern) -> None:
    for ranks in range(1, 41):
        found = [(sorted(pairs), weight) for pairs, weight in steps_of(pattern, ranks)]
        assert found == [(sorted(p), weight) for p, weight in slow_steps(pattern, ranks)]


def test_file_of_an_allocation_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    result = solved(tiny_state(1, most_ranks=4))
    file.write_text(result.model_dump_json(), encoding="utf-8")
    assert check_file(file).holds
