"""What the functions of the front door do with arguments that many of them have."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real

from topoplace.errors import InputError, unknown_name
from topoplace.result import Interference
from topoplace.solving import Options
from topoplace.solving.outcome import Display, Progress, Watch

__all__ = ["MAX_SEED", "Display", "names_of", "options_of", "watched"]

MAX_SEED = 2**31 - 1


def options_of(time_limit: float | None, seed: int, interference: str = "strict") -> Options:
    """Return the options of a solve; `InputError` names the argument that is none."""
    if time_limit is not None:
        is_number = isinstance(time_limit, Real) and math.isfinite(time_limit)
        if not is_number or time_limit < 0:
            expected = "a finite number of seconds, 0 or more"
            raise InputError(expected, field="time_limit", value=time_limit)
    if not isinstance(seed, Integral) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"a seed from 0 to {MAX_SEED}", field="seed", value=seed)
    if interference not in list(Interference):
        raise unknown_name(interference, Interference, field="interference")
    return Options(time_limit, Interference(interference), seed)


def names_of(names: Sequence[str]) -> Sequence[str]:
    """Return names as a list: a text is one name, and not its letters."""
    return [names] if isinstance(names, str) else names


@contextlib.contextmanager
def watched(options: Options, display: bool, callback: Watch | None) -> Iterator[Options]:
    """Yield the options of a solve that is shown, told to a callback, or both."""
    with Display() if display else contextlib.nullcontext() as shown:
        watches = [watch for watch in (shown, callback) if watch is not None]

        def watch(progress: Progress) -> None:
            for each in watches:
                each(progress)

        yield replace(options, watch=watch) if watches else options
