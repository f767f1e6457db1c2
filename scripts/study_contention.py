"""What hops cost without and with contention: WOCON and WICON of Bhatele 2009, section 3.1.

The model is `topoplace.mapping.contention`, with published figures of Blue Gene/P, XT3 and XT4.
Writes the tables of docs/studies/contention.md, its picture and its figures as CSV.

    python scripts/study_contention.py [--draws N] [--seed N]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from study import Column, Record, Study, curve, groups, table, where
from topoplace.machine import Torus
from topoplace.mapping.contention import Wormhole, exchange_times
from topoplace.types import IntArray

SHAPES = ((8, 8, 8), (8, 8, 16))
SIZES = (4, 64, 512, 2_048, 16_384, 131_072, 1_048_576)
ROUNDS = 3


@dataclass(frozen=True)
class Machine:
    """A network in microseconds and bytes, what a node can send, its cores, and what closes.

    A dimension closes to a ring where it has at least `ring` routers: all of them in a partition of
    Blue Gene/P, those of the whole machine on the XT3 (11x12x16).
    """

    name: str
    network: Wormhole
    node_width: float = math.inf
    cores: int = 4
    ring: int = 1
    sizes: tuple[int, ...] = SIZES


_SEASTAR = Wormhole(start=2.0, per_hop=3 / 52, per_byte=1 / 3800)
"""2 microseconds to the next node and 5 to the farthest, 53 hops away, were asked of Red Storm,
the first XT3; links have 3.8 GB/s in each direction."""

MACHINES = (
    Machine("Blue Gene/P", Wormhole(start=3.0, per_hop=0.1, per_byte=1 / 425)),
    Machine("XT3", _SEASTAR, 1100, 2, 16, (4, 16_384, 1_048_576)),
    Machine("XT4", _SEASTAR, 2000, 4, 16, (4, 16_384, 1_048_576)),
)
"""Blue Gene/P: a start of 3, 0.1 a hop (3 to the next node, 10 to the farthest of 68 hops), links
of 425 MB/s in each direction. A node sends 1.1 GB/s on the XT3 and 2.0 on the XT4."""


def in_pairs(
    machine: Machine, torus: Torus, pairs: IntArray, size: int, rng: np.random.Generator
) -> float:
    """Return the mean time of a message where all pairs send to and fro, `ROUNDS` times each.

    Every pair begins at a time of its own within its first round, and later rounds count: pairs of
    a loop on a real machine do not keep step.
    """
    number, network = len(pairs), machine.network
    to_and_fro = np.concatenate([pairs, pairs[:, ::-1]] * ROUNDS)
    after = np.arange(-number, len(to_and_fro) - number)
    first = network.start + machine.cores * _per_byte(machine) * size
    sources, targets = to_and_fro.T
    delays = network.start + network.per_hop * torus.hops(sources, targets)
    delays[:number] += rng.uniform(0, 2 * first, number)
    sizes = np.full(len(sources), size)
    after = np.maximum(after, -1)
    asked = sources, targets, sizes, after, delays, 1 / network.per_byte, machine.node_width
    ends = exchange_times(torus, *asked).reshape(2 * ROUNDS, number)
    return float((ends[-1] - ends[1]).mean() / (2 * ROUNDS - 2))


def _per_byte(machine: Machine) -> float:
    """Return the time of a byte of a message that is alone."""
    return max(machine.network.per_byte, 1 / machine.node_width)


def measure(draws: int, seed: int) -> Iterator[Record]:
    """Yield a record for every machine, torus and size: microseconds of a message.

    `nearest` and `farthest` are alone on the machine; `neighbours` and `random` the mean where
    all ranks talk at once, in pairs of neighbours and in random pairs.
    """
    for machine in MACHINES:
        for shape in SHAPES:
            torus = Torus(shape, wrap=tuple(extent >= machine.ring for extent in shape))
            # one rank a core, node after node and then the next core: ranks 2k and 2k + 1 are one
            # hop apart, along the dimension that counts fastest
            router_of = np.tile(np.arange(torus.num_routers), machine.cores)
            rng = np.random.default_rng(seed)
            drawn = [rng.permutation(router_of).reshape(-1, 2) for _ in range(draws)]
            alone = replace(machine.network, per_byte=_per_byte(machine))
            others = np.arange(1, torus.num_routers)
            for size in machine.sizes:
                each = alone.alone(torus, np.zeros_like(others), others, size)
                apart = [in_pairs(machine, torus, chosen, size, rng) for chosen in drawn]
                pairs = router_of.reshape(-1, 2)
                yield Record(
                    machine=machine.name,
                    torus="x".join(map(str, shape)),
                    bytes=size,
                    nearest=float(each.min()),
                    farthest=float(each.max()),
                    neighbours=in_pairs(machine, torus, pairs, size, rng),
                    random=float(np.mean(apart)),
                )


def more(row: Record) -> float:
    """Return how much longer a message takes to the farthest node, as a share."""
    return float(row.farthest / row.nearest - 1)


def ratio(row: Record) -> float:
    """Return how many times as long a message of a random pair takes."""
    return float(row.random / row.neighbours)


COLUMNS: list[Column] = [
    *("machine", "torus", "bytes", ("alone, next", lambda row: f"{row.nearest:,.1f}")),
    ("alone, farthest", lambda row: f"{row.farthest:,.1f}"),
    ("more", lambda row: f"{100 * more(row):.1f} %"),
    ("neighbours", lambda row: f"{row.neighbours:,.1f}"),
    ("random", lambda row: f"{row.random:,.1f}"),
    ("ratio", lambda row: f"{ratio(row):.2f}"),
]


def compared(rows: Sequence[Record]) -> str:
    """Return the table of what the paper says and what comes out here, on Blue Gene/P and XT3."""
    small, large, cray = (
        {row.bytes: row for row in where(rows, machine=name, torus=torus)}
        for name, torus in (("Blue Gene/P", "8x8x8"), ("Blue Gene/P", "8x8x16"), ("XT3", "8x8x16"))
    )
    lines = [
        (
            "alone, hops matter for small messages",
            "nearest to farthest of 1,024 nodes 30 % at 4 bytes, 10 % at 8 KB, 6 % at 16 KB",
            ", ".join(f"{100 * more(large[n]):.0f} % at {n:,} bytes" for n in (4, 2_048, 16_384)),
        ),
        (
            "and more on a larger machine",
            "the difference increases with the diameter",
            f"at 4 bytes {100 * more(small[4]):.0f} % on 8x8x8, "
            f"{100 * more(large[4]):.0f} % on 8x8x16",
        ),
        (
            "together, random pairs take longer than neighbours",
            "more so for larger messages; at 16 KB on the XT3 nearly twice as long",
            f"{ratio(large[4]):.2f} times at 4 bytes, {ratio(large[16_384]):.2f} at 16 KB, "
            f"{ratio(large[SIZES[-1]]):.2f} at 1 MiB; "
            f"on the XT3 {ratio(cray[16_384]):.2f} at 16 KB",
        ),
        (
            "and more on a larger machine",
            "latencies of random pairs grow with the diameter",
            f"at 1 MiB {ratio(small[SIZES[-1]]):.2f} times on 8x8x8, "
            f"{ratio(large[SIZES[-1]]):.2f} on 8x8x16",
        ),
    ]
    heads = ("", "measured in the paper", "here")
    return table(lines, [(head, lambda line, k=k: line[k]) for k, head in enumerate(heads)], 3)


def write(study: Study, rows: Sequence[Record]) -> None:
    """Write records, tables and the picture: alone on the left, all at once on the right."""
    study.write(rows)
    study.page("Microseconds a message:", table(rows, COLUMNS, 2), compared(rows))
    with study.picture("", 1, 2, figsize=(10, 3.8), layout="constrained") as (_, ((alone, both),)):
        shown = groups(where(rows, machine=MACHINES[0].name), "torus")
        for (torus, own), style in zip(shown.items(), ("o--", "o-"), strict=True):
            look = {"label": torus, "ms": 6}
            curve(alone, [(row.bytes, 100 * more(row)) for row in own], style, **look)
            curve(both, [(row.bytes, ratio(row)) for row in own], style, **look)
        alone.set(title="alone: farthest node over nearest", ylabel="more time, %")
        both.set(title="all at once: random pairs over neighbours", ylabel="times as long")
        for panel in (alone, both):
            panel.set_xscale("log", base=4)
            panel.set_xlabel("bytes of a message")
            panel.legend()


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its picture and its table."""
    study = Study("contention", __doc__, given, draws=1, seed=2009)
    write(study, list(measure(study.options.draws, study.options.seed)))


if __name__ == "__main__":
    main()
