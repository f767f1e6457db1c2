"""Parts of a search over binomial thresholds hand boxes over to each other."""

from __future__ import annotations

import threading
import time

import numpy as np

from test_tree_doubling import binomial_jobs, first_leaves
from topoplace.placement.tree.exact.cutting.boxes import Boxes, Corners
from topoplace.placement.tree.exact.doubling.search import DoublingSearch
from topoplace.placement.tree.exact.doubling.sharing import Gift, Sharing

NOTHING = np.zeros((0, 2), dtype=np.int64)


def costs(boxes: Boxes) -> list[int]:
    """Return the costs of all boxes, each cut away once it is the cheapest."""
    found, impossible = [], Corners(2)
    while (box := boxes.cheapest(impossible, 1 << 40)) is not None:
        found.append(box[0])
        impossible.add(box[2])
    return found


def test_half_of_the_boxes_and_the_others_are_all() -> None:
    rng = np.random.default_rng(5)
    for num in (2, 3, 10, 33):
        values, prices = np.arange(200), np.array([1, 200])
        # boxes of one corner each, none under another's
        lows = [np.array([n, 150 - n]) for n in rng.permutation(150)[:num]]
        boxes = Boxes(values, prices)
        for low in lows:
            boxes.add(low, low)
        given = boxes.halved()
        assert (len(boxes), len(given)) == ((num + 1) // 2, num // 2)
        others = Boxes(values, prices)
        for low, high in given:
            others.add(low, high)
        expected = sorted(int(prices @ values[low]) for low in lows)
        assert sorted(costs(boxes) + costs(others)) == expected


def test_a_part_that_waits_gets_boxes() -> None:
    sharing, taken = Sharing(2), []
    waiting = threading.Thread(target=lambda: taken.append(sharing.take(1)))
    waiting.start()
    while not sharing.wanted:
        time.sleep(0.001)
    sharing.give(Gift([], NOTHING))
    waiting.join(10)
    assert not sharing.wanted
    assert taken[0] is not None


def test_who_waits_goes_home_once_nobody_works() -> None:
    sharing, taken = Sharing(3), []
    waiting = [threading.Thread(target=lambda n=n: taken.append(sharing.take(n))) for n in (0, 1)]
    for thread in waiting:
        thread.start()
    sharing.leave(2)
    for thread in waiting:
        thread.join(10)
        assert not thread.is_alive()
    assert taken == [None, None]
    assert not sharing.wanted


def test_a_search_without_time_ends() -> None:
    job = next(job for seed in range(20) for job in binomial_jobs(seed, 12))
    search = DoublingSearch(job, first_leaves(job), time.perf_counter())
    assert search.run() <= search.best.cost
