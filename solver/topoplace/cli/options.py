"""The options that several commands share, and their checks."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.errors import InputError, unknown_name

if TYPE_CHECKING:
    from topoplace.solving import Options

MAX_SEED = 2**31 - 1

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout; talk goes to stderr.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Seconds per solve; the method exact takes at most 300 without it."
    ),
]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough",
        help="On tori: method exact spends what is left of the time limit on the later levels.",
    ),
]
InterferenceRule = Annotated[
    str,
    typer.Option(
        metavar="strict|tolerant|off",
        help="Which jobs may share links: none, tolerant ones with each other, all.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of whatever a method draws at random.")]
Picture = Annotated[
    Path | None, typer.Option(metavar="F", help="Draw the machine and its jobs into a PNG file.")
]


def solve_options(
    time_limit: float | None, interference: str, seed: int, *, thorough: bool = False
) -> Options:
    """Return checked solve options.

    Raises
    ------
    InputError
        Naming the option that is out of range.
    """
    from topoplace.result import Interference  # noqa: PLC0415 - heavy
    from topoplace.solving import Options  # noqa: PLC0415 - heavy

    require_time_limit(time_limit)
    if interference not in list(Interference):
        raise unknown_name(interference, Interference, field="--interference")
    require_seed(seed)
    return Options(time_limit, Interference(interference), seed, thorough)


def require_time_limit(time_limit: float | None) -> None:
    """Raise `InputError` unless a time limit is absent or a number of seconds."""
    if time_limit is not None and not (math.isfinite(time_limit) and time_limit >= 0):
        raise InputError(
            "a finite number of seconds, 0 or more", field="--time-limit", value=time_limit
        )


def require_seed(seed: int) -> None:
    """Raise `InputError` unless a seed is in range."""
    if not 0 <= seed <= MAX_SEED:
        raise InputError(f"a seed from 0 to {MAX_SEED}", field="--seed", value=seed)


def require_writable(path: Path | None, option: str) -> None:
    """Raise `InputError` unless a file can be written there; called before long work starts."""
    if path is None:
        return
    if path.is_dir():
        raise InputError("a file", field=option, found=f"a folder, {str(path)!r}")
    if path.exists() and not path.is_file():
        return  # a pipe or a device
    try:
        # Trying it is the only sure test: permission bits do not bind root, nor rule file systems.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"a file in a folder that can be written ({error.strerror})",
            field=option,
            value=str(path),
        ) from None
