"""Contention of messages: wormhole routing with links shared max-min fairly.

Bhatele 2009, section 3.1. Alone, a message pays for its start, for every hop and for its bytes;
messages under way at the same time over the same link share its bandwidth. Rates are max-min fair:
none can grow except at the expense of one that is no larger. This is a model of machines, in
floating point; the largest link load (`topoplace.mapping.evaluate`) is a bound for every exchange
on these routes, at any rates.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# The kernel is compiled for the array types it is called with; annotations would be noise.

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from topoplace.kernels import kernel
from topoplace.machine import Torus
from topoplace.machine.links import route_links
from topoplace.mapping.evaluate import link_loads
from topoplace.mapping.problem import MappingProblem
from topoplace.types import FloatArray, IntArray

TOGETHER, ROUGHLY = 1e-9, 1e-2
"""Shares of its bytes below which a message ends together with another one that ends: practically
none, and for an estimate."""


@dataclass(frozen=True)
class Wormhole:
    """The time of a message with nothing in its way.

    Attributes
    ----------
    start
        Time to send a message of no bytes to the same router.
    per_hop
        Time that every link adds.
    per_byte
        Time of a byte over a link of bandwidth 1.
    """

    start: float = 0.0
    per_hop: float = 0.0
    per_byte: float = 1.0

    def alone(self, torus: Torus, sources: IntArray, targets: IntArray, size: int) -> FloatArray:
        """Return the times of messages between routers, each with the machine to itself."""
        apart = torus.hops(sources, targets)
        slowest = np.ones(len(apart)) / max(torus.bandwidth)
        message, link, _ = route_links(torus, sources, targets)
        np.maximum.at(slowest, message, 1 / _bandwidth_of(torus)[link])
        return np.asarray(
            self.start + self.per_hop * apart + self.per_byte * size * slowest * (apart > 0)
        )

    def together(
        self,
        torus: Torus,
        sources: IntArray,
        targets: IntArray,
        sizes: IntArray,
        after: IntArray | None = None,
    ) -> FloatArray:
        """Return the end times of messages between routers that are sent at once, or one by one.

        `after` has by message the one that has to be over first, or -1.
        """
        hops = torus.hops(sources, targets).astype(np.float64)
        delays: FloatArray = self.start + self.per_hop * hops
        width = 1 / self.per_byte
        return exchange_times(torus, sources, targets, sizes, after, delays, width)


def exchange_times(
    torus: Torus,
    sources: IntArray,
    targets: IntArray,
    sizes: IntArray,
    after: IntArray | None = None,
    delays: FloatArray | None = None,
    width: float = 1.0,
    node_width: float = np.inf,
    together: float = TOGETHER,
) -> FloatArray:
    """Return the end times of messages that share links fairly.

    Parameters
    ----------
    sources, targets, sizes
        Routers at the ends of every message and its bytes, shape ``(num_messages,)``.
    after
        By message another that has to be over first, -1 for none; none by default.
    delays
        By message the time from then on, or from the start, until its bytes flow; 0 by default.
    width
        Bytes in a unit of time over a link of bandwidth 1.
    node_width
        Bytes in a unit of time that a router can send, and as many that it can take; by default
        as many as its links carry. Messages within a router are not counted.
    together
        Share of its bytes that a message may have left to end with another one.

    Returns
    -------
    FloatArray
        Times, shape ``(num_messages,)``; a message within a router takes its delay. If all begin at
        once, the last is over no sooner than the most loaded link allows.
    """
    message, link, way = route_links(torus, sources, targets)
    wire, bandwidth = 2 * link + (way < 0), np.repeat(width * _bandwidth_of(torus), 2)
    if node_width < np.inf:  # a wire from every node, and one to it
        moved, ends = np.unique(message), len(bandwidth) + np.arange(2) * torus.num_routers
        wire = np.concatenate([wire, ends[0] + sources[moved], ends[1] + targets[moved]])
        message = np.concatenate([message, moved, moved])
        order = np.argsort(message, kind="stable")
        message, wire = message[order], wire[order]
        bandwidth = np.append(bandwidth, np.full(2 * torus.num_routers, node_width))
    used, entries = np.unique(wire, return_inverse=True)
    starts = np.searchsorted(message, np.arange(len(sizes) + 1))
    by_link = np.argsort(entries, kind="stable")
    of_link = np.searchsorted(entries[by_link], np.arange(len(used) + 1))
    routes = starts, entries, of_link, message[by_link], bandwidth[used]
    after = np.full(len(sizes), -1) if after is None else after
    delays = np.zeros(len(sizes)) if delays is None else delays
    return np.asarray(_fair_times(sizes.astype(np.float64), after, delays, routes, together))


def phase_time(problem: MappingProblem, nodes: IntArray) -> float:
    """Return the end time of all messages of a mapping if they are sent at once, in a model.

    In bytes per unit of bandwidth, as link loads. It is no less than the largest of these, and
    otherwise right to about `ROUGHLY`. Raises `InputError` on a machine without links.
    """
    torus, sent = problem.torus, problem.sent(nodes)
    if not len(sent[0]):
        return 0.0
    loads = link_loads(torus, *sent).max(axis=(0, 2)) / np.array(torus.bandwidth)
    times = exchange_times(torus, *sent, together=ROUGHLY)
    return float(max(times.max(), loads.max()))


def _bandwidth_of(torus: Torus) -> FloatArray:
    """Return the bandwidth of every link, by number."""
    return np.repeat(np.asarray(torus.bandwidth, dtype=np.float64), torus.num_routers)


@kernel()
def _fair_times(sizes, after, delays, routes, together):
    """Return the end time of every message, at max-min fair rates from event to event.

    `routes` are `starts`, `links`, `of_link`, `messages`, `bandwidth`: message m takes
    ``links[starts[m] : starts[m + 1]]``, link l has ``messages[of_link[l] : of_link[l + 1]]``.
    """
    number = sizes.shape[0]
    begins, ends = np.full(number, np.inf), np.full(number, np.inf)
    left, rates = np.zeros(number), np.zeros(number)
    begun = after < 0
    for m in range(number):
        if begun[m]:
            begins[m] = delays[m]
    now = 0.0
    while True:
        _fair_rates(left, routes, rates)
        next_event = np.inf
        for m in range(number):
            if left[m] > 0:
                next_event = min(next_event, now + left[m] / rates[m])
            next_event = min(next_event, begins[m])
        if next_event == np.inf:
            return ends
        step, now = next_event - now, next_event
        for m in range(number):
            if left[m] > 0:
                left[m] -= step * rates[m]
                if left[m] <= together * sizes[m]:
                    left[m] = 0.0
                    ends[m] = now
            elif begins[m] <= now * (1 + together):
                begins[m] = np.inf
                left[m] = sizes[m] if routes[0][m] < routes[0][m + 1] else 0.0
                ends[m] = np.inf if left[m] > 0 else now
        for m in range(number):  # messages that waited for one that is over
            if after[m] >= 0 and ends[after[m]] == now and not begun[m]:
                begins[m], begun[m] = now + delays[m], True


@kernel()
def _fair_rates(left, routes, rates):
    """Set the max-min fair rates of messages with bytes left, by progressive filling.

    The link with the least share is full first, and gives it to all its messages; this can only
    raise the shares of other links, so a heap of old shares is right if entries are checked again.
    """
    starts, links, of_link, messages, bandwidth = routes
    num_links = bandwidth.shape[0]
    free = bandwidth.copy()
    waiting = np.zeros(num_links, dtype=np.int64)
    for m in range(left.shape[0]):
        rates[m] = 0.0
        if left[m] > 0:
            for k in range(starts[m], starts[m + 1]):
                waiting[links[k]] += 1
    shares = [(free[at] / waiting[at], at) for at in range(num_links) if waiting[at] > 0]
    heapify(shares)
    full = 0.0  # the last share given: no later one is less, in spite of rounding
    while len(shares) > 0:
        share, at = heappop(shares)
        if waiting[at] == 0:
            continue
        current = max(full, free[at] / waiting[at])
        if current > share:
            heappush(shares, (current, at))
            continue
        full = current
        for k in range(of_link[at], of_link[at + 1]):
            m = messages[k]
            if left[m] > 0 and rates[m] == 0.0:
                rates[m] = current
                for e in range(starts[m], starts[m + 1]):
                    free[links[e]] -= current
                    waiting[links[e]] -= 1
