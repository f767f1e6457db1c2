"""Messages that share links: against fair rates in fractions, and by hand."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from scripts_of_the_project import script
from topoplace.machine import Torus
from topoplace.machine.links import route_links
from topoplace.mapping.contention import Wormhole, exchange_times
from topoplace.mapping.evaluate import link_loads

Route = frozenset[tuple[int, int]]


def fair_rates(routes: dict[int, Route], width: dict[tuple[int, int], int]) -> dict[int, Fraction]:
    """Return max-min fair rates by their definition: all grow until a link of theirs is full."""
    rates: dict[int, Fraction] = {}
    while len(rates) < len(routes):
        shares = {}
        for link in {link for m, route in routes.items() if m not in rates for link in route}:
            taken = sum(rates[m] for m in rates if link in routes[m])
            waiting = sum(link in routes[m] for m in routes if m not in rates)
            shares[link] = (width[link] - taken) / Fraction(waiting)
        least = min(shares.values())
        full = {link for link, share in shares.items() if share == least}
        rates |= {m: least for m, route in routes.items() if m not in rates and route & full}
    return rates


def ends_of(
    routes: dict[int, Route],
    sizes: list[int],
    width: dict[tuple[int, int], int],
    after: list[int],
    delays: list[int],
) -> list[Fraction]:
    """Return when messages end, event by event, in fractions."""
    now = Fraction(0)
    ends: dict[int, Fraction] = {}
    begins = {m: Fraction(delays[m]) for m in range(len(sizes)) if after[m] < 0}
    left: dict[int, Fraction] = {}
    while begins or left:
        rates = fair_rates({m: routes[m] for m in left}, width)
        step = min([left[m] / rates[m] for m in left] + [begin - now for begin in begins.values()])
        now += step
        left = {m: size - step * rates[m] for m, size in left.items()}
        over = [m for m, size in left.items() if size == 0]
        for m in [m for m, begin in begins.items() if begin == now]:
            del begins[m]
            if routes[m]:
                left[m] = Fraction(sizes[m])
            else:
                over.append(m)
        for m in over:
            left.pop(m, None)
            ends[m] = now
            begins |= {k: now + delays[k] for k, other in enumerate(after) if other == m}
    return [ends[m] for m in range(len(sizes))]


@pytest.mark.parametrize("seed", range(40))
def test_times_are_those_of_fair_rates_in_fractions(seed: int) -> None:
    rng = random.Random(seed)
    dims = rng.randint(1, 3)
    torus = Torus(
        tuple(rng.randint(2, 5) for _ in range(dims)),
        wrap=tuple(rng.random() < 0.7 for _ in range(dims)),
        bandwidth=tuple(rng.randint(1, 4) for _ in range(dims)),
    )
    number = rng.randint(1, 12)
    ends = np.array([[rng.randrange(torus.num_routers) for _ in range(number)] for _ in range(2)])
    sizes = np.array([rng.randint(1, 50) for _ in range(number)])
    routes: dict[int, set[tuple[int, int]]] = {m: set() for m in range(number)}
    width = {}
    for m, link, way in zip(*(a.tolist() for a in route_links(torus, *ends)), strict=True):
        routes[m].add((link, way))
        width[link, way] = torus.bandwidth[link // torus.num_routers]
    whole = {m: frozenset(route) for m, route in routes.items()}
    after = [rng.choice([-1, rng.randrange(m)]) if m else -1 for m in range(number)]
    delays = [rng.randint(0, 9) for _ in range(number)]
    asked = sizes, np.array(after), np.array(delays, dtype=np.float64)
    truth = ends_of(whole, sizes.tolist(), width, after, delays)
    assert np.allclose(exchange_times(torus, *ends, *asked), [float(end) for end in truth])
    times = exchange_times(torus, *ends, sizes)
    truth = ends_of(whole, sizes.tolist(), width, [-1] * number, [0] * number)
    assert np.allclose(times, [float(end) for end in truth])
    loads = link_loads(torus, *ends, sizes).max(axis=(0, 2)) / np.array(torus.bandwidth)
    assert times.max() >= loads.max() * (1 - 1e-9)
    limit = rng.randint(1, 4)
    for m, (source, target) in enumerate(ends.T.tolist()):
        if source != target:  # a link of the node's own, out and in
            routes[m] |= {(-1 - source, 1), (-1 - target, -1)}
    width |= dict.fromkeys(set().union(*routes.values()) - set(width), limit)
    whole = {m: frozenset(route) for m, route in routes.items()}
    truth = ends_of(whole, sizes.tolist(), width, after, delays)
    times = exchange_times(torus, *ends, *asked, node_width=limit)
    assert np.allclose(times, [float(end) for end in truth])


def test_a_short_message_leaves_its_share_to_a_long_one() -> None:
    torus = Torus((4,), wrap=(False,), bandwidth=(2,))
    times = exchange_times(torus, np.array([0, 0, 3]), np.array([3, 1, 3]), np.array([10, 4, 7]))
    assert times.tolist() == [7.0, 4.0, 0.0]  # 4 s at rate 1, then 6 bytes at rate 2


def test_alone_a_message_pays_for_start_hops_and_bytes() -> None:
    torus = Torus((8,), wrap=(True,), bandwidth=(4,))
    network = Wormhole(start=3.0, per_hop=0.5, per_byte=0.25)
    alone = network.alone(torus, np.zeros(3, dtype=np.int64), np.array([0, 1, 5]), 16)
    assert alone.tolist() == [3.0, 4.5, 5.5]
    one = np.array([0]), np.array([5]), np.array([16])
    assert network.together(torus, *one).tolist() == [5.5]


def test_random_pairs_take_longer_and_more_so_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    study = script("study_contention")
    monkeypatch.setattr(study, "SHAPES", ((16,), (32,)))
    monkeypatch.setattr(study, "MACHINES", (replace(study.MACHINES[0], sizes=(4, 65_536)),))
    rows = {(row.torus, row.bytes): row for row in study.measure(1, 5)}
    assert all(row.neighbours < row.random for row in rows.values())
    more = {case: study.more(row) for case, row in rows.items()}
    ratio = {case: study.ratio(row) for case, row in rows.items()}
    for shape in ("16", "32"):
        assert ratio[shape, 4] < ratio[shape, 65_536]
        assert more[shape, 4] > more[shape, 65_536]
    assert ratio["16", 65_536] < ratio["32", 65_536]
    assert more["16", 4] < more["32", 4]
