"""Memory that the allocator keeps."""

from __future__ import annotations

import ctypes

_MMAP_THRESHOLD = -3  # glibc's number of the option
_LARGE = 1 << 24


def return_large_arrays() -> None:
    """Have arrays of 16 MB and more given back as soon as they are freed.

    By default, once such an array has been freed, glibc takes the next ones up to 32 MB from its
    heaps, of which little comes back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)


def return_memory() -> None:
    """Give back to the system what was freed; some milliseconds.

    Without this, glibc keeps most of it, a heap for every few threads: half of what a large
    instance took, 300 MB and more.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
