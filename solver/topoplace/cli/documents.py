"""The commands about one document: `check`, `show`, `convert`, `snapshot`; and `warmup`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topoplace import front, kinds, options
from topoplace.cli.options import command, require_writable
from topoplace.cli.output import WIDTH, json_wanted, print_json, say, say_files, say_note
from topoplace.errors import ExitCode, InputError, number_of, unknown_name
from topoplace.options import again, argument, option

if TYPE_CHECKING:
    from topoplace.snapshot.convert import Converted


@dataclass(frozen=True, kw_only=True)
class OfResult:
    """A result."""

    result: Path = argument("RESULT", "A result file, or - for stdin.")


@dataclass(frozen=True, kw_only=True)
class Check(OfResult):
    """What `topoplace check` takes."""

    instance: Path | None = option(
        "FILE",
        "Also check that RESULT is of the instance in FILE: a snapshot, a mapping instance or "
        "another result.",
    )


@command
def check(asked: Check) -> None:
    """Recompute every claim of RESULT from the instance inside; exit 0 only if all hold."""
    report = front.checking.check_file(asked.result, asked.instance)
    if report.sha256 is not None:
        say(f"sha256 of the instance inside: {report.sha256}")
    say(str(report))
    print_json(
        {
            "schema": "topoplace.check/1",
            "holds": report.holds,
            "verified": report.verified,
            "instance_sha256": report.sha256,
            "claims": [asdict(claim) for claim in report.claims],
        }
    )
    raise typer.Exit(ExitCode.DONE if report.verified else ExitCode.CHECK_FAILED)


@dataclass(frozen=True, kw_only=True)
class Show(OfResult):
    """What `topoplace show` takes."""

    png: Path | None = option("F", "The PNG file to write.")
    svg: Path | None = option("F", "The same as SVG, whose text can be searched.")
    html: Path | None = option("F", "The page to write: figures, picture, all requests.")
    names: Path | None = again(options.NODE_NAMES, panel=options.FILES)


@command
def show(asked: Show, files: options.RankFiles) -> None:
    """Say what RESULT has found, or draw it; of a mapping, write rank files."""
    drawn = {"png": asked.png, "svg": asked.svg, "html": asked.html}
    ranks = {name: path for name, path in vars(files).items() if path is not None}
    paths = {name: path for name, path in (drawn | ranks).items() if name != "tpu_host"}
    given = {form: path for form, path in paths.items() if path is not None}
    require_writable(asked.result, asked.names, **given)
    found = front.documents.load_checkable(asked.result)
    if not given:
        say(front.writing.text_of(found, shutil.get_terminal_size((WIDTH, 24)).columns))
    front.writing.write(found, **drawn)
    if ranks:
        note = front.mapping.write_ranks(found, asked.names, **ranks)
        say_note(note)
    called = {"png": "picture", "svg": "SVG", "html": "page"}
    say_files({called.get(name, name.replace("_", "-")): path for name, path in given.items()})
    print_json({"schema": "topoplace.show/1", **{form: str(path) for form, path in given.items()}})


@dataclass(frozen=True, kw_only=True)
class ConvertFile:
    """What `topoplace convert` writes."""

    output: Path | None = option(
        "OUT", "The file to write; without it, to stdout.", "-o", "--output"
    )


@command
def convert(asked: options.Convert, file: ConvertFile) -> None:
    """Convert FILE to another format (docs/reference/formats.md; a wrong pair lists the known)."""
    output = file.output
    if output is None and json_wanted():
        raise InputError("an output file with --json", field="--output", found="none")
    require_writable(asked.file, output=output)
    if asked.from_format == "slurm":  # whose topology.conf names no cluster
        asked = replace(asked, name=_name(asked.name, output))
    made = front.converting.converted(asked.file, asked.from_format, asked.to_format, asked)
    _deliver("topoplace.convert/1", made, output)


def _name(given: str | None, output: Path | None) -> str | None:
    """Return what a snapshot is called: as told, or else as the file that it goes to."""
    return given if given or output is None else front.documents.name_of(output)


def _deliver(schema: str, made: Converted, output: Path | None) -> None:
    """Write what was made, and say what a person should know about it."""
    if output is None:
        print(made.text, end="")
    else:
        front.writing.write_text(output, made.text)
    for line in made.notes:
        say(line, aside=output is None)
    say_files({"written": output})
    print_json({"schema": schema, "output": str(output), "notes": list(made.notes)})


@dataclass(frozen=True, kw_only=True)
class ExportFiles:
    """What `topoplace export` writes."""

    output: Path | None = option(
        "OUT",
        "The file to write; without it, to stdout. For veripb, a folder, which is required.",
        "-o",
        "--output",
    )


@command
def export(asked: options.Export, files: ExportFiles) -> None:
    """Write a level of SOURCE as a model for other solvers, or the proof of its bound."""
    output = files.output
    if output is None and (json_wanted() or asked.to_format == "veripb"):
        raise InputError("what to write, for veripb or with --json", field="--output", found="none")
    made = front.exporting.export(**vars(asked))
    if output is None:
        print(made.text, end="")
    else:
        made.save(output)
    for line in made.notes:
        say(line, aside=output is None)
    say_files({"written": output})
    print_json({"schema": "topoplace.export/1", "output": str(output), "notes": list(made.notes)})


@dataclass(frozen=True, kw_only=True)
class SnapshotFile:
    """What `topoplace snapshot` writes."""

    output: Path | None = option(
        "OUT", "The file to write; without it, to stdout.", "-o", "--output"
    )


@command
def snapshot(asked: options.Live, file: SnapshotFile) -> None:
    """Ask Slurm or Kubernetes for the cluster as it is now: jobs, nodes and topology."""
    output = file.output
    if output is None and json_wanted():
        raise InputError("an output file with --json", field="--output", found="none")
    require_writable(output=output)
    made = front.live.taken(replace(asked, name=_name(asked.name, output)))
    _deliver("topoplace.convert/1", made, output)


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """What `topoplace warmup` takes."""

    problems: Sequence[str] = argument(
        "PROBLEM...",
        f"For which problems: {', '.join(kinds.shipped())}; default all.",
        default=(),
        kind=list[str],
    )


@command
def warmup(asked: Warmup) -> None:
    """Compile ahead what the solvers run; the first solve that needs it would do it otherwise."""
    from topoplace.kernels import compile_groups, compiling, folder_of_kernels

    chosen = asked.problems or list(kinds.known())
    for problem in chosen:
        if problem not in kinds.known():
            raise unknown_name(problem, kinds.known(), field="PROBLEM")
    began = time.perf_counter()
    groups = [group for problem in chosen for group in kinds.kind_named(problem).kernels]
    num = compile_groups(groups)
    seconds = time.perf_counter() - began
    if compiling.missing(groups):
        expected = "a folder that can keep all compiled kernels (NUMBA_CACHE_DIR names another)"
        raise InputError(expected, file=str(folder_of_kernels()), found=f"{num} kept")
    compiled = f"{number_of(num, 'kernel')} compiled, {seconds:.1f} s"
    say(compiled if num else "all kernels are compiled")
    print_json({"schema": "topoplace.warmup/1", "kernels": num, "seconds": round(seconds, 3)})
