"""Compiled loop of the layer bound."""

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel

FAR = np.int64(1 << 62)


@kernel()
def add_layers(inner, weight, num_layers, limit):
    """Return the least loss of 0..limit tasks in layers, given the least loss in one layer.

    The largest layer has `widest` tasks and costs ``weight * widest``; `split` is the least
    loss inside layers of at most that many tasks, an unbounded knapsack that grows by one size
    per round. `num_layers` layers must suffice.
    """
    least = np.full(limit + 1, FAR)
    least[0] = 0
    split = np.full(limit + 1, FAR)
    split[0] = 0
    for widest in range(1, min(len(inner) - 1, limit) + 1):
        price = weight * widest
        loss = inner[widest]
        for s in range(widest, limit + 1):
            split[s] = min(split[s], split[s - widest] + loss)
        last = min(limit, widest * num_layers)
        worst = np.int64(0)
        for s in range(1, limit + 1):
            if widest <= s <= last:
                least[s] = min(least[s], price + split[s])
            worst = max(worst, least[s])
        if price >= worst:  # wider layers cannot do better anywhere
            break
    return least
