"""The minimum cut of a window against brute force, MiniZinc, its own flow and Topaware's rule."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from minizinc_cases import needs_minizinc
from pencil_cases import least_hop_bytes, random_terms, random_window
from reference_models import model_selection
from topoplace.errors import InputError
from topoplace.mapping.pencils import network
from topoplace.mapping.pencils.network import cut_selection
from topoplace.mapping.pencils.space import CellTerms, PencilWindow

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


def test_capacities_beyond_64_bits_are_refused() -> None:
    window, terms = random_case("large")
    share = network.MAX_CAPACITY // max(1, len(terms.weight))
    with pytest.raises(InputError, match="exact"):
        cut_selection(window, replace(terms, weight=np.full_like(terms.weight, share)))
