"""The commands about one queue: `topoplace place`, `repack` and `whatif`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from topoplace import front, options
from topoplace.cli.options import command, require_folder, require_writable
from topoplace.cli.output import end_with, print_json, say, say_files, shown, tell_trials
from topoplace.errors import InputError, blamed_on, refuse
from topoplace.options import again, flag, named_numbers, option

if TYPE_CHECKING:
    from topoplace.study.external.trial import Trial
    from topoplace.study.what_if import Scenario


@dataclass(frozen=True, kw_only=True)
class PlaceFiles:
    """What `topoplace place` writes."""

    output: Path | None = option("RESULT", "Write the result file here.", "-o", "--output")
    png: Path | None = option("F", "Draw the machine and its jobs into a PNG file.")
    hostlist: Path | None = option(
        "F", "Write a line per request that starts: its name, its nodes."
    )
    csv: Path | None = option(
        "F",
        "Write what starts, and why the rest waits, as CSV: request, nodes, prism, hosts, cost, "
        "score, waits.",
    )
    rank_files: Path | None = option(
        "DIR", "Write the mapping of every job here, as DIR/REQUEST.csv."
    )
    stderr: Path | None = option("F", "Keep what allocators of your own say here.")


@dataclass(frozen=True, kw_only=True)
class Several:
    """What `topoplace place` finds instead of one placement."""

    pareto: Sequence[str] | None = again(options.PARETO)
    most: int | None = again(options.MOST)
    distinct: str | None = again(options.DISTINCT)
    levels: Sequence[str] | None = again(options.LEVELS)


@command
def place(asked: options.Place, several: Several, files: PlaceFiles) -> None:
    """Place the queue of SNAPSHOT on its machine and prove how good the answer is."""
    mapped = (asked.objective or "").replace(" ", "") == "nodes,hop-bytes"
    if not mapped:
        refuse("--objective nodes,hop-bytes with this option", rank_files=files.rank_files)
    written = {name: path for name, path in vars(files).items() if name != "rank_files"}
    require_writable(asked.instance, **written)
    front.documents.require_one(asked.method, asked.command)
    del written["stderr"]
    label = "result"
    if several.pareto is None and several.most is None:
        refuse("--all with it", distinct=several.distinct)
        if several.levels:  # labels of nodes, where no Topology says what the levels are
            labelled = f"{asked.instance}:{','.join(several.levels)}"
            asked = replace(asked, instance=Path(labelled))
        trials: list[Trial] = []
        with shown() as watch:
            try:
                asked = replace(asked, tried=trials.append, callback=watch)
                found: Any = front.placing.place(**vars(asked))
            finally:
                for trial in trials:
                    tell_trials([trial], files.stderr)
                    if trial.refusal is not None:
                        print_json(trial.refusal.document)
    else:
        only = "--all" if several.pareto is None else "--pareto"
        refuse(
            f"no other than -o and --png with {only}",
            method=asked.method, command=asked.command, set=asked.required, order=asked.order,
            hostlist=files.hostlist, csv=files.csv, objective=asked.objective if mapped else None,
            all=None if several.pareto is None else several.most,
        )  # fmt: skip
        with shown() as watch:
            own = [of.name for of, _ in options.declared(options.Placing)]
            shared = {name: getattr(asked, name) for name in own} | {"callback": watch}
            if several.pareto is not None:
                label = "frontier"
                found = front.trading.frontier(levels=several.pareto, **shared)
            else:
                label, levels = "optima", several.levels or ()
                shared |= {"levels": levels, "distinct": several.distinct}
                found = front.trading.optima(most=several.most or 0, **shared)
    front.writing.write(found, **written, rank_files=files.rank_files)
    names = {"picture": "png", "host lists": "hostlist", "csv": "csv", "stderr": "stderr"}
    said = {told: getattr(files, name) for told, name in names.items()}
    end_with(found, {label: files.output, **said})


@dataclass(frozen=True, kw_only=True)
class RepackFiles:
    """What `topoplace repack` writes."""

    output: Path | None = option("RESULT", "Write the result file here.", "-o", "--output")
    png: Path | None = option(
        "F", "Draw the machine before and after, or the curve, into a PNG file."
    )


@command
def repack(asked: options.Repack, files: RepackFiles) -> None:
    """Find the fewest running jobs of SNAPSHOT to move so that requests start, and prove it."""
    require_writable(asked.instance, **vars(files))
    some = bool(asked.start or asked.replace)
    if some == (asked.defragment is not None):
        raise InputError("--start or --defragment", found="both" if some else "neither")
    with shown() as watch:
        found = front.repacking.repack(**vars(replace(asked, callback=watch)))
    front.writing.write(found, **vars(files))
    label = "result" if asked.defragment is None else "frontier"
    end_with(found, {label: files.output, "picture": files.png})


_WEIGHTS = "NAME=N[,NAME=N..] with N from 0"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The options of `topoplace whatif`: its scenarios, and the files that it writes."""

    add_down: list[str] | None = option(
        "NODES",
        "A scenario: these nodes are down, too; a switch or domain stands for its own. "
        "All may be repeated.",
        kind=list[str],
    )
    free: list[str] | None = option(
        "NODES", "A scenario: these down or service nodes can be used.", kind=list[str]
    )
    without_job: list[str] | None = option(
        "ID", "A scenario: this running or waiting job is gone.", kind=list[str]
    )
    with_request: list[str] | None = option(
        "JSON", "A scenario: this request waits, too; its fields, or their file.", kind=list[str]
    )
    weights: list[str] | None = option(
        "NAME=N[,..]", "A scenario, on tori: other weights of the shape score.", kind=list[str]
    )
    rules: list[str] | None = option(
        "strict|tolerant|off",
        "A scenario, on tori: another rule on which jobs may share links.",
        "--interference",
        kind=list[str],
    )
    together: bool = flag("All changes are one scenario.")
    num_worth: int | None = option(
        "N",
        "Name N running jobs whose release could gain most, without a search; also N routers, or "
        "hosts and domains of hierarchies and trees, that are missed most if they go down, and N "
        "that could gain most if they are freed; of domains also if they are emptied.",
        "--worth",
    )
    output: Path | None = option(
        "FOLDER", "Write the results here, one per scenario.", "-o", "--output"
    )

    def scenarios(self) -> list[list[tuple[str, Any]]]:
        """Return the changes of each scenario."""
        changes = [
            *(("add_down", text) for text in self.add_down or ()),
            *(("free", text) for text in self.free or ()),
            *(("without_job", text) for text in self.without_job or ()),
            *(("with_request", _request(text)) for text in self.with_request or ()),
            *(("weights", named_numbers(x, "--weights", _WEIGHTS)) for x in self.weights or ()),
            *(("interference", text) for text in self.rules or ()),
        ]
        if not changes and self.num_worth is None:
            raise InputError("changes, or --worth", found="neither")
        return [changes] if self.together and changes else [[change] for change in changes]


@command
def whatif(changes: Changes, asked: options.WhatIf) -> None:
    """Place SNAPSHOT as it is and after changes, side by side; say what each can gain at most."""
    num_worth, output = changes.num_worth, changes.output
    if num_worth is not None and num_worth < 1:
        raise InputError("a number from 1", field="--worth", value=num_worth)
    scenarios = changes.scenarios()
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

        more = {"keep": keep, "count": count, "callback": watch, "worth": num_worth is not None}
        found = front.studies.whatif(**vars(asked) | more | {"changes": scenarios})
    say(front.writing.text_of(found, num_worth))
    say_files({"results": output})
    print_json(found.document())
    raise typer.Exit(front.writing.exit_code_of(found.scenarios[0].result))


def _request(text: str) -> Any:
    """Return the request of a JSON text, or of the file of one."""
    is_text = text.lstrip().startswith("{")
    with blamed_on("--with-request" if is_text else text):
        return front.documents.request_of(text if is_text else Path(text))
