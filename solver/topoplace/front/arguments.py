"""What the functions of the front door do with options that many of them have."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real

from topoplace.errors import InputError, unknown_name
from topoplace.options import Solve, Watched
from topoplace.result import Interference
from topoplace.solving import Options
from topoplace.solving.outcome import Display, Progress

__all__ = ["MAX_SEED", "Display", "options_of", "require_one", "watched"]

MAX_SEED = 2**31 - 1


def options_of(asked: Solve) -> Options:
    """Return the options of a solve; `InputError` names the argument that is none."""
    time_limit, seed = asked.time_limit, asked.seed
    interference = getattr(asked, "interference", Interference.STRICT)
    if time_limit is not None:
        is_number = isinstance(time_limit, Real) and math.isfinite(time_limit)
        if not is_number or time_limit < 0:
            expected = "a finite number of seconds, 0 or more"
            raise InputError(expected, field="time_limit", value=time_limit)
    if not isinstance(seed, Integral) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"a seed from 0 to {MAX_SEED}", field="seed", value=seed)
    if interference not in list(Interference):
        raise unknown_name(interference, Interference, field="interference")
    thorough = getattr(asked, "thorough", False)
    return Options(time_limit, Interference(interference), seed, thorough)


def require_one(method: str | None, command: str | None) -> None:
    """Raise `InputError` if both a method and a command are given."""
    if method is not None and command is not None:
        raise InputError("either --method or --command", field="--command", found="both")


@contextlib.contextmanager
def watched(options: Options, asked: Watched) -> Iterator[Options]:
    """Yield the options of a solve that is shown, told to a callback, or both."""
    with Display() if asked.display else contextlib.nullcontext() as shown:
        watches = [watch for watch in (shown, asked.callback) if watch is not None]

        def watch(progress: Progress) -> None:
            for each in watches:
                each(progress)

        yield replace(options, watch=watch) if watches else options
