"""Draw a job log from the workload of Enos 2014, Table II, in the Standard Workload Format.

``python scripts/draw_log.py --jobs 1000 --load 70 --seed 2014 -o log.swf``, and then
``topoplace replay log.swf --on blue_waters --method best-fit``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from topoplace.snapshot import Snapshot, load_torus, prepare
from topoplace.snapshot.files import write_text
from topoplace.snapshot.workload import load_workload
from topoplace.study.replay.drawn_log import draw_log, swf_text


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a log."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--on", default="blue_waters", help="the machine; jobs of its main class")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--load", type=float, default=70, help="percent of the machine wanted")
    parser.add_argument("--seed", type=int, default=2014)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    machine = load_torus(options.on)
    empty = Snapshot(schema_version="topoplace.snapshot/1", name="empty", machine=machine)
    num_nodes = int(np.count_nonzero(prepare(empty).node_class == 0))
    workload = load_workload()
    jobs = draw_log(
        workload, machine.default_class, options.jobs, num_nodes, options.load, options.seed
    )
    comment = (
        f"{options.jobs} jobs drawn from {workload.name} for {options.on}, "
        f"load {options.load:g} %, seed {options.seed}"
    )
    write_text(options.output, swf_text(jobs, comment))


if __name__ == "__main__":
    main()
