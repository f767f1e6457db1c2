"""`topoplace whatif`: what a snapshot would be worth after changes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from topoplace import front
from topoplace.cli.options import (
    argument,
    flag,
    listed,
    named_numbers,
    option,
    require_folder,
    with_options,
)
from topoplace.cli.output import print_json, say, say_files, shown
from topoplace.cli.shipped_names import methods_like, snapshots_like
from topoplace.errors import InputError, blamed_on

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
    require_folder(output=output)
    names: Counter[str] = Counter()

    def keep(scenario: Scenario) -> None:
        """Write the result of a scenario, under a name that no other one has."""
        stem = re.sub(r"[^A-Za-z0-9._]+", "-", scenario.name).strip("-")
        names[stem] += 1
        name = stem if names[stem] == 1 else f"{stem}-{names[stem]}"
        if output is not None:
            front.writing.write(scenario.result, output=output / f"{name}.result.json")

    with shown() as watch:

        def count(done: int, total: int) -> None:
            if watch is not None:
                watch.show(f"running jobs and routers: {done:,} of {total:,}")

        found = front.studies.whatif(
            snapshot,
            [changes] if together and changes else [[change] for change in changes],
            method,
            worth=worth is not None,
            time_limit=time_limit,
            interference=base_interference,
            objective=objective,
            ignore=listed(ignore),
            seed=seed,
            callback=watch,
            keep=keep,
            count=count,
        )
    say(front.writing.text_of(found, worth))
    say_files({"results": output})
    print_json(found.document())
    raise typer.Exit(front.writing.exit_code_of(found.scenarios[0].result))


def _request(text: str) -> Any:
    """Return the request of a JSON text, or of the file of one."""
    field = "--with-request"
    with blamed_on(field):
        if text.lstrip().startswith("{"):
            return front.documents.request_of(text)
        field = text
        return front.documents.request_of(Path(text))
