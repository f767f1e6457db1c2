"""A process that compiles the kernels named on stdin, a line each, and answers each with a line.

It reads all of them first. A kernel that none of them names is called by kernels alone: with recent
releases of Numba it becomes part of their machine code, and has none of its own.

A task is the list of its number, the module, the function and its types. The answer is an object:
that number, the seconds that it took, the files where the kernel is kept (none, and perhaps `why`,
if it is not), and the error of a kernel that cannot be compiled.

Types of arguments are JSON: ``"int64"``, ``"float64:2C"``, and lists for tuples. An array is its
element type, number of dimensions and layout, with an ``r`` after it if it may only be read. A
tuple is a list that begins with the name of its class, empty if it has no names.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from topoplace.kernels import compiling

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
    module, _, name = text[0].rpartition(".")
    named = getattr(importlib.import_module(module), name) if module else None
    return types.BaseTuple.from_types(tuple(map(decode, text[1:])), named)


_LINKS = (0, 68)
"""The first release whose libraries of parts are known to do as `_Library` says."""

_GARBAGE = (5_000_000, 10, 1000)
"""How seldom Python looks for garbage, mostly never: as it does by itself, a tenth of the time went
there. A process takes up to 1 GB."""


class _Library(JITCodeLibrary):
    """The code of a function; machine code is made only of what Python calls.

    Numba optimises every function together with all that it calls, and makes machine code of both,
    before it does the same for each of its callers: that was a fifth to a third of the time.
    """

    def get_pointer_to_function(self, name: str) -> Any:
        """Return where a function is that Python calls, 0 if there is none of that name."""
        inherited: Any = super()  # without annotations
        if not self._finalized:
            try:
                if self._final_module.get_function(name).is_declaration:
                    return 0
            except NameError:  # it has none
                return 0
            inherited.finalize()
        return inherited.get_pointer_to_function(name)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Simplify functions; the rest is done when they are optimised with their callers.

        Numba does all that it can, also for functions that are only declared.
        """
        codegen: Any = self._codegen
        ll_module.data_layout = codegen._data_layout
        passes, builder = codegen._function_pass_manager(opt=1)
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def finalize(self) -> None:
        """Link the function with what it calls, for a caller that will be optimised as a whole."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def _leave_parts_to_callers() -> None:
    """Make no machine code of functions that Python does not call."""
    context: Any = cpu_target.target_context
    rtsys.initialize(context)  # it runs
    codegen = context.codegen()
    set_env = codegen.set_env

    def set_env_of_machine_code(name: str, env: Any) -> None:
        if codegen._engine.is_symbol_defined(name):
            set_env(name, env)

    codegen.set_env = set_env_of_machine_code
    codegen._library_class = _Library
    lower: Any = Lower
    lower.create_cfunc_wrapper = lambda _: None  # for callbacks from C
    flags: Any = Flags
    defaults = {name: option.default for name, option in flags.options.items()}
    flags.values = lambda own: {**defaults, **own._values}  # as numba's, but fast


def main() -> None:
    """Compile what stdin names."""
    answers, sys.stdout = sys.stdout, sys.stderr  # nothing but answers goes to stdout
    tasks = [json.loads(line) for line in sys.stdin]
    if numba.version_info.short >= _LINKS:
        compiling.ahead = {(module, function) for _, module, function, _ in tasks}
        _leave_parts_to_callers()
    gc.set_threshold(*_GARBAGE)
    for task in tasks:
        answers.write(_answer(*task) + "\n")  # in one piece: workers share the pipe
        answers.flush()


def _answer(number: int, module: str, function: str, kinds: Sequence[Any]) -> str:
    """Compile a kernel, or load it where that has been done."""
    start = time.process_time()
    files: list[str] = []
    told = None
    compiling.not_kept.clear()
    try:
        dispatcher = getattr(importlib.import_module(module), function)
        own = tuple(map(decode, kinds))
        dispatcher.compile(own)
        files = _files(dispatcher, own)
    except Exception as error:  # its first call fails again, and says so where it is seen
        told = f"{type(error).__name__}: {error}"
    seconds = round(time.process_time() - start, 2)
    why = compiling.not_kept[0] if compiling.not_kept else None
    return json.dumps(
        {"number": number, "seconds": seconds, "files": files, "why": why, "error": told}
    )


def _files(dispatcher: Any, kinds: tuple[Any, ...]) -> list[str]:
    """Return the index and the file of a kernel for some types, if they are there."""
    cache = dispatcher._cache
    if not hasattr(cache, "_cache_file"):
        return []
    file, key = cache._cache_file, cache._index_key(kinds, dispatcher.targetctx.codegen())
    name = file._load_index().get(key)
    paths = [] if name is None else [file._index_path, file._data_path(name)]
    return paths if all(map(os.path.exists, paths)) else []


if __name__ == "__main__":
    main()
