"""Virtual grids: their options, and `topoplace layouts`, which lists their layouts."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from topoplace import front
from topoplace.cli.options import flag, in_panel, option, with_options
from topoplace.cli.output import print_json, say
from topoplace.cli.shipped_names import machines_like
from topoplace.errors import InputError, number_of, unknown_name

if TYPE_CHECKING:
    from topoplace.snapshot.schema import GridApplication

_EXTENTS = re.compile(r"[1-9]\d{0,6}(?:x[1-9]\d{0,6})*")
_LETTERS = "xyzt"
_BYTES = re.compile(r"\d{1,15}")

GRID = in_panel(
    "Application",
    periodic=option("xyz", "Letters of the periodic dimensions of the grid."),
    message_bytes=option(
        "8,8,8", "Bytes per message in each dimension; 8/4 for different directions.", "--bytes"
    ),
    stencil=option("nearest|full", "Neighbours: along axes only, or diagonal too (9, 27 points)."),
    diagonal_bytes=option("1,1", "Bytes to neighbours that differ in 2, 3, ... dimensions (full)."),
)
"""The options of a grid besides its extents."""


def parse_extents(text: str, field: str) -> tuple[int, ...]:
    """Return the numbers of a text such as ``32x32x32``; an `InputError` names `field`."""
    if not _EXTENTS.fullmatch(text):
        raise InputError("positive sizes such as 32x32x32", field=field, value=text)
    return tuple(map(int, text.split("x")))


def grid_application(
    extents: str,
    periodic: str = "",
    message_bytes: str | None = None,
    stencil: str = "nearest",
    diagonal_bytes: str | None = None,
) -> GridApplication:
    """Return the application that the grid options describe; an `InputError` names the option.

    With the stencil ``full``, diagonal neighbours get one byte without `diagonal_bytes`.
    """
    make, most = front.mapping.GridApplication, front.mapping.MAX_TASKS
    shape = parse_extents(extents, "--grid")
    if len(shape) > len(_LETTERS):
        raise InputError(
            f"at most {number_of(len(_LETTERS), 'dimension')}", field="--grid", value=extents
        )
    if math.prod(shape) > most:
        raise InputError(f"at most {number_of(most, 'task')}", field="--grid", value=extents)
    letters = _LETTERS[: len(shape)]
    if len(set(periodic)) != len(periodic) or not set(periodic) <= set(letters):
        expected = f"some of the letters {letters}, each once"
        raise InputError(expected, field="--periodic", value=periodic)
    if stencil not in ("nearest", "full"):
        raise unknown_name(stencil, ("nearest", "full"), field="--stencil")
    diagonals = len(shape) - 1 if stencil == "full" else 0
    sizes = [1] * diagonals
    if diagonal_bytes is not None:
        sizes = [_parse_count(part, "--diagonal-bytes") for part in diagonal_bytes.split(",")]
        if len(sizes) != diagonals:
            expected = (
                f"{number_of(diagonals, 'number')} with --stencil {stencil} in "
                f"{number_of(len(shape), 'dimension')}"
            )
            raise InputError(expected, field="--diagonal-bytes", value=diagonal_bytes)
    return make(
        shape=list(shape),
        periodic=[letter in periodic for letter in letters],
        bytes=_parse_bytes(message_bytes or "1", len(shape)),
        stencil="full" if stencil == "full" else "nearest",
        diagonal_bytes=sizes,
    )


def _parse_bytes(text: str, num_dims: int) -> list[list[int]]:
    """Return bytes up and down per dimension: ``8/4,8,8``, or one number for all of them."""
    parts = text.split(",")
    if len(parts) == 1:
        parts *= num_dims
    if len(parts) != num_dims:
        raise InputError(
            f"{number_of(num_dims, 'number')} of bytes, one for each dimension",
            field="--bytes",
            value=text,
        )
    found = []
    for part in parts:
        ways = [_parse_count(way, "--bytes") for way in part.split("/")]
        if len(ways) > 2:
            raise InputError("one number, or two such as 8/4", field="--bytes", value=part)
        found.append([ways[0], ways[-1]])
    return found


def _parse_count(text: str, field: str) -> int:
    if not _BYTES.fullmatch(text):
        raise InputError("bytes, 0 or more, such as 8", field=field, value=text)
    return int(text)


@with_options(
    grid=option("32x32x32", "Tasks per dimension."),
    tasks_per_node=option("N", "Most tasks on a node."),
    within=option("12x8x12", "Region, in routers."),
    on=option(
        "MACHINE", "A machine: a file, a shipped name or torus:4x4x4.", autocompletion=machines_like
    ),
    balanced=flag("Only layouts with equal cells.", "--balanced"),
    stagger=flag("List staggered folded layouts too.", "--stagger"),
    limit=option("N", "List at most N."),
    **GRID,
)
def layouts(
    *,
    grid: str,
    tasks_per_node: int,
    within: str,
    on: str = "blue_waters",
    periodic: str = "",
    message_bytes: str | None = None,
    stencil: str = "nearest",
    diagonal_bytes: str | None = None,
    balanced: bool = False,
    stagger: bool = False,
    limit: int = 20,
    as_json: bool = False,
) -> None:
    """List every admissible layout of a virtual grid in a region, best first."""
    for name, number in (("--tasks-per-node", tasks_per_node), ("--limit", limit)):
        if number < 1:
            raise InputError("a positive integer", field=name, value=number)
    found = front.layouts.layouts(
        grid_application(grid, periodic, message_bytes, stencil, diagonal_bytes),
        on,
        tasks_per_node,
        parse_extents(within, "--within"),
        balanced=balanced,
        stagger=stagger,
    )
    if as_json:
        print_json(found.document(limit))
    elif not found.ranked:
        say(f"no admissible layout of {grid} in {within}")
    else:
        say(found.table(limit))
        count = number_of(len(found.ranked), "layout")
        say(f"{min(limit, len(found.ranked))} of {count}, best first")
        say(f"geometry: {found.geometry}")
