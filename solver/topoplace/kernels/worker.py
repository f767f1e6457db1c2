"""A process that compiles the kernels named on stdin, a line each, and answers each with a line."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from typing import Any


def main() -> None:
    """Compile until stdin ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # nothing but answers goes to stdout
    for line in sys.stdin:
        print(_answer(*json.loads(line)), file=answers, flush=True)


def _answer(module: str, function: str, types: Sequence[Any]) -> str:
    """Compile a kernel, or load it where that has been done; return the seconds it took."""
    start = time.process_time()
    try:
        from topoplace.kernels.types import decode  # noqa: PLC0415 - heavy

        dispatcher = getattr(importlib.import_module(module), function)
        dispatcher.compile(tuple(map(decode, types)))
    except Exception as error:  # its first call fails again, and says so where it is seen
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return f"{time.process_time() - start:.2f}"


if __name__ == "__main__":
    main()
