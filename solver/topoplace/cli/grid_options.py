"""The options that describe a virtual grid, and their checks."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.errors import InputError, unknown_name

if TYPE_CHECKING:
    from topoplace.snapshot.schema import GridApplication

_EXTENTS = re.compile(r"[1-9]\d{0,6}(?:x[1-9]\d{0,6})*")
_LETTERS = "xyzt"
_BYTES = re.compile(r"\d{1,15}")

Periodic = Annotated[
    str, typer.Option(metavar="xyz", help="Letters of the periodic dimensions of the grid.")
]
MessageBytes = Annotated[
    str | None,
    typer.Option(
        "--bytes",
        metavar="8,8,8",
        help="Bytes per message in each dimension; 8/4 for different directions.",
    ),
]
Stencil = Annotated[
    str, typer.Option(metavar="nearest|full", help="Neighbours: along axes only, or diagonal too.")
]
DiagonalBytes = Annotated[
    str | None,
    typer.Option(
        metavar="1,1", help="Bytes to neighbours that differ in 2, 3, ... dimensions (full)."
    ),
]


def parse_extents(text: str, field: str) -> tuple[int, ...]:
    """Return the numbers of a text such as ``32x32x32``.

    Raises
    ------
    InputError
        Naming `field`, if the text is malformed.
    """
    if not _EXTENTS.fullmatch(text):
        raise InputError("positive sizes such as 32x32x32", field=field, value=text)
    return tuple(map(int, text.split("x")))


def parse_periodic(text: str, num_dims: int, field: str = "--periodic") -> list[bool]:
    """Return per dimension whether its letter (x, y, z, t) is in the text."""
    letters = _LETTERS[:num_dims]
    if len(set(text)) != len(text) or not set(text) <= set(letters):
        raise InputError(f"some of the letters {letters}, each once", field=field, value=text)
    return [letter in text for letter in letters]


def parse_bytes(text: str | None, num_dims: int, field: str = "--bytes") -> list[list[int]]:
    """Return bytes in the positive and the negative direction per dimension.

    ``8/4,8,8`` sends 8 up and 4 down in the first dimension; one number alone stands for all
    dimensions, and None for one byte everywhere.
    """
    parts = (text or "1").split(",")
    if len(parts) == 1:
        parts *= num_dims
    if len(parts) != num_dims:
        raise InputError(f"bytes for each of the {num_dims} dimensions", field=field, value=text)
    found = []
    for part in parts:
        ways = part.split("/")
        found.append([_parse_count(way, field) for way in (ways * 2 if len(ways) == 1 else ways)])
        if len(found[-1]) != 2:
            raise InputError("one number, or two such as 8/4", field=field, value=part)
    return found


def grid_application(
    extents: str,
    periodic: str = "",
    message_bytes: str | None = None,
    stencil: str = "nearest",
    diagonal_bytes: str | None = None,
) -> GridApplication:
    """Return the application that the grid options describe.

    With the stencil ``full``, diagonal neighbours get one byte unless `diagonal_bytes` says
    otherwise.

    Raises
    ------
    InputError
        Naming the option that cannot be used.
    """
    from topoplace.snapshot.schema import MAX_TASKS, GridApplication  # noqa: PLC0415 - heavy

    shape = parse_extents(extents, "--grid")
    if len(shape) > len(_LETTERS):
        raise InputError(f"at most {len(_LETTERS)} dimensions", field="--grid", value=extents)
    if math.prod(shape) > MAX_TASKS:
        raise InputError(f"at most {MAX_TASKS} tasks", field="--grid", value=extents)
    if stencil not in ("nearest", "full"):
        raise unknown_name(stencil, ("nearest", "full"), field="--stencil")
    diagonals = len(shape) - 1 if stencil == "full" else 0
    sizes = [1] * diagonals
    if diagonal_bytes is not None:
        sizes = [_parse_count(part, "--diagonal-bytes") for part in diagonal_bytes.split(",")]
        if len(sizes) != diagonals:
            raise InputError(
                f"{diagonals} numbers with --stencil {stencil} in {len(shape)} dimensions",
                field="--diagonal-bytes",
                value=diagonal_bytes,
            )
    return GridApplication(
        shape=list(shape),
        periodic=parse_periodic(periodic, len(shape)),
        bytes=parse_bytes(message_bytes, len(shape)),
        stencil="full" if stencil == "full" else "nearest",
        diagonal_bytes=sizes,
    )


def _parse_count(text: str, field: str) -> int:
    if not _BYTES.fullmatch(text):
        raise InputError("bytes, 0 or more, such as 8", field=field, value=text)
    return int(text)
