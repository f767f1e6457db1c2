"""The example in docs/adding-a-heuristic.md works as printed, and every method is registered."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import topoplace.solving.registry as known
from random_instances import random_snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import methods, register, solve

FORM = Path(__file__).parents[1] / "docs" / "adding-a-heuristic.md"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers."""
    methods("placement")
    monkeypatch.setattr(known, "_METHODS", dict(known._METHODS))


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", FORM.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 20
    return str(code)


@pytest.mark.usefixtures("registry")
def test_the_example_places_jobs() -> None:
    exec(compile(example(), str(FORM), "exec"), {"__name__": "example"})
    assert methods("placement")["largest-first"].uses_prisms
    for seed in range(20):
        state = prepare(random_snapshot(random.Random(seed), 24))
        result = solve(state, "largest-first")
        assert result.method == "largest-first"
        assert result.solution is not None
        assert result.solution.conforming
        started = {p.request for p in result.solution.placements}
        sizes = sorted(state.queue, key=lambda r: -r.nodes)
        fits_alone = {r.id for r in state.queue} - {
            e.request for e in result.explanations if e.reason != "outbid"
        }
        if sizes and sizes[0].id in fits_alone:
            assert sizes[0].id in started


def test_shipped_heuristics_are_registered() -> None:
    kinds = {name: method.uses_prisms for name, method in methods("placement").items()}
    scattered = {"alps-o2", "alps-2y", "alps-4y", "random-nodes"}
    assert scattered <= {name for name, prisms in kinds.items() if not prisms}
    assert {"first-fit", "best-fit"} <= {name for name, prisms in kinds.items() if prisms}


@pytest.mark.usefixtures("registry")
def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="best-fit"):
        register("placement", "best-fit", "again")(
            lambda problem, options: pytest.fail("not to be run")
        )
