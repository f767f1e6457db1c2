"""Compiled kernels: how they are declared, and how they are compiled before anything is solved.

Numba compiles a kernel when it is first called and keeps the machine code on disk. That takes
seconds per kernel, once for an installation, and is no part of a solve. `table.json` lists the
kernels that are called from Python and the types that they are called with, group by group;
`missing` tells, without importing numba, which groups are not compiled yet, and `compile_groups`
compiles them. What few solves need is compiled when one does, while the clock is held
(`compile_late`). A kernel that is called with other types is compiled at that call.
"""

from topoplace.kernels.compiling import (
    compile_for,
    compile_groups,
    compile_late,
    folder_of_kernels,
    groups_of,
    kernel,
    num_cores,
)

__all__ = [
    "compile_for",
    "compile_groups",
    "compile_late",
    "folder_of_kernels",
    "groups_of",
    "kernel",
    "num_cores",
]
