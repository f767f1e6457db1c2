"""Memory that the allocator keeps."""

from __future__ import annotations

import ctypes


def return_memory() -> None:
    """Give back to the system what was freed; some milliseconds.

    Without this, glibc keeps most of it, a heap for every few threads: half of what a large
    instance took, 300 MB and more.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
