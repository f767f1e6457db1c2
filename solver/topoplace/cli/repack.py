"""`topoplace repack`: which running jobs move so that requests start, or most room is made."""

from __future__ import annotations

from pathlib import Path

from topoplace import front
from topoplace.cli.options import (
    argument,
    listed,
    named_numbers,
    option,
    require_writable,
    with_options,
)
from topoplace.cli.output import end_with, shown
from topoplace.cli.shipped_names import snapshots_like
from topoplace.errors import InputError


@with_options(
    snapshot=argument(
        "SNAPSHOT",
        "A snapshot file of a torus or mesh, the name of a shipped one, or - for stdin.",
        autocompletion=snapshots_like,
    ),
    start=option("ID[,ID..]", "Requests of the queue that have to start."),
    defragment=option(
        "K", "Instead, free the most space by moves that cost 0, 1, .. K in all: the curve."
    ),
    room=option(
        "queue|prism",
        "--defragment: room for requests that wait, by nodes times priority (default if there are "
        "any), or for one job on the largest prism.",
    ),
    node_class=option("NAME", "--room prism: class of the nodes; default that of the machine."),
    fixed=option("ID[,ID..]", "Running jobs that may not move."),
    cost=option("ID=N[,ID=N..]", "What it costs to move a running job; default 1."),
    keep_shape=option(
        "as-good|same|any",
        "Shapes for jobs that move: of no less shape score, of the same extents, any.",
    ),
    output=option("RESULT", "Write the result file here.", "-o", "--output"),
    png=option("F", "Draw the machine before and after, or the curve, into a PNG file."),
)
def repack(
    snapshot: Path,
    *,
    start: str = "",
    defragment: int | None = None,
    room: str | None = None,
    node_class: str | None = None,
    fixed: str = "",
    cost: str = "",
    keep_shape: str = "as-good",
    time_limit: float | None = None,
    interference: str = "strict",
    ignore: str = "",
    seed: int = 0,
    output: Path | None = None,
    png: Path | None = None,
    as_json: bool = False,
) -> None:
    """Find the fewest running jobs of SNAPSHOT to move so that requests start, and prove it."""
    require_writable(snapshot, output=output, png=png)
    if bool(start) == (defragment is not None):
        raise InputError("--start or --defragment", found="both" if start else "neither")
    with shown() as watch:
        found = front.several.repack(
            snapshot,
            listed(start),
            defragment=defragment,
            room=room,
            node_class=node_class,
            fixed=listed(fixed),
            costs=named_numbers(cost, "--cost", "ID=N with N from 1") if cost else None,
            keep_shape=keep_shape,
            time_limit=time_limit,
            interference=interference,
            ignore=listed(ignore),
            seed=seed,
            callback=watch,
        )
    front.writing.write(found, output=output, png=png)
    end_with(found, {"result" if defragment is None else "frontier": output, "picture": png})
