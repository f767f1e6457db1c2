"""The minimum cut of a window against brute force, MiniZinc, its own flow and Topaware's rule."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from minizinc_cases import needs_minizinc
from pencil_cases import least_hop_bytes, random_terms, random_window
from reference_models import model_selection
from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.mapping.graph import VirtualGrid
from topoplace.mapping.pencils import network
from topoplace.mapping.pencils.network import cut_selection, stretch_bound
from topoplace.mapping.pencils.space import CellTerms, PencilWindow, cell_terms, window_at

NUM_WINDOWS = 500


def random_case(seed: int | str) -> tuple[PencilWindow, CellTerms]:
    """Return a random window, and bytes between its cells."""
    rng = random.Random(f"window-{seed}")
    window = random_window(rng)
    return window, random_terms(rng, window)


def test_cut_equals_brute_force_and_its_flow() -> None:
    exact, far = 0, 0
    for seed in range(NUM_WINDOWS):
        window, terms = random_case(seed)
        cut = cut_selection(window, terms)
        found, least = terms.hop_bytes(cut.selection), least_hop_bytes(window, terms)
        assert (np.diff(cut.selection, axis=1) > 0).all()
        assert np.take_along_axis(window.usable, cut.selection, axis=1).all()
        if terms.mixed(window.slack).any():
            assert least <= found <= cut.value + terms.constant(window.depth)
        else:
            assert found == least == cut.value + terms.constant(window.depth), seed
            assert found <= terms.hop_bytes(window.earliest)
            exact += 1
            far += bool(terms.far(window.slack).any())
    assert exact >= 300
    assert far >= 30


@needs_minizinc
@pytest.mark.parametrize(
    ("first", "count"),
    [
        *((first, 10) for first in range(0, 40, 10)),
        *(pytest.param(k, 20, marks=pytest.mark.slow) for k in range(40, NUM_WINDOWS, 20)),
    ],
)
def test_minizinc_agrees(first: int, count: int) -> None:
    for seed in range(first, first + count):
        window, terms = random_case(seed)
        selection, found = model_selection(window, terms, checked=seed % 4 == 0)
        assert terms.hop_bytes(selection) == found
        if terms.mixed(window.slack).any():
            assert found == least_hop_bytes(window, terms), seed
        else:
            assert found == terms.hop_bytes(cut_selection(window, terms).selection)


def test_stretch_bound_holds_in_every_window() -> None:
    tight = 0
    for seed in range(NUM_WINDOWS):
        window, terms = random_case(seed)
        bound = stretch_bound(terms, window.slack)
        spans = [
            min(row[k + window.levels - 1] - row[k] for k in range(len(row) - window.levels + 1))
            for row in map(np.flatnonzero, window.usable)
        ]
        stretch = np.array(spans) - (window.levels - 1)
        least = least_hop_bytes(window, terms)
        assert bound.base + int(bound.price @ stretch) <= least, seed
        tight += bound.base + int(bound.price @ stretch) == least
    assert tight >= NUM_WINDOWS // 10


def test_capacities_beyond_64_bits_are_refused() -> None:
    window, terms = random_case("large")
    share = network.MAX_CAPACITY // max(1, len(terms.weight))
    with pytest.raises(InputError, match="exact"):
        cut_selection(window, replace(terms, weight=np.full_like(terms.weight, share)))


def test_two_thirds_of_the_excess_hops_are_gone() -> None:
    shape, torus = (24, 6, 20), Torus((24, 6, 24))
    grid = VirtualGrid(shape, (False,) * 3, (((1, 0, 0), 1), ((0, 1, 0), 1), ((0, 0, 1), 1)))
    terms = cell_terms(torus, grid.graph(), grid.coordinates(), shape, 2)
    ideal = terms.fixed + int(terms.gap @ terms.weight)
    removed = []
    for seed in itertools.count():
        whole = np.random.default_rng(seed).random(torus.num_routers) >= 0.03
        window = window_at(torus, whole, shape, 2, (0, 0, 0), 24)
        if not window.feasible:  # more than four holes in one pencil
            continue
        best = terms.hop_bytes(cut_selection(window, terms).selection)
        topaware = terms.hop_bytes(window.earliest)
        assert ideal <= best <= topaware
        removed.append((topaware - best) / (topaware - ideal))
        if len(removed) == 20:
            break
    assert sum(removed) / len(removed) >= 0.4
