"""Which requests start on trees: the engine of packings, and the cheapest of several choices."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from real_files import real_file
from topoplace.certify import Report, check_document
from topoplace.certify.hierarchy.instance import Asked, read_instance
from topoplace.certify.packing import certified_bound
from topoplace.certify.report import RefusedError, exact
from topoplace.certify.switches.starts import least_of_choices, oracle_of, parts_of
from topoplace.cli import run
from topoplace.placement.switches.exact import starts
from topoplace.result import Proof
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.schema import Pattern, Snapshot, SwitchModel, TreeModel
from tree_cases import apart, model_of, snapshot_on, uses
from tree_exact_cases import solved

RING = uses(Pattern.RING)


def weighted(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose requests have a priority each."""
    queue = [
        request.model_copy(update={"priority": rng.choice((1, 1, 1, 2, 3))})
        for request in snapshot.queue
    ]
    return snapshot.model_copy(update={"queue": queue})


def crowded(seed: int) -> Snapshot:
    """Return leaves apart and some requests, a quarter of them without a pattern."""
    rng = random.Random(f"apart-{seed}")
    sizes = [rng.randint(1, 15) for _ in range(rng.randint(2, 6))]
    queue = [
        (rng.randint(1, min(15, sum(sizes))), () if rng.random() < 0.25 else RING)
        for _ in range(rng.randint(4, 12))
    ]
    return weighted(rng, snapshot_on(apart(sizes), [], queue))


def test_parts_are_the_free_leaves_below_roots() -> None:
    assert parts_of(read_instance(snapshot_on(model_of([3, 4])))) == [7]
    assert parts_of(read_instance(snapshot_on(apart([3, 4]), down="n0"))) == [2, 4]
    leaves = apart([3, 1, 5]).switches
    upper = SwitchModel(name="a", switches=f"{leaves[0].name},{leaves[1].name}")
    two = TreeModel(kind="tree", name="two", switches=[*leaves, upper])
    assert parts_of(read_instance(snapshot_on(two))) == [4, 5]
    assert parts_of(read_instance(snapshot_on(two, down="n[0-3]"))) == [5]


@pytest.mark.parametrize("seed", range(40))
def test_the_engine_starts_the_most_and_proves_it(seed: int) -> None:
    """Against all choices of requests and parts, and in parts as the checker reads them."""
    snapshot = crowded(seed)
    state, instance = prepare_contention(snapshot), read_instance(snapshot)
    tree = state.machine
    free = np.bincount(tree.leaf_of[state.free[:, 0] > 0], minlength=tree.num_leaves)
    parts = starts.parts_of(tree, free)
    assert [part.free for part in parts] == parts_of(instance)
    best = {(0, *(part.free for part in parts))}
    for request in state.requests:
        for value, *rooms in list(best):
            for k in range(len(parts)):
                if request.nodes <= rooms[k]:
                    left = [r - request.nodes * (k == at) for at, r in enumerate(rooms)]
                    best.add((value + request.value, *left))
    most = max(value for value, *_ in best)
    costs = [Fraction(k % 4, 1 + k % 3) for k in range(len(state.requests))]
    found = starts.chosen(state.requests, parts, 20.0, costs)
    assert found.value == found.bound == most
    assert found.total == sum(costs[q] for q in found.started)
    assert found.certificate is not None
    proven = certified_bound(oracle_of(instance), found.certificate, [])
    assert proven is not None
    assert proven.value == most


@pytest.mark.parametrize("queue", [[], [(4, RING)]])
def test_nothing_starts_on_leaves_apart(queue: list[Any]) -> None:
    result = solved(prepare_contention(snapshot_on(apart([2, 3]), [], queue)))
    assert result.levels[0].objective is not None
    assert exact(result.levels[0].objective) == 0
    assert result.check().verified


