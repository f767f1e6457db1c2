"""The decorator of every compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def kernel(**options: bool | str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function at its first call, or ahead of it.

    Parameters
    ----------
    options
        More options of `numba.njit`.
    """
    import numba  # noqa: PLC0415 - heavy: whoever asks what is missing does without it

    njit: Any = numba.njit
    decorator: Callable[[Callable[..., Any]], Any] = njit(cache=True, nogil=True, **options)
    return decorator
