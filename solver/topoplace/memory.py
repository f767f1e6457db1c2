"""Memory that the allocator keeps."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's numbers of the options
_LARGE, _KEPT = 1 << 24, 1 << 26


def return_large_arrays() -> None:
    """Have arrays of 16 MB and more given back as soon as they are freed, and smaller ones kept.

    By default, once such an array has been freed, glibc takes the next ones up to 32 MB from its
    heaps, of which little comes back. And with that alone it gives back what is free at the end of
    a heap from 128 kB on, so that a step of a bundle gets each page anew: a tenth of the time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _KEPT)


def return_memory() -> None:
    """Give back to the system what was freed; some milliseconds.

    Without this, glibc keeps most of it, a heap for every few threads: half of what a large
    instance took, 300 MB and more.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
