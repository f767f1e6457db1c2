"""What leaves of a cube claim of the ranks around, against sets of corners one can count."""

import itertools

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.isoperimetry import cube_claims


def random_parts(rng, dims, largest):
    """Sets of corners no two of which are neighbours, grown from random corners."""
    parts, taken = [], set()
    for corner in rng.permutation(1 << dims).tolist():
        part = grown(rng, dims, corner, int(rng.integers(1, largest + 1)), taken)
        if part:
            parts.append(part)
            taken |= part | {c ^ 1 << d for c in part for d in range(dims)}
    return parts


def grown(rng, dims, corner, size, taken):
    part: set[int] = set()
    edge = [corner]
    while edge and len(part) < size:
        chosen = edge.pop(int(rng.integers(len(edge))))
        if chosen in taken or chosen in part:
            continue
        part.add(chosen)
        edge += [chosen ^ 1 << d for d in range(dims)]
    return part


@pytest.mark.parametrize("dims", range(2, 8))
def test_ranks_around_are_as_many_as_claimed(dims):
    rng = np.random.default_rng(dims)
    claims = cube_claims(1 << dims, dims, 0)
    for largest in (1, 2, 3, 5, 9, 16, 24):
        for _ in range(12):
            parts = random_parts(rng, dims, largest)
            around = {c ^ 1 << d for part in parts for c in part for d in range(dims)}
            around -= set().union(*parts)
            assert dims**2 * len(around) >= sum(int(claims[len(part)]) for part in parts)


@pytest.mark.parametrize("closed", [1, 2])
def test_whole_subcubes_claim_whole_subcubes(closed):
    dims, free = 6, 6 - closed
    rng = np.random.default_rng(closed)
    claims = cube_claims(1 << dims, free, closed)
    for _ in range(40):
        parts = random_parts(rng, free, 6)
        around = {c ^ 1 << d for part in parts for c in part for d in range(free)}
        around -= set().union(*parts)
        ranks = len(around) << closed
        assert free**2 * ranks >= sum(int(claims[len(part) << closed]) for part in parts)


def test_stars_claim_no_more_than_they_meet():
    for dims in (3, 4, 5, 6):
        star = {0} | {1 << d for d in range(dims)}
        around = {a | b for a, b in itertools.combinations(star - {0}, 2)}
        claim = int(cube_claims(1 << dims, dims, 0)[dims + 1])
        assert 0 < claim <= dims**2 * len(around)


def test_claims_say_more_than_pairs_alone():
    dims, ranks = 8, 9
    pairs = sum(number.bit_count() for number in range(ranks))
    assert int(cube_claims(1 << dims, dims, 0)[ranks]) > dims * (dims * ranks - 2 * pairs)
