"""`topoplace warmup`: compile the kernels ahead."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from topoplace.cli.options import Json
from topoplace.cli.output import print_json, say
from topoplace.errors import unknown_name

PROBLEMS = ("placement", "allocation", "mapping")


def warmup(
    problems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROBLEM...", help=f"For which problems: {', '.join(PROBLEMS)}; default all."
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Compile ahead what the solvers run; the first solve that needs it would do it otherwise."""
    from topoplace.kernels import PROBLEMS as GROUPS  # noqa: PLC0415 - heavy
    from topoplace.kernels.ahead import compile_groups  # noqa: PLC0415 - heavy

    chosen = problems or PROBLEMS
    for problem in chosen:
        if problem not in PROBLEMS:
            raise unknown_name(problem, PROBLEMS, field="PROBLEM")
    began = time.perf_counter()
    num = compile_groups(group for problem in chosen for group in GROUPS[problem])
    seconds = time.perf_counter() - began
    text = f"{num} kernels compiled, {seconds:.1f} s" if num else "all kernels are compiled"
    say(text, as_json=as_json)
    if as_json:
        document = {"schema": "topoplace.warmup/1", "kernels": num, "seconds": round(seconds, 3)}
        print_json(document)
