"""Certificates of the nodes that start on trees: counts of free nodes, and prices of domains."""

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
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.filling import (
    counted,
    domains_of,
    largest_sum,
    least_of_choices,
    most_worth,
    priced,
)
from topoplace.certify.switches.instance import Wish, read_instance
from topoplace.cli import run
from topoplace.placement.switches.exact.requests import domains
from topoplace.placement.switches.exact.starts import StartModel, certificate_of
from topoplace.result import Proof
from topoplace.result.tree import AllocationResult, CountingCertificate, DomainsCertificate
from topoplace.snapshot.schema import Pattern, Snapshot, SwitchModel, TreeModel
from topoplace.snapshot.tree_state import prepare_tree
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


def test_most_that_fits_is_that_of_all_choices() -> None:
    rng = random.Random("knapsack")
    for _ in range(200):
        items = [(rng.randint(1, 9), rng.randint(-2, 20)) for _ in range(rng.randint(0, 8))]
        room = rng.randint(0, 25)
        chosen = itertools.product((0, 1), repeat=len(items))
        fits = [c for c in chosen if sum(k * i[0] for k, i in zip(c, items, strict=True)) <= room]
        best = max(sum(k * i[1] for k, i in zip(c, items, strict=True)) for c in fits)
        assert most_worth(room, items) == best


def test_largest_sum_is_that_of_all_choices() -> None:
    rng = random.Random("sums")
    for _ in range(200):
        values = [rng.randint(1, 9) * rng.choice((1, 6)) for _ in range(rng.randint(0, 7))]
        most = rng.randint(0, 60)
        sums = {sum(c) for n in range(8) for c in itertools.combinations(values, n)}
        assert largest_sum(values, most) == max(s for s in sums if s <= most)
    assert largest_sum([6 << 40, 9 << 40, 3], 100) == 99  # rounded to what divides them


def test_knapsacks_that_take_too_long_are_refused() -> None:
    with pytest.raises(RefusedError, match="free nodes times requests"):
        most_worth(1 << 24, [(1 << 23, 1)] * 200)
    with pytest.raises(RefusedError, match="what the requests are worth"):
        most_worth(2, [(1, 1 << 61)] * 3)
    assert most_worth(1 << 30, [(1, 1 << 80)] * 300) == 300 << 80


def test_domains_are_leaves_that_switches_connect() -> None:
    whole = read_instance(snapshot_on(model_of([3, 4])))
    assert [(one.free, one.together) for one in domains_of(whole)] == [(7, 7)]
    two = read_instance(snapshot_on(apart([3, 4]), down="n0"))
    assert [(one.free, one.together) for one in domains_of(two)] == [(2, 2), (4, 4)]
    leaves = apart([3, 1, 5]).switches
    uppers = [
        SwitchModel(name="a", switches=f"{leaves[0].name},{leaves[1].name}"),
        SwitchModel(name="b", switches=f"{leaves[1].name},{leaves[2].name}"),
    ]
    chain = TreeModel(kind="tree", name="chain", switches=[*leaves, *uppers])
    assert [(d.free, d.together) for d in domains_of(read_instance(snapshot_on(chain)))] == [(9, 6)]
    ends = read_instance(snapshot_on(chain, down="n3"))
    assert [(d.free, d.together) for d in domains_of(ends)] == [(3, 3), (5, 5)]


def test_prices_by_hand() -> None:
    """Two domains of 4 and 3 hold one request of 3 each; counting alone finds room for 7 nodes."""
    instance = read_instance(snapshot_on(apart([4, 3]), [], [(3, RING), (3, RING), (1, RING)]))
    assert counted(instance) == 7
    assert priced(instance, prices(1, [0, 0, 0], 0)) == 7
    four = read_instance(snapshot_on(apart([4, 4]), [], [(3, RING)] * 4))
    assert counted(four) == 6
    assert priced(four, prices(1, [0] * 4, 0)) == 6
    silent = read_instance(snapshot_on(apart([4, 4]), [], [(3, RING)] * 2 + [(3, ())]))
    assert priced(silent, prices(2, [0, 0, 0], 2)) == 6  # 8 nodes, and no sum of values is 7 or 8
    assert priced(silent, prices(2, [0, 0, 0], 0)) == 6  # nobody spans the leaves
    with pytest.raises(RefusedError, match="2 prices for 3 requests"):
        priced(silent, prices(1, [0, 0], 0))


