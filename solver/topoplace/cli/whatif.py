"""`topoplace whatif`: what a snapshot would be worth after changes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from topoplace.cli.options import (
    argument,
    flag,
    listed,
    named_numbers,
    option,
    solve_options,
    with_options,
)
from topoplace.cli.output import print_json, say, say_files, shown
from topoplace.cli.shipped_names import methods_like, snapshots_like
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.study.what_if import Scenario


_WEIGHTS = "NAME=N[,NAME=N..] with N from 0"


@with_options(
    snapshot=argument(
        "SNAPSHOT",
        "A snapshot file, the name of a shipped one, or - for stdin.",
        autocompletion=snapshots_like,
    ),
    add_down=option("NODES", "A scenario: these nodes are down, too. All may be repeated."),
    free=option("NODES", "A scenario: these down or service nodes can be used."),
    without_job=option("ID", "A scenario: this running or waiting job is gone."),
    with_request=option("JSON", "A scenario: this request waits, too; its fields, or their file."),
    weights=option("NAME=N[,..]", "A scenario, on tori: other weights of the shape score."),
    interference=option(
        "strict|tolerant|off", "A scenario, on tori: another rule on which jobs may share links."
    ),
    base_interference=option("strict|tolerant|off", "The rule of the base and other scenarios."),
    together=flag("All changes are one scenario.", "--together"),
    worth=option(
        "N",
        "Name N running jobs whose release could gain most, without a search; on tori and meshes "
        "also N routers that are missed most if they go down, and N whose release could gain most.",
    ),
    method=option(
        "NAME", "The placement method; default exact, which proves.", autocompletion=methods_like
    ),
    output=option("FOLDER", "Write the results here, one per scenario.", "-o", "--output"),
)
def whatif(
    snapshot: Path,
    *,
    add_down: list[str] | None = None,
    free: list[str] | None = None,
    without_job: list[str] | None = None,
    with_request: list[str] | None = None,
    weights: list[str] | None = None,
    interference: list[str] | None = None,
    together: bool = False,
    worth: int | None = None,
    base_interference: str = "strict",
    method: str = "exact",
    objective: str | None = None,
    ignore: str = "",
    time_limit: float | None = None,
    seed: int = 0,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Place SNAPSHOT as it is and after changes, side by side; say what each can gain at most."""
    from topoplace.kernels import compile_for
    from topoplace.report.summary import exit_code_of
    from topoplace.report.what_if import table
    from topoplace.snapshot.machines import load_any
    from topoplace.snapshot.state import SnapshotState
    from topoplace.solving.solve import tree_objective
    from topoplace.study.what_if import what_if

    options = solve_options(time_limit, base_interference, seed)
    if worth is not None and worth < 1:
        raise InputError("a number from 1", field="--worth", value=worth)
    changes = [
        *(("add_down", text) for text in add_down or ()),
        *(("free", text) for text in free or ()),
        *(("without_job", text) for text in without_job or ()),
        *(("with_request", _request(text)) for text in with_request or ()),
        *(("weights", named_numbers(text, "--weights", _WEIGHTS)) for text in weights or ()),
        *(("interference", text) for text in interference or ()),
    ]
    if not changes and worth is None:
        raise InputError("changes, or --worth", found="neither")
    state = load_any(snapshot, tree_objective(objective), listed(ignore))
    if base_interference != "strict" and not isinstance(state, SnapshotState):
        expected = "no interference rule but on tori and meshes"
        raise InputError(expected, field="--base-interference", value=base_interference)
    compile_for(state.kind, [method])
    scenarios = [changes] if together and changes else [[change] for change in changes]
    files = _Files(output)
    with shown() as watch:

        def count(done: int, total: int) -> None:
            if watch is not None:
                watch.show(f"running jobs and routers: {done:,} of {total:,}")

        found = what_if(
            state,
            scenarios,
            method,
            replace(options, watch=watch),
            worth=worth is not None,
            keep=files.keep,
            count=count,
        )
    say(table(found, worth))
    say_files({"results": output})
    print_json(found.document())
    raise typer.Exit(exit_code_of(found.scenarios[0].result))


def _request(text: str) -> Any:
    """Return the request of a JSON text, or of the file of one."""
    from topoplace.snapshot.changes import request_of
    from topoplace.snapshot.files import read_bytes

    field = "--with-request"
    try:
        if text.lstrip().startswith("{"):
            return request_of(text)
        field = text
        return request_of(read_bytes(text).decode(errors="replace"))
    except InputError as error:
        raise error.located(field) from None


class _Files:
    """Writes results into a folder, if there is one: ``base.result.json``, and so on."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._names: set[str] = set()
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                expected = f"a folder that can be made ({error.strerror})"
                raise InputError(expected, field="--output", value=str(folder)) from None

    def keep(self, scenario: Scenario) -> None:
        """Write the result of a scenario, under a name that no other one has."""
        from topoplace.snapshot.files import write_document

        if self._folder is None:
            return
        stem = re.sub(r"[^A-Za-z0-9._]+", "-", scenario.name).strip("-")
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem}-{number}"
        self._names.add(name)
        write_document(self._folder / f"{name}.result.json", scenario.result)
