"""The minimum cut of a window against brute force, MiniZinc, its own flow and Topaware's rule."""

from __future__ import annotations

import itertools
import random

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
from topoplace.mapping.pencils.space import cell_terms, window_at

NUM_WINDOWS = 500


def test_cut_equals_brute_force_and_its_flow() -> None:
    exact, far = 0, 0
    for seed in range(NUM_WINDOWS):
        rng = random.Random(f"window-{seed}")
        window = random_window(rng)
        terms = random_terms(rng, window)
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


def _same_as_minizinc(first: int, count: int) -> None:
    for seed in range(first, first + count):
        rng = random.Random(f"window-{seed}")
        window = random_window(rng)
        terms = random_terms(rng, window)
        selection, found = model_selection(window, terms, checked=seed % 4 == 0)
        assert terms.hop_bytes(selection) == found
        if terms.mixed(window.slack).any():
            assert found == least_hop_bytes(window, terms), seed
        else:
            assert found == terms.hop_bytes(cut_selection(window, terms).selection)


@needs_minizinc
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_minizinc_agrees(first: int) -> None:
    _same_as_minizinc(first, 10)


@needs_minizinc
@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, NUM_WINDOWS, 20))
def test_minizinc_agrees_on_all_windows(first: int) -> None:
    _same_as_minizinc(first, 20)


def test_stretch_bound_holds_in_every_window() -> None:
    tight = 0
    for seed in range(NUM_WINDOWS):
        rng = random.Random(f"window-{seed}")
        window = random_window(rng)
        terms = random_terms(rng, window)
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
    rng = random.Random("large")
    window = random_window(rng)
    terms = random_terms(rng, window)
    large = terms.__class__(
        terms.num_pencils,
        terms.levels,
        terms.ring,
        terms.low,
        terms.high,
        np.full_like(terms.weight, network.MAX_CAPACITY // max(1, len(terms.weight))),
        terms.fixed,
    )
    with pytest.raises(InputError, match="exact"):
        cut_selection(window, large)


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
