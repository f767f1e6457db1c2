"""A numpy that tells when 64-bit integers wrap round, for the modules of the checker.

Every sum, product and shift of integer arrays is done again with Python integers of any size.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from topoplace.certify.switches import _kernels

WATCHED = frozenset(
    (np.add, np.subtract, np.multiply, np.left_shift, np.matmul, np.negative, np.absolute)
)


class WrappedError(AssertionError):
    """64-bit integers were added, multiplied or shifted beyond their range."""


class Watched(np.ndarray):
    """An integer array whose arithmetic is held against Python integers."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        plain = [_plain(x) for x in inputs]
        if out is not None:
            kwargs["out"] = tuple(map(_plain, out))
        exact = None
        if ufunc in WATCHED:
            exact = _exactly(ufunc, method, plain, kwargs)
        found = getattr(ufunc, method)(*plain, **kwargs)
        if exact is not None:
            same = plain[0] if method == "at" else found
            if np.asarray(same).dtype == np.int64 and (np.asarray(same) != exact).any():
                raise WrappedError(f"{ufunc.__name__} ({method}) wraps round")
        return out[0] if out is not None else _watched(found)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def _watched(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return value.view(Watched)
    return tuple(map(_watched, value)) if type(value) is tuple else value


def _exactly(ufunc: np.ufunc, method: str, plain: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return what the operation gives in Python integers, None if it is not one of integers."""
    operands = plain[:1] + plain[2:] if method == "at" else plain[:2]
    if method == "reduceat":
        operands = plain[:1]
    if not all(np.asarray(x).dtype.kind in "bi" for x in operands):
        return None
    numbers = [np.array(x, dtype=object) for x in operands]
    if method == "at":
        ufunc.at(numbers[0], plain[1], *numbers[1:])
        return numbers[0]
    left = {key: value for key, value in kwargs.items() if key not in ("out", "dtype")}
    if method == "reduceat":
        return ufunc.reduceat(numbers[0], *plain[1:], **left)
    return getattr(ufunc, method)(*numbers, **left)


class Numpy(types.ModuleType):
    """The functions of numpy, with their integer arrays watched."""

    def __init__(self) -> None:
        super().__init__("numpy")

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, (type, np.ufunc, types.ModuleType)) or not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            return _watched(found(*args, **kwargs))

        return call


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all modules of the checker that are loaded use a numpy that is watched."""
    watched = Numpy()
    for name, module in list(sys.modules.items()):
        if not name.startswith("topoplace.certify"):
            continue
        if getattr(module, "np", None) is np:
            monkeypatch.setattr(module, "np", watched)
        if hasattr(module, "best_plans") and module is not _kernels:
            monkeypatch.setattr(module, "best_plans", _kernels.best_plans.py_func)
