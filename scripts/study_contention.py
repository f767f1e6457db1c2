"""What hops cost without and with contention: WOCON and WICON of Bhatele 2009, section 3.1.

The model is `topoplace.mapping.contention`, with the figures of Blue Gene/P as they are published.
Writes the tables of docs/studies/contention.md, its picture and its figures as CSV.

    python scripts/study_contention.py [--draws N] [--seed N]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from study import Column, Record, Study, curve, groups, table, where
from topoplace.machine import Torus
from topoplace.mapping.contention import Wormhole, exchange_times
from topoplace.types import IntArray

NETWORK = Wormhole(start=3.0, per_hop=0.1, per_byte=1 / 425)
"""Microseconds: a start of 3, 0.1 a hop (3 to the next node, 10 to the farthest of 68 hops), and
links of 425 million bytes per second and direction."""

CORES = 4
SHAPES = ((8, 8, 8), (8, 8, 16))
SIZES = (4, 64, 512, 2_048, 16_384, 131_072, 1_048_576)
ROUNDS = 3


def in_pairs(torus: Torus, pairs: IntArray, size: int, rng: np.random.Generator) -> float:
    """Return the mean time of a message where all pairs send to and fro, `ROUNDS` times each.

    Every pair begins at a time of its own within its first round, and later rounds count: pairs of
    a loop on a real machine do not keep step.
    """
    number = len(pairs)
    to_and_fro = np.concatenate([pairs, pairs[:, ::-1]] * ROUNDS)
    after = np.arange(-number, len(to_and_fro) - number)
    first = NETWORK.start + CORES * NETWORK.per_byte * size
    sources, targets = to_and_fro.T
    delays = NETWORK.start + NETWORK.per_hop * torus.hops(sources, targets)
    delays[:number] += rng.uniform(0, 2 * first, number)
    sizes = np.full(len(sources), size)
    after = np.maximum(after, -1)
    ends = exchange_times(torus, sources, targets, sizes, after, delays, 1 / NETWORK.per_byte)
    ends = ends.reshape(2 * ROUNDS, number)
    return float((ends[-1] - ends[1]).mean() / (2 * ROUNDS - 2))


def measure(draws: int, seed: int) -> Iterator[Record]:
    """Yield a record for every torus and size: microseconds of a message.

    `nearest` and `farthest` are alone on the machine; `neighbours` and `random` the mean where
    all ranks talk at once, in pairs of neighbours and in random pairs.
    """
    for shape in SHAPES:
        torus = Torus(shape)
        others = np.arange(1, torus.num_routers)
        # one rank a core, node after node and then the next core: ranks 2k and 2k + 1 are one hop
        # apart, along the dimension that counts fastest
        router_of = np.tile(np.arange(torus.num_routers), CORES)
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(router_of).reshape(-1, 2) for _ in range(draws)]
        for size in SIZES:
            alone = NETWORK.alone(torus, np.zeros_like(others), others, size)
            apart = [in_pairs(torus, chosen, size, rng) for chosen in drawn]
            yield Record(
                torus="x".join(map(str, shape)),
                bytes=size,
                nearest=float(alone.min()),
                farthest=float(alone.max()),
                neighbours=in_pairs(torus, router_of.reshape(-1, 2), size, rng),
                random=float(np.mean(apart)),
            )


def more(row: Record) -> float:
    """Return how much longer a message takes to the farthest node, as a share."""
    return float(row.farthest / row.nearest - 1)


def ratio(row: Record) -> float:
    """Return how many times as long a message of a random pair takes."""
    return float(row.random / row.neighbours)


COLUMNS: list[Column] = [
    *("torus", "bytes", ("alone, next", lambda row: f"{row.nearest:,.1f}")),
    ("alone, farthest", lambda row: f"{row.farthest:,.1f}"),
    ("more", lambda row: f"{100 * more(row):.1f} %"),
    ("neighbours", lambda row: f"{row.neighbours:,.1f}"),
    ("random", lambda row: f"{row.random:,.1f}"),
    ("ratio", lambda row: f"{ratio(row):.2f}"),
]


def compared(rows: Sequence[Record]) -> str:
    """Return the table of what the paper says and what comes out here."""
    small, large = ({row.bytes: row for row in where(rows, torus=t)} for t in ("8x8x8", "8x8x16"))
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
            f"{ratio(large[SIZES[-1]]):.2f} at 1 MiB",
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
    study.page("Microseconds a message:", table(rows, COLUMNS), compared(rows))
    with study.picture("", 1, 2, figsize=(10, 3.8), layout="constrained") as (_, ((alone, both),)):
        for (torus, own), style in zip(groups(rows, "torus").items(), ("o--", "o-"), strict=True):
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
