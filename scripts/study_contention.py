"""What hops cost without and with contention: WOCON and WICON of Bhatele 2009, section 3.1.

The model is `topoplace.mapping.contention`, with the figures of Blue Gene/P as they are published.
Writes docs/studies/contention.md, its picture and its figures as CSV.

    python scripts/study_contention.py [--draws N] [--seed N]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study_page import STUDIES, markdown, picture, stamp, write_rows
from topoplace.machine import Torus
from topoplace.mapping.contention import Wormhole, exchange_times
from topoplace.snapshot.files import write_text
from topoplace.types import IntArray

NETWORK = Wormhole(start=3.0, per_hop=0.1, per_byte=1 / 425)
"""Microseconds: a start of 3, 0.1 a hop (3 to the next node, 10 to the farthest of 68 hops), and
links of 425 million bytes per second and direction."""

CORES = 4
SHAPES = ((8, 8, 8), (8, 8, 16))
SIZES = (4, 64, 512, 2_048, 16_384, 131_072, 1_048_576)
ROUNDS = 3


@dataclass(frozen=True)
class Row:
    """Microseconds of a message of one size on one torus, and what hops add to them.

    `nearest` and `farthest` are alone on the machine; `neighbours` and `random` the mean where
    all ranks talk at once, in pairs of neighbours and in random pairs.
    """

    torus: str
    bytes: int
    nearest: float
    farthest: float
    neighbours: float
    random: float

    @property
    def alone(self) -> float:
        """How much longer a message takes to the farthest node, as a share."""
        return self.farthest / self.nearest - 1

    @property
    def ratio(self) -> float:
        """How many times as long a message of a random pair takes."""
        return self.random / self.neighbours


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


def study(draws: int, seed: int) -> list[Row]:
    """Return a row for every torus and size."""
    rows = []
    for shape in SHAPES:
        torus = Torus(shape)
        others = np.arange(1, torus.num_routers)
        # one rank a core, node after node and then the next core: ranks 2k and 2k + 1 are one hop
        # apart, along the dimension that counts fastest
        router_of = np.tile(np.arange(torus.num_routers), CORES)
        pairs = router_of.reshape(-1, 2)
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(router_of).reshape(-1, 2) for _ in range(draws)]
        for size in SIZES:
            alone = NETWORK.alone(torus, np.zeros_like(others), others, size)
            apart = [in_pairs(torus, chosen, size, rng) for chosen in drawn]
            rows.append(
                Row(
                    "x".join(map(str, shape)),
                    size,
                    float(alone.min()),
                    float(alone.max()),
                    in_pairs(torus, pairs, size, rng),
                    float(np.mean(apart)),
                )
            )
    return rows


TEXT = """# What hops cost, without and with contention

{stamp}

Bhatele 2009 (section 3.1) measured message latencies on Blue Gene/P and the Cray XT3 with two
benchmarks. *WOCON*: one node sends to every other in turn, so that no other message is in the way.
*WICON*: all ranks, one on every core, are grouped into pairs that send a message to and fro in a
loop, all at once; in one mode partners are one hop apart, in the other they are random. This page
has both by a model ([`topoplace.mapping.contention`](../reference/api/mapping.rst)): a message pays
for its start, for every hop and for its bytes, and messages over one link share its bandwidth
max-min fairly. Its figures are those published of Blue Gene/P: a start of 3 microseconds, 0.1 for a
hop, links of 425 MB/s in each direction, four cores a node. Nothing was fitted to the paper's
curves. Pairs begin at random times, as the pairs of a loop do not keep step; the last {rounds} of
{all_rounds} rounds count. Random pairs: mean of {draws} draw(s).

![Latency by message size](contention.png)

Microseconds a message:

{table}

{compared}

**What that means for mappings.** Alone, a message of a megabyte takes nearly the same time
over any distance. Together, messages take bandwidth from each other on every link of their
routes, so the important figures are bytes times hops (hop-bytes) and the largest link load.
`topoplace map` minimises the first and reports the second. No exchange ends before the most
loaded link has carried its bytes, at any rates.