def test_least_of_choices_is_that_of_all_choices() -> None:
    rng = random.Random("choices")
    for _ in range(100):
        queue = [(rng.randint(1, 5), rng.choice((RING, ()))) for _ in range(rng.randint(1, 6))]
        instance = read_instance(weighted(rng, snapshot_on(model_of([4, 3]), [], queue)))
        bounds = {
            asked.id: Fraction(rng.randint(-1, 9), rng.choice((1, 2, 3)))
            for asked in instance.queue
            if rng.random() < 0.8
        }
        known: dict[int, Fraction] = {}
        for chosen in choices(instance.queue):
            if sum(wish.nodes for wish in chosen) <= 7:
                value = sum(wish.value for wish in chosen)
                cost = sum((bounds.get(wish.id, Fraction(0)) for wish in chosen), Fraction(0))
                known[value] = min(cost, known.get(value, cost))
        for worth in known:
            least = min(cost for value, cost in known.items() if value >= worth)
            assert least_of_choices(instance, bounds, worth) == least
        with pytest.raises(RefusedError, match="no choice of requests"):
            least_of_choices(instance, bounds, max(known) + 1)


def choices(wishes: Sequence[Asked]) -> Iterator[tuple[Asked, ...]]:
    for number in range(len(wishes) + 1):
        yield from itertools.combinations(wishes, number)


def test_too_many_choices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topoplace.certify.switches.starts.MOST_STATES", 5)
    instance = read_instance(snapshot_on(model_of([9]), [], [(1, ()), (2, ()), (3, ())]))
    with pytest.raises(RefusedError, match="choices of requests: up to"):
        least_of_choices(instance, {}, 1)


def test_the_cost_of_a_queue_that_does_not_fit_is_verified() -> None:
    """One of two jobs that communicate has to wait, and either has its price."""
    queue = [(9, uses(Pattern.RECURSIVE_DOUBLING)), (9, RING)]
    result = solved(prepare_contention(snapshot_on(model_of([8, 8]), [], queue)))
    assert result.levels[1].proof is Proof.CERTIFICATE
    assert check_document(result).verified
    document = result.model_dump(mode="json")
    document["levels"][1]["certificate"]["proofs"].pop()
    assert not claim(check_document(read(document)), "cost.bound").holds


def test_a_certificate_that_proves_less_is_refused() -> None:
    result = solved(
        prepare_contention(snapshot_on(apart([4, 4]), [], [(3, RING)] * 2 + [(2, RING)]))
    )
    assert claim(check_document(result), "nodes.bound").holds
    document = result.model_dump(mode="json")
    document["levels"][0]["certificate"] = {"kind": "leaf", "scale": 1}
    refused = claim(check_document(read(document)), "nodes.bound")
    assert refused.detail == "bound is 6, the certificate only proves 8"
    document["levels"][1]["certificate"] = {"kind": "leaf", "scale": 1}
    refused = claim(check_document(read(document)), "cost.bound")
    assert refused.detail == "the certificate bounds nodes alone"


def claim(report: Report, name: str) -> Any:
    return next(claim for claim in report.claims if claim.name == name)


def read(document: dict[str, Any]) -> AllocationResult:
    return AllocationResult.model_validate_json(json.dumps(document))


@pytest.mark.parametrize("listing", ["squeue.txt", "squeue.json"])
def test_real_slurm_files_end_in_a_verified_answer(
    listing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = [f"--{name}={real_file(f'slurm_real/{file}')}" for name, file in FILES]
    jobs = f"--jobs={real_file(f'slurm_real/{listing}')}"
    snapshot, result = str(tmp_path / "snapshot.json"), str(tmp_path / "result.json")
    assert run(["convert", "--from", "slurm", *base, jobs, "-o", snapshot]) == 0
    assert run(["place", snapshot, "-o", result]) == 0
    assert run(["check", result]) == 0
    assert "every claim holds" in capsys.readouterr().out


FILES = (("topology", "topology.conf"), ("nodes", "nodes.txt"))
