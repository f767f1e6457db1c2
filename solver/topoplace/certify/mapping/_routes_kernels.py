"""The checker's own trees of shortest paths."""

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

import heapq

import numpy as np

from topoplace.kernels import kernel


@kernel()
def send(starts, partners, pairs, lengths, loads, sizes, times, sent, held):
    """Add up what all trees send over pairs, and the loads they hold; return a tree that is none.

    A tree of a size has the nearest tasks of its root, the lower number first at equal distances;
    each is behind the lowest of the partners that it has a shortest path through. -1 if all are.
    """
    num = len(starts) - 1
    behind = np.zeros(num, dtype=np.int64)
    position = np.full(num, -1, dtype=np.int64)
    distance = np.zeros(num, dtype=np.int64)
    for root in range(num):
        if sizes[root] == 0:
            continue
        members = np.empty(sizes[root], dtype=np.int64)
        queue = [(np.int64(0), np.int64(root))]
        count = 0
        while len(queue) > 0 and count < sizes[root]:
            length, task = heapq.heappop(queue)
            if position[task] >= 0:
                continue
            position[task], distance[task], members[count] = count, length, task
            count += 1
            for entry in range(starts[task], starts[task + 1]):
                if position[partners[entry]] < 0:
                    further = length + lengths[pairs[entry]]
                    heapq.heappush(queue, (further, np.int64(partners[entry])))
        for k in range(count - 1, -1, -1):
            task = members[k]
            behind[task] += loads[task]
            for entry in range(starts[task], starts[task + 1]):
                up = partners[entry]  # partners ascend: the first one is the lowest
                near = position[up] >= 0 and position[up] < k
                if near and distance[up] + lengths[pairs[entry]] == distance[task]:
                    behind[up] += behind[task]
                    sent[pairs[entry]] += times[root] * behind[task]
                    break
        held[root] = behind[root]
        for k in range(count):
            position[members[k]], behind[members[k]] = -1, 0
        if count < sizes[root]:
            return root
    return -1
