"""Types of arguments as JSON: ``"int64"``, ``"float64:2C"``, and lists for tuples.

An array is its element type, number of dimensions and layout, with an ``r`` after it if it may only
be read. A tuple is a list that begins with the name of its class, empty if it has no names.
"""

from __future__ import annotations

import importlib
from typing import Any

import numba
import numpy as np

types: Any = numba.types  # annotated in some releases of numba only


def encode(kind: Any) -> Any:
    """Return the JSON of a numba type."""
    if isinstance(kind, types.Array):
        return f"{kind.dtype}:{kind.ndim}{kind.layout}{'' if kind.mutable else 'r'}"
    if isinstance(kind, types.BaseTuple):
        named = getattr(kind, "instance_class", tuple)
        name = "" if named is tuple else f"{named.__module__}.{named.__qualname__}"
        return [name, *map(encode, kind.types)]
    return str(kind)


def decode(text: Any) -> Any:
    """Return the numba type that `encode` wrote."""
    if isinstance(text, str):
        element, _, form = text.partition(":")
        scalar = numba.from_dtype(np.dtype(element))
        if not form:
            return scalar
        return types.Array(scalar, int(form[0]), form[1], readonly=form.endswith("r"))
    name, *parts = text
    kinds = tuple(map(decode, parts))
    return types.BaseTuple.from_types(kinds, _class_of(name) if name else None)


def _class_of(name: str) -> type:
    module, _, attribute = name.rpartition(".")
    found: type = getattr(importlib.import_module(module), attribute)
    return found