def prices(scale: int, own: Sequence[int], each: int) -> DomainsCertificate:
    return DomainsCertificate(scale=scale, prices=list(own), node_price=each)


def test_what_is_found_proves_the_truth_where_leaves_are_apart() -> None:
    kinds = []
    for seed in range(40):
        snapshot = crowded(seed)
        state, instance = prepare_tree(snapshot), read_instance(snapshot)
        leaves = state.tree.leaf_of_node[state.free]
        free = np.bincount(leaves, minlength=state.tree.num_leaves)
        sets = domains(state.tree)
        most = StartModel(state.requests, sets, free).most_nodes(5.0)
        assert most.value == most.bound
        found = certificate_of(most.bound, state.requests, sets, free, 2.0)
        kinds.append("none" if found is None else found.kind)
        if isinstance(found, CountingCertificate):
            assert counted(instance) == most.value
        elif isinstance(found, DomainsCertificate):
            assert priced(instance, found) == most.value
    assert kinds.count("none") <= 2
    assert kinds.count("counting") >= 5
    assert kinds.count("domains") >= 1


def test_least_of_choices_is_that_of_all_choices() -> None:
    rng = random.Random("choices")
    for _ in range(100):
        queue = [(rng.randint(1, 5), rng.choice((RING, ()))) for _ in range(rng.randint(1, 6))]
        instance = read_instance(weighted(rng, snapshot_on(model_of([4, 3]), [], queue)))
        bounds = {
            name: Fraction(rng.randint(-1, 9), rng.choice((1, 2, 3)))
            for name in instance.wishes
            if rng.random() < 0.8
        }
        known: dict[int, Fraction] = {}
        for chosen in choices(list(instance.wishes.values())):
            if sum(wish.nodes for wish in chosen) <= 7:
                value = sum(wish.value for wish in chosen)
                cost = sum((bounds.get(wish.id, Fraction(0)) for wish in chosen), Fraction(0))
                known[value] = min(cost, known.get(value, cost))
        for worth in known:
            least = min(cost for value, cost in known.items() if value >= worth)
            assert least_of_choices(instance, bounds, worth) == least
        with pytest.raises(RefusedError, match="no choice of requests"):
            least_of_choices(instance, bounds, max(known) + 1)


def choices(wishes: Sequence[Wish]) -> Iterator[tuple[Wish, ...]]:
    for number in range(len(wishes) + 1):
        yield from itertools.combinations(wishes, number)


def test_too_many_choices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topoplace.certify.switches.filling.MOST_STATES", 5)
    instance = read_instance(snapshot_on(model_of([9]), [], [(1, ()), (2, ()), (3, ())]))
    with pytest.raises(RefusedError, match="choices of requests: up to"):
        least_of_choices(instance, {}, 1)


def test_the_cost_of_a_queue_that_does_not_fit_is_verified() -> None:
    """One of two jobs that communicate has to wait, and either has its price."""
    queue = [(9, uses(Pattern.RECURSIVE_DOUBLING)), (9, RING)]
    result = solved(prepare_tree(snapshot_on(model_of([8, 8]), [], queue)))
    assert result.levels[1].proof is Proof.CERTIFICATE
    assert check_document(result).verified
    document = result.model_dump(mode="json")
    document["levels"][1]["certificate"]["proofs"].pop()
    assert not claim(check_document(read(document)), "cost.bound").holds


def test_counting_is_refused_where_it_proves_less() -> None:
    result = solved(prepare_tree(snapshot_on(apart([4, 4]), [], [(3, RING)] * 2 + [(2, RING)])))
    assert isinstance(result.levels[0].certificate, DomainsCertificate)
    assert claim(check_document(result), "nodes.bound").holds
    document = result.model_dump(mode="json")
    document["levels"][0]["certificate"] = {"kind": "counting"}
    refused = claim(check_document(read(document)), "nodes.bound")
    assert refused.detail == (
        "bound is 6, the certificate only proves 8, the most that 8 free nodes can hold"
    )


@pytest.mark.parametrize("kind", ["all-start", "counting"])
def test_nothing_of_the_cost_is_proven_by_counts(kind: str) -> None:
    result = solved(prepare_tree(snapshot_on(model_of([4, 4]), [], [(5, ())])))
    document = result.model_dump(mode="json")
    document["levels"][1]["certificate"] = {"kind": kind}
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