**What the model leaves out.** Packets and buffers: with full buffers a blocked message holds
links it does not use, and real machines do worse than max-min fair. Memory and the injection of a
node, which bound the XT3.
"""

HEAD = ("torus", "bytes", "alone, next", "alone, farthest", "more", "neighbours", "random", "ratio")


def report(rows: Sequence[Row], draws: int, stamped: str) -> str:
    """Return the page."""
    table = markdown(
        HEAD,
        1,
        [
            [
                row.torus,
                f"{row.bytes:,}",
                f"{row.nearest:,.1f}",
                f"{row.farthest:,.1f}",
                f"{100 * row.alone:.1f} %",
                f"{row.neighbours:,.1f}",
                f"{row.random:,.1f}",
                f"{row.ratio:.2f}",
            ]
            for row in rows
        ],
    )
    large = {row.bytes: row for row in rows if row.torus == "8x8x16"}
    small = {row.bytes: row for row in rows if row.torus == "8x8x8"}
    sizes, most = (4, 2_048, 16_384), SIZES[-1]
    apart = [f"{100 * large[size].alone:.0f} % at {size:,} bytes" for size in sizes]
    compared = [
        [
            "alone, hops matter for small messages",
            "nearest to farthest of 1,024 nodes 30 % at 4 bytes, 10 % at 8 KB, 6 % at 16 KB",
            ", ".join(apart),
        ],
        [
            "and more on a larger machine",
            "the difference increases with the diameter",
            f"at 4 bytes {100 * small[4].alone:.0f} % on 8x8x8, "
            f"{100 * large[4].alone:.0f} % on 8x8x16",
        ],
        [
            "together, random pairs take longer than neighbours",
            "more so for larger messages; at 16 KB on the XT3 nearly twice as long",
            f"{large[4].ratio:.2f} times at 4 bytes, {large[16_384].ratio:.2f} at 16 KB, "
            f"{large[most].ratio:.2f} at 1 MiB",
        ],
        [
            "and more on a larger machine",
            "latencies of random pairs grow with the diameter",
            f"at 1 MiB {small[most].ratio:.2f} times on 8x8x8, {large[most].ratio:.2f} on 8x8x16",
        ],
    ]
    return TEXT.format(
        stamp=stamped,
        draws=draws,
        rounds=ROUNDS - 1,
        all_rounds=ROUNDS,
        table=table,
        compared=markdown(("", "measured in the paper", "here"), 3, compared),
    )


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Draw latencies over message sizes: alone on the left, all at once on the right."""
    with picture(path, 1, 2, figsize=(10, 3.8), layout="constrained") as (_, panels):
        alone, together = panels[0]
        for torus, style in zip(("8x8x8", "8x8x16"), ("--", "-"), strict=True):
            mine = [row for row in rows if row.torus == torus]
            sizes = [row.bytes for row in mine]
            alone.plot(sizes, [100 * row.alone for row in mine], style, marker="o", label=torus)
            together.plot(sizes, [row.ratio for row in mine], style, marker="o", label=torus)
        alone.set_title("alone: farthest node over nearest")
        alone.set_ylabel("more time, %")
        together.set_title("all at once: random pairs over neighbours")
        together.set_ylabel("times as long")
        for panel in (alone, together):
            panel.set_xscale("log", base=4)
            panel.set_xlabel("bytes of a message")
            panel.legend()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its picture and its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=2009)
    parser.add_argument("-o", "--output", type=Path, default=STUDIES)
    options = parser.parse_args(arguments)
    rows = study(options.draws, options.seed)
    page = report(rows, options.draws, stamp("study_contention.py", arguments))
    write_text(options.output / "contention.md", page)
    write_rows(options.output / "contention.csv", rows)
    draw(options.output / "contention.png", rows)
    print(page)


if __name__ == "__main__":
    main()
