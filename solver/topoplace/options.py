"""Every option, declared once: its name, type and default, and what it says of itself.

A class of options belongs to a function of `topoplace.front`, and to the command of that name: a
field is a keyword of the function (`takes`) and an option of the command (`topoplace.cli.options`).
Nothing heavy is imported here, so that `--help` waits for nothing.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from topoplace.errors import InputError, closest
from topoplace.given import fitting, parse_extents
from topoplace.shipped import EXPORTS, FORMATS, WRITTEN

if TYPE_CHECKING:
    from topoplace.mapping.onto import Source as PlacesSource
    from topoplace.model import Model
    from topoplace.result.mapping import MappingResult
    from topoplace.snapshot.objects import ObjectsApplication
    from topoplace.snapshot.schema import AnyApplication, MappingInstance, MatrixModel, Snapshot
    from topoplace.solving.outcome import Watch
    from topoplace.study.audit.cases import Source as Audited
    from topoplace.study.case import Document, File
    from topoplace.study.case import Source as Comparable
    from topoplace.study.compare import Keep as KeepRow
    from topoplace.study.external.trial import Trial
    from topoplace.study.what_if import Changes, Placed, Scenario

    Instance: TypeAlias = Model | Snapshot | File | Document
    Exportable: TypeAlias = Model | Comparable
    Application: TypeAlias = AnyApplication | ObjectsApplication | MappingInstance | File
    Where: TypeAlias = PlacesSource | Model | MatrixModel | Placed | Path | None

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


# ---- The mechanism -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """How an option is written on the command line, and what its help says.

    Attributes
    ----------
    metavar
        What stands for its value in the help; empty for a flag, None for what only Python has.
    flags
        Its names, by default that of the field.
    in_python
        What Python's documentation says after the help.
    kind
        The type that the command line makes of a value, if that is not the type of the field.
    parse
        Makes the value of the field of a text.
    panel
        The title under which the help shows it with others.
    names
        Which names a shell completes: of ``methods``, ``machines`` or ``snapshots``.
    least, most
        Limits of a number.
    is_argument, is_required
        Whether it stands on the command line without a name, and may not be left out there.
    """

    metavar: str | None
    help: str
    flags: tuple[str, ...] = ()
    in_python: str = ""
    kind: Any = None
    parse: Callable[[str], Any] | None = None
    panel: str | None = None
    names: str | None = None
    least: float | None = None
    most: float | None = None
    is_argument: bool = False
    is_required: bool = False

    def names_of(self, field: str) -> tuple[str, ...]:
        """Return the names of the option of a field; of an argument what stands for it."""
        if self.is_argument:
            return ((self.metavar or "").rstrip("."),)
        return self.flags or (f"--{field.replace('_', '-')}",)

    @property
    def text(self) -> str:
        """What Python's documentation says, where options have no dashes."""
        told = f"{self.help.removeprefix('--all: ')} {self.in_python}".strip()
        return re.sub(r"--([a-z-]+)", lambda found: found[1].replace("-", "_"), told)


# Any: what a class of options has as the value of a field.


def option(metavar: str, told: str, *flags: str, default: Any = None, **more: Any) -> Any:
    """Return an option with a value, by default named as its field."""
    return field(default=default, metadata={"option": Option(metavar, told, flags, **more)})


def flag(told: str, *flags: str, default: bool | None = False, **more: Any) -> Any:
    """Return an option without a value."""
    return option("", told, *flags, default=default, **more)


def argument(metavar: str, told: str, *, default: Any = MISSING, **more: Any) -> Any:
    """Return what a command takes besides its options."""
    return option(metavar, told, default=default, is_argument=True, **more)


def python(told: str, default: Any = None) -> Any:
    """Return a keyword that only Python has."""
    return field(default=default, metadata={"option": Option(None, told)})


def again(one: Any, default: Any = None, **changes: Any) -> Any:
    """Return an option that several classes have, perhaps with another default."""
    told = replace(one.metadata["option"], **changes)
    return field(default=one.default if default is None else default, metadata={"option": told})


def declared(options: type) -> Iterator[tuple[Field[Any], Option]]:
    """Yield the fields of a class of options, those of classes that it extends after its own."""
    found = {one.name: one for one in fields(options)}
    for cls in options.__mro__:
        for name in vars(cls).get("__annotations__", {}):
            if name in found:
                yield found[name], found.pop(name).metadata["option"]


def takes(options: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Return a decorator: a function of a class of options takes its fields as keywords.

    What the options say is the section Parameters of its docstring; all raise `InputError`, also
    for a value that is not of the type of its field (`topoplace.given`).
    """

    def decorated(function: Callable[[T], R]) -> Callable[P, R]:
        @functools.wraps(function)
        def run(*args: P.args, **given: P.kwargs) -> R:
            return function(_asked(function, options, args, given))

        _describe(run, options, function)
        return run

    return decorated


def takes_many(options: Callable[..., T]) -> Callable[[Callable[[T], R]], Callable[..., R]]:
    """Return the decorator `takes` for a class whose first field is all that has no name."""

    def decorated(function: Callable[[T], R]) -> Callable[..., R]:
        @functools.wraps(function)
        def run(*first: Any, **given: Any) -> R:
            return function(_asked(function, options, (first,), given))

        _describe(run, options, function, inspect.Parameter.VAR_POSITIONAL)
        return run

    return decorated


def _asked(
    function: Callable[..., Any],
    options: Callable[..., T],
    args: tuple[Any, ...],
    given: Mapping[str, Any],
) -> T:
    """Return the options that a call of a function gives."""
    _require_known(options, given)
    try:
        found = options(*args, **given)
    except TypeError as error:  # one is missing, or given twice
        text = re.sub(r"^\w+\.__init__", function.__name__, str(error))
        raise TypeError(text) from None
    fitted: T = _fitting(found)
    return fitted


def _require_known(options: Any, given: Mapping[str, Any]) -> None:
    """Raise `InputError` for a keyword that a class of options does not have."""
    known = [of.name for of in fields(options)]
    for name in given:
        if name not in known:
            near = closest(name, known)
            told = "" if near is None else f" (did you mean {near!r}?)"
            raise InputError("an option of this function", field=name, found=f"none{told}")


def _fitting(asked: Any) -> Any:
    """Return options with plain values; `InputError` names one of another type or out of range."""
    given = {}
    for of, one in declared(type(asked)):
        value = given[of.name] = fitting(getattr(asked, of.name), str(of.type), of.name)
        for limit, words, sign in ((one.least, "at least", 1), (one.most, "at most", -1)):
            if limit is not None and value is not None and sign * value < sign * limit:
                raise InputError(f"{words} {limit}", field=of.name, value=value)
    return replace(asked, **given)


def _describe(run: Any, options: Any, function: Callable[..., Any], first: Any = None) -> None:
    """Give a function the signature of the options that it takes, and their text as docstring.

    Its own options come before those that others have too; `first` is the kind of its first one.
    """
    found = dict(inspect.signature(options).parameters)
    told = {of.name: one.text for of, one in declared(options)}
    plain = [name for name, one in found.items() if one.kind is not one.KEYWORD_ONLY]
    parameters = [found[name] for name in dict.fromkeys([*plain, *told])]
    if first is not None:
        parameters[0] = parameters[0].replace(kind=first, default=inspect.Parameter.empty)
    returned = inspect.signature(function).return_annotation
    run.__signature__ = inspect.Signature(parameters, return_annotation=returned)
    doc, _, faults = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises\n------\n")
    head, *rest = doc.split("\n\nReturns\n", maxsplit=1)
    lines = [head, "", "Parameters", "----------"]
    for one in parameters:
        lines += [one.name, textwrap.indent(textwrap.fill(told[one.name], 92), " " * 4)]
    lines += ["", *(f"Returns\n{text}\n" for text in rest), "Raises", "------", "InputError"]
    lines += ["    If an option, or a field of what it names, cannot be used.", faults]
    run.__doc__ = "\n".join(lines).rstrip()


# ---- Texts of values -----------------------------------------------------------------------------


def listed(text: str) -> list[str]:
    """Return the parts of a text with commas between."""
    return [part.strip() for part in text.split(",") if part.strip()]


def names_of(names: Sequence[Any]) -> Sequence[Any]:
    """Return names as a list: a text is one name, and not its letters."""
    return [names] if isinstance(names, str) else names


def _names(text: str) -> list[str]:
    """Return the names of a text with commas between; none may be missing."""
    return [name.strip() for name in text.split(",")]


def named_numbers(text: str, option: str, expected: str) -> dict[str, int]:
    """Return the numbers of a text such as ``a=3,b=1`` by name, a value of an option."""
    found = {}
    for part in listed(text) or [""]:
        name, sign, number = part.rpartition("=")
        if not sign or not number.isdecimal():
            raise InputError(expected, field=option, value=part)
        found[name.strip()] = int(number)
    return found


def _evicted(text: str) -> Sequence[str] | Mapping[str, int] | str:
    """Return who may be ended: one word or name, names, or their costs."""
    names = listed(text)
    if "=" in text:
        every = ",".join(name if "=" in name else f"{name}=1" for name in names)
        return named_numbers(every, "--evict", "ID=N with N from 1")
    return names[0] if len(names) == 1 else names


def _budgets(text: str) -> list[tuple[list[str], int]]:
    """Return running jobs, and how many of them may move or end, once for each budget."""
    found = []
    for part in text.split(";"):
        number, colon, names = part.partition(":")
        if not (colon and number.strip().isdecimal() and listed(names)):
            raise InputError("K:ID,ID.. with K from 0", field="--budget", value=part)
        found.append((listed(names), int(number)))
    return found


# ---- What several functions have -----------------------------------------------------------------

IGNORED = option(
    "OPTION[,..]|all",
    "Release requests that are held by these options, which are not modelled.",
    parse=listed,
    default=(),
)
CONTRACT = option(
    "NAME", "On hierarchies: hold requests to what a scheduler promises: slurm-block."
)
OBJECTIVE = option(
    "domains|contention",
    "On switch trees, what counts after the nodes; default contention if requests have patterns.",
)
FIRST_LEVEL = flag(
    "Method exact ends after the first level, who starts. (With contention it solves all.)"
)
SOLVER = option(
    "NAME", "Method minizinc: the solver, as minizinc --solvers lists it; default CP-SAT or Gecode."
)
VALUE = option(
    "nodes|gpus|jobs",
    "What the value of a request counts, each times its priority: nodes (default; or pods), GPUs "
    "(default for Kubernetes, where there are any), or 1 per job.",
)
ORDER = option(
    "value|priority|backfill",
    "Who starts: the most value (default); or each request, in the order of priorities, that fits "
    "alongside those before it; with backfill the first that waits has a reservation, too.",
)
ALLOCATOR = "An allocator of your own, '[NAME=]PROG ARGS': snapshot on stdin, placements on stdout."
COMMAND = option("TEXT", ALLOCATOR)

INTERFERENCE = option(
    "strict|tolerant|off",
    "Which jobs may share links: none, tolerant ones with each other, all.",
    default="strict",
)
DEFAULT_MIX = "B"


@dataclass(frozen=True, kw_only=True)
class Watched:
    """How a solve is shown while it runs."""

    display: bool = python(
        "Whether to show on stderr where the solve is: one live line at a terminal.", default=False
    )
    callback: Watch | None = python(
        "Called with the `Progress` of the solve a few times a second, and at its end."
    )


SECONDS = option("S", "Seconds per solve; without it method exact ends after some 300.")


@dataclass(frozen=True, kw_only=True)
class Solve:
    """What all functions take that solve."""

    time_limit: float | None = again(SECONDS)
    seed: int = option("N", "Seed of whatever a method draws at random.", default=0)


@dataclass(frozen=True, kw_only=True)
class Queue(Solve):
    """What functions take that place queues."""

    interference: str = again(INTERFERENCE)
    ignore: Sequence[str] = again(IGNORED)
    value: str | None = again(VALUE)


INSTANCE = argument(
    "SNAPSHOT",
    "A snapshot file, the name of a shipped one, or - for stdin.",
    in_python="Or a `Model`, or whatever else `load` takes for one.",
    names="snapshots",
)


@dataclass(frozen=True)
class OfSnapshot(Queue, Watched):
    """What functions take that place the queue of one snapshot."""

    instance: Instance = again(INSTANCE)


# ---- Placements ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Placing(OfSnapshot):
    """What functions take that place a queue as it is."""

    contract: str | None = again(CONTRACT)
    objective: str | None = option(
        "NAME",
        "On tori nodes,hop-bytes: map the applications of requests; most nodes, then fewest "
        "bytes x hops. On switch trees domains, the fewest switches, or contention; by default "
        "that where requests have patterns. On hierarchies and trees nodes,free_racks or another "
        "level's plural: most nodes, then most racks that stay free as a whole.",
    )


@dataclass(frozen=True)
class Place(Placing):
    """The options of `topoplace.front.placing.place`."""

    method: str | Callable[..., Any] | None = option(
        "NAME",
        "The placement method, or an installed allocator; default exact.",
        kind=str,
        in_python='One of ``methods("placement")``, on hierarchies and trees of '
        '``methods("hierarchy")``, by contention of ``methods("allocation")``, on pods of '
        'cubes of ``methods("cubes")``. Or a function of your own '
        "(docs/guide/external-allocators.md).",
        names="methods",
    )
    _: KW_ONLY
    command: str | None = again(COMMAND)
    order: str | None = again(ORDER)
    first_level: bool = again(FIRST_LEVEL)
    solver: str | None = again(SOLVER)
    required: Mapping[str, int] | str | None = option(
        "'LEVEL>=N,..'",
        "Require this of a level (quote it), instead of its optimum.",
        "--set",
        kind=str,
        in_python="A text, or by level what is required of it, ``{'nodes': 6000}``: at least "
        "this of levels that are maximised, at most of others. Of method ``exact``, not by "
        "contention.",
    )
    tried: Callable[[Trial], None] | None = python(
        "Called with what came of such an allocator, before a verdict on it is raised."
    )


PARETO = option(
    "A,B[,C]",
    "Trade these levels off: all their best placements, and the proof.",
    "--pareto",
    parse=lambda text: text.split(","),
)


@dataclass(frozen=True)
class Frontier(Placing):
    """The options of `topoplace.front.trading.frontier`."""

    levels: Sequence[str] = again(PARETO, default=("nodes", "shape"))


DISTINCT = option(
    "started|prisms|nodes",
    "--all: what makes placements distinct; default prisms on tori, else started.",
    in_python="Who starts, on which prisms, or on which nodes. Requests that are equal may "
    "exchange their places.",
)
LEVELS = option(
    "A[,B]",
    "--all: the first levels, which count; default all. Else of Kubernetes without a Topology: "
    "labels of nodes that make the levels, as FILE:A,B does everywhere.",
    parse=lambda text: text.split(",") if text else [],
)
MOST = option("N", "Find up to N placements that are as good as any, and prove it.", "--all")


@dataclass(frozen=True)
class Optima(Placing):
    """The options of `topoplace.front.trading.optima`."""

    most: int = again(MOST, default=10)
    _: KW_ONLY
    levels: Sequence[str] = again(LEVELS, default=())
    distinct: str | None = again(DISTINCT)


@dataclass(frozen=True)
class Repack(OfSnapshot):
    """The options of `topoplace.front.repacking.repack`."""

    instance: Instance = again(
        INSTANCE,
        help="A snapshot file, the name of a shipped one, or - for stdin.",
    )
    start: Sequence[str] = option(
        "ID[,ID..]", "Requests of the queue that have to start.", default=(), parse=listed
    )
    _: KW_ONLY
    defragment: int | None = option(
        "K", "Instead, free the most space by moves that cost 0, 1, .. K in all: the curve."
    )
    room: str | None = option(
        "queue|prism|LEVEL",
        "--defragment: room for requests that wait, by nodes times priority (default if there "
        "are any), on tori for one job on the largest prism, or elsewhere domains of a level that "
        "are free as a whole, such as rack; cubes on pods, counted in chips.",
    )
    node_class: str | None = option(
        "NAME", "--room prism: class of the nodes; default that of the machine."
    )
    replace: Sequence[str] = option(
        "ID[,ID..]",
        "Hierarchies and trees: running jobs that get other hosts for those that are down; the "
        "units on their other hosts stay.",
        default=(),
        parse=listed,
    )
    spares: str | None = option(
        "SET|NODES",
        "Hierarchies, trees and pods: nodes kept as spares: a node set of the snapshot, a "
        "reservation or a list. As few as possible are used, on pods as whole cubes.",
    )
    evict: Sequence[str] | Mapping[str, int] | str | None = option(
        "ID[=N],..|lower|all",
        "Running jobs that may be ended, and what that costs (default 1): those named, all, or "
        "those of lower priority than all that have to start. Ends come before moves.",
        parse=lambda text: _evicted(text) if text else None,
    )
    no_moves: bool = flag("No running job moves: those of --evict end, all others stay.")
    budgets: Sequence[tuple[Sequence[str], int]] = option(
        "K:ID,ID..",
        "At most K of these running jobs move or end; several budgets with ; between.",
        "--budget",
        default=(),
        in_python="Pairs of ids and number.",
        parse=lambda text: _budgets(text) if text else (),
    )
    fixed: Sequence[str] = option("ID[,ID..]", "Running jobs that stay.", default=(), parse=listed)
    costs: Mapping[str, int] | None = option(
        "ID=N[,ID=N..]",
        "What it costs to move a running job; default 1.",
        "--cost",
        in_python="By id. Nodes moved come second.",
        parse=lambda text: named_numbers(text, "--cost", "ID=N with N from 1") if text else None,
    )
    keep_shape: str = option(
        "as-good|same|any",
        "Shapes for jobs that move: of no less shape score, of the same extents, any. Elsewhere "
        "than on tori: within one domain as now, if nothing says what the job asked for; or any.",
        default="as-good",
    )


@dataclass(frozen=True)
class WhatIf(OfSnapshot):
    """The options of `topoplace.front.studies.whatif`."""

    changes: Sequence[Changes] = python(
        "Scenarios, each a mapping or a list of pairs, from what is changed to how: "
        "``add_down`` and ``free`` nodes (as text, such as ``0-3,8``), ``without_job`` (the id "
        "of one that runs or waits), ``with_request`` (its fields), ``weights`` of the shape "
        "score, and ``interference``.",
        default=(),
    )
    method: str = option(
        "NAME",
        "The placement method; default exact, which proves.",
        default="exact",
        in_python="What changes can gain at most needs one that proves.",
        names="methods",
    )
    _: KW_ONLY
    interference: str = option(
        "strict|tolerant|off",
        "The rule of the base and other scenarios.",
        "--base-interference",
        default="strict",
    )
    objective: str | None = again(OBJECTIVE)
    worth: bool = python(
        "Whether to say for each running job what its release can gain at most, and between what "
        "figures the first level is if a router goes down or is freed, or on hierarchies and "
        "trees a host or domain goes down, is freed or emptied.",
        default=False,
    )
    keep: Callable[[Scenario], None] | None = python(
        "Called with every scenario as soon as it is known."
    )
    count: Callable[[int, int], None] | None = python(
        "Called with how many of how many running jobs and routers are looked at."
    )


# ---- Studies -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compare(Queue, Watched):
    """The options of `topoplace.front.studies.compare`."""

    sources: Sequence[Model | Comparable] = argument(
        "SNAPSHOT...",
        "Snapshots, mapping instances or results: files, folders of them, shipped snapshots, "
        "or - for stdin.",
        in_python="Or documents in memory. A result stands for its method, which is not run again.",
        kind=list[Path],
        names="snapshots",
    )
    _: KW_ONLY
    time_limit: float | None = again(
        SECONDS, help="Seconds per solve; without it, method exact has 60."
    )
    methods: Sequence[str | Callable[..., Any]] | None = option(
        "A,B,...|none",
        "Methods to run, also installed allocators; none holds only results against each "
        "other; default all ours that suit the instance.",
        in_python="An empty list for none. Functions of your own are methods, too.",
        parse=lambda text: [] if _names(text) == ["none"] else _names(text),
    )
    commands: Sequence[str] = option(
        "TEXT", f"{ALLOCATOR} May be repeated.", "--command", default=(), kind=list[str]
    )
    objective: str | None = again(OBJECTIVE)
    keep: KeepRow | None = python(
        "Called with every row, its result and the instance: results are large, and not held."
    )
    begin: Callable[[str], None] | None = python(
        "Called with a line before each method: which one of how many begins, and its time."
    )


@dataclass(frozen=True)
class Audit(Solve):
    """The options of `topoplace.front.studies.audit`."""

    sources: Sequence[Audited | Model] = argument(
        "SOURCE...",
        "Recorded decisions (JSON lines), results and folders of them, or the snapshot before.",
        default=(),
        in_python="With `command`, files of lines with states of recorded decisions.",
        kind=list[Path],
    )
    _: KW_ONLY
    time_limit: float | None = again(
        SECONDS,
        help="Seconds for the whole audit, shared out among its decisions; those that are left "
        "then are not judged. Without it, each solve ends after some 300.",
    )
    after: File | Snapshot | Model | None = option(
        "SNAPSHOT", "The snapshot after: what of the queue of SOURCE runs was started."
    )
    victims: Sequence[str] | Mapping[str, int] | str | None = option(
        "ID,..|lower|all",
        "With --after: judge who was ended so that others start, jobs that run before and wait "
        "afterwards, against the fewest possible of those that may be: as `repack --evict`.",
        parse=lambda text: _evicted(text) if text else None,
    )
    contract: str | None = again(CONTRACT)
    levels: Sequence[str] | None = option(
        "A,B,...",
        "Count the domains of these levels; default those that matter.",
        in_python="Those are all, but of Slurm's topology/block the base blocks and the nodes.",
        parse=_names,
    )
    order: str | None = option(
        "priority|backfill",
        "Judge each request in the order of priorities: does it fit alongside those before it that "
        "started? With backfill, the first that waits has a reservation.",
    )
    command: str | None = option(
        "TEXT",
        "A live allocator, '[NAME=]PROG ARGS': states on stdin, decisions on stdout, JSON lines.",
    )
    states: int | None = option(
        "N", "Draw N states for --command; without it, those of SOURCE.", least=1
    )
    on: str | None = option(
        "MACHINE",
        "Draw the states on a pod of cubes, such as cubes:64.",
        in_python="By default on racks of hosts.",
    )
    ignore: Sequence[str] = again(IGNORED)
    value: str | None = again(VALUE, help="With --after: " + VALUE.metadata["option"].help)
    results: File | None = option(
        "DIR", "Write the result that proves each optimum here.", "-o", "--output"
    )
    display: bool = python("Whether to show on stderr how many are judged.", default=False)


@dataclass(frozen=True)
class Batch(Queue):
    """The options of `topoplace.front.studies.batch`."""

    sources: Sequence[Path] = argument(
        "DIR|FILES",
        "Snapshots and mapping instances, folders of them, or shipped snapshots by name.",
        kind=list[Path],
    )
    _: KW_ONLY
    output: Path = option(
        "OUTDIR", "The folder of results and table.", "-o", "--output", default=MISSING
    )
    method: str | None = option(
        "NAME",
        "The method, or an installed allocator; default exact, for mappings auto.",
        names="methods",
    )
    command: str | None = again(COMMAND)
    first_level: bool = again(FIRST_LEVEL)
    objective: str | None = again(OBJECTIVE)
    jobs: int | None = option("N", "Worker processes; default one per core.", least=1)
    kill_after: float | None = option(
        "S",
        "Kill an instance's process after S seconds; default twice the time limit and 60, or "
        "never without one.",
        least=0.1,
    )
    memory: float | None = option("GIB", "Most memory that an instance may take.", least=0.001)
    retry_failed: bool = flag("Try again what failed in earlier runs.")
    dask: str | None = option("ADDRESS", "Run on the Dask cluster of this scheduler.")
    display: bool = python("Whether to show on stderr how many are done.", default=False)


def _numbered(text: str, value: str, field: str, expected: str) -> dict[str, str]:
    """Return the numbers of a log and what they stand for, from a text such as ``1=xe,2=xk``."""
    one = rf"\d{{1,18}}={value}"
    if not re.fullmatch(f"{one}(,{one})*", text):
        raise InputError(expected, field=field, value=text)
    return dict(pair.split("=") for pair in text.split(","))


def _partitions(text: str) -> dict[str, str]:
    return _numbered(text, r"[^=,\s]+", "--partitions", "partitions with a class each: 1=xe,2=xk")


def _queues(text: str) -> dict[str, int]:
    expected = "queues with a priority each, from 1 to 999999: 1=1,2=10"
    found = _numbered(text, r"[1-9]\d{0,5}", "--queues", expected)
    return {queue: int(priority) for queue, priority in found.items()}


@dataclass(frozen=True)
class Replay(Solve):
    """The options of `topoplace.front.replaying.replay`."""

    log: Path = argument("LOG", "A job log (SWF, or ALCF's CSV), or a trace of RFold (CSV).")
    machine: str = option(
        "MACHINE",
        "A machine: a file, a shipped name, tree:24x16 or torus:8x8x8; or a snapshot of a torus, "
        "whose running jobs end when they say so.",
        "--on",
        default=MISSING,
        names="machines",
    )
    _: KW_ONLY
    method: str | None = option(
        "NAME", "The method of allocation or placement, or an installed allocator.", names="methods"
    )
    command: str | None = again(COMMAND)
    prisms: bool = flag("torus: an allocator of your own needs a free prism for every job.")
    against: str | None = option(
        "NAME",
        "On a tree, the method whose run times are the log's; default Slurm's. On a torus, one "
        "to compare with.",
    )
    protocol: str = option(
        "continuous|individual",
        "All jobs together, or each alone with the same running jobs.",
        default="continuous",
    )
    mix: str | None = option("A..E", f"Patterns of Mishra 2020; default {DEFAULT_MIX}.")
    pattern: str | None = option("NAME", "One pattern, instead of a mix.")
    share: int | None = option("PERCENT", "Its share of the time; default 100.", least=1, most=100)
    intensive: int = option("PERCENT", "Jobs that communicate.", default=90, least=0, most=100)
    occupancy: int = option(
        "PERCENT", "individual: nodes held beforehand.", default=50, least=0, most=100
    )
    limit: int | None = option("N", "Take the first N jobs only.", least=1)
    procs_per_node: int = option("N", "Processors of a node in the log.", default=1, least=1)
    interference: str = again(INTERFERENCE)
    objective: str | None = again(OBJECTIVE)
    sharing: int = option(
        "PERCENT",
        "torus: how much longer a job communicates for each other job on its links.",
        default=0,
        least=0,
        most=1000,
    )
    fill_interior: bool = flag("torus: offer idle nodes inside prisms to jobs without links.")
    whole_queue: bool = flag("torus: place all jobs that wait together, not one at a time.")
    partitions: Mapping[str, str] | None = option(
        "1=xe,2=xk",
        "torus: the node class of the log's partitions.",
        in_python="By partition.",
        kind=str,
        parse=_partitions,
    )
    queues: Mapping[str, int] | None = option(
        "1=1,2=10",
        "The priorities of the log's queues; default 1.",
        in_python="By queue.",
        kind=str,
        parse=_queues,
    )
    snapshots: Path | None = option("DIR", "Write snapshots on the way here.")
    every: int | None = option("N", "A snapshot after every N starts.", least=1)
    at: str | None = option("S,S,...", "Snapshots at these seconds.")


# ---- Mappings ------------------------------------------------------------------------------------


def _costs(text: str) -> tuple[int, ...]:
    """Return the costs of a text such as ``1:10:100``."""
    if not re.fullmatch(r"\d{1,7}(:\d{1,7}){0,16}", text):
        raise InputError("costs such as 1:10:100", field="--level-costs", value=text)
    return tuple(map(int, text.split(":")))


OBJECTS = "Objects with loads, any number on a node"
PLACES = "Where to map to"
METHOD = "Method"

_place = partial(option, panel=PLACES)
_how = partial(option, panel=METHOD)
_load = partial(option, panel=OBJECTS)


NODE_NAMES = option(
    "FILE",
    "Torus or mesh: what its nodes are called, in the order of their numbers.",
    in_python="A list of names, or a file of them.",
    kind=Path,
)


@dataclass(frozen=True)
class Map(Solve, Watched):
    """The options of `topoplace.front.mapping.map`."""

    application: Application = python(
        "A `grid`, `graph` or `parallelism`; an array, data frame, sparse matrix or graph as "
        "`graph` takes it; the file of a graph, or a mapping instance or its file; or `objects`, "
        "their file, a shipped name such as ``namd_apoa1``, or an instance of objects."
    )
    on: Where = _place(
        "MACHINE",
        "A machine (file, shipped name, torus:4x4x4), a snapshot, a placement result, "
        "matrix:FILE (distances), sharedmap:4:8:6/1:10:100, or qaplib (those of the graph "
        "file).",
        in_python="Of a snapshot or `Model` the free nodes, of a result those of one of its "
        "jobs. Not with a mapping instance, which says so itself.",
        names="machines",
        is_required=True,
    )
    method: str | Callable[..., Any] = _how(
        "NAME",
        "The mapping method.",
        default="auto",
        kind=str,
        in_python='Of ``methods("mapping")``; or a function of your own.',
        names="methods",
    )
    _: KW_ONLY
    solver: str | None = again(SOLVER)
    balance: float | str | None = _load(
        "1.1",
        "Most load of a node, in averages; with a grid or graph, tasks are objects too.",
        kind=str,
    )
    pooled: bool = flag("The nodes of a router share their loads.", panel=OBJECTS)
    fixed: Mapping[int, int] | Path | None = _load(
        "CSV",
        "Objects that stay: columns object and node.",
        in_python="Or each with its node.",
        kind=Path,
    )
    level_costs: Sequence[int] | None = _place(
        "1:10:100",
        "Tree or hierarchy: cost of a byte by the level at which its ends meet, lowest first.",
        in_python="By default two hops per level.",
        parse=_costs,
    )
    tasks_per_node: int | None = _place(
        "N",
        "Most tasks on a node; default 1, or as many as the job of a result has units there, which "
        "are also the most if there are several.",
    )
    within: str | None = _place("12x8x12@0,0,0", "Use the routers of this prism only.")
    subset: str | Sequence[str | int] | None = _place(
        "0-47,60",
        "Use these nodes only; where they have names, n[01-16].",
        in_python="A text, or a list of names or numbers.",
        kind=str,
    )
    names: Path | Sequence[str] | None = again(NODE_NAMES, panel=PLACES)
    job: str | None = _place("ID", "Map inside this job of the file.")
    node_class: str | None = _place("NAME", "Class of nodes.", "--class")
    mapping: Path | Sequence[int] | MappingResult | None = _how(
        "F",
        "Evaluate this mapping, or start the search from it.",
        kind=Path,
        in_python="Or the node of every task, or a result. A series of pandas has the tasks as its "
        "index: their names, or numbers in any order.",
    )
    most_moves: int | None = _how(
        "N", "Move at most N tasks or objects to another node than in --mapping.", least=0
    )
    mapping_format: str = _how(
        "csv|maplib|scotch|hostfile|rank-order|rankfile|ranks",
        "Format of --mapping.",
        "--format",
        default="csv",
    )
    objective: str | None = _how(
        "hop-bytes|spread",
        "What counts first: hop-bytes (default), or on trees and hierarchies the most domains that "
        "a group spans.",
    )
    groups: str | Path | Sequence[Sequence[int]] | None = _how(
        "data,tensor:rack,data+expert|FILE",
        "Groups of a spread: axes of a training job (default all), perhaps with a level, or a file "
        "with the tasks of a group on every line.",
        in_python="Or the groups, each with its tasks.",
        kind=str,
    )
    spread_level: str | None = _how(
        "LEVEL", "Level whose domains a spread counts; default the one above the hosts."
    )
    cell: Sequence[int] | None = _how(
        "4x2",
        "Cell of grid-order.",
        "-c",
        "--cell",
        parse=lambda text: parse_extents(text, "--cell"),
    )
    column_major: bool = flag(
        "grid-order: first dimension fastest.", "-C", "--column-major", panel=METHOD
    )
    node_order: str | None = _how(
        "number|alps-o2|alps-oy|alps-2y|alps-4y",
        "Torus: the order of nodes for default, round-robin and grid-order.",
    )
    layout: int | None = _how(
        "N", "topaware: lay the layout that `topoplace layouts` lists as number N there.", least=1
    )
    max_depth: int | None = _how("N", "Largest extent along the pencils.")
    time_limit: float | None = _how(
        "S", "Seconds; then, as on Ctrl-C, the best answer so far is the result."
    )


FILES = "Files to write"
_RANK_FILE = "The mapping in this form (docs/reference/formats.md)."


@dataclass(frozen=True, kw_only=True)
class RankFiles:
    """The files of other tools that hold a mapping."""

    rank_order: Path | None = option(
        "F",
        "MPICH_RANK_ORDER; its node list goes to F.nodes, or where --node-list says.",
        panel=FILES,
    )
    node_list: Path | None = option("F", "The node list of --rank-order.", panel=FILES)
    hostfile: Path | None = option("F", _RANK_FILE, panel=FILES)
    csv: Path | None = option("F", _RANK_FILE, panel=FILES)
    maplib: Path | None = option("F", _RANK_FILE, panel=FILES)
    scotch_map: Path | None = option("F", _RANK_FILE, panel=FILES)
    rankfile: Path | None = option("F", "Open MPI's: rank 3=node07 slot=1.", panel=FILES)
    ranks: Path | None = option(
        "F",
        "JSON: hosts and ranks of torchrun or JAX, an array of ranks by the axes of the tasks, "
        "groups by axis.",
        panel=FILES,
    )
    tpu_host: Sequence[int] | None = option(
        "2x2x1",
        "--ranks: the chips of a host.",
        panel=FILES,
        parse=lambda text: parse_extents(text, "--tpu-host"),
    )


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """The options of `topoplace.front.mapping.layouts`."""

    tasks_per_node: int = option("N", "Most tasks on a node.", default=MISSING)
    within: str | None = option(
        "12x8x12",
        "Region, in routers; with an origin (12x8x12@0,4,0), say which layouts its nodes have room "
        "for, and where.",
    )
    on: str = option(
        "MACHINE",
        "A machine, a snapshot or a result; of the last two, say which layouts the free nodes, or "
        "those of a job, have room for.",
        default="blue_waters",
        names="machines",
    )
    subset: str | None = option("0-47,60", "Use these nodes only; where they have names, n[01-16].")
    job: str | None = option("ID", "Lay them inside this job of the file.")
    node_class: str | None = option("NAME", "Class of nodes.", "--class")
    max_depth: int | None = option("N", "Largest extent along the pencils.", least=1)
    rank_files: Path | None = option(
        "DIR", "Write the rank order and node list of every layout listed that there is room for."
    )
    balanced: bool = flag("Only layouts with equal cells.")
    stagger: bool = flag("List staggered folded layouts too.")


GRAPH_FORMAT = "csv|qaplib|metis|grf|edges"
FLOW = option(
    "first|second", "qaplib: which matrix is the flows; by default the one with more zeros."
)


# ---- Conversions ---------------------------------------------------------------------------------

NAME = option(
    "NAME",
    "What the snapshot or machine is called; by default as the file it is written to or read from.",
)
LEVELS_OF_NODES = option(
    "A,B,...",
    "Kubernetes: labels of nodes that make the levels, the top first, in place of a Topology.",
    parse=_names,
)


@dataclass(frozen=True, kw_only=True)
class Live:
    """The options of `topoplace.front.live.live_snapshot`."""

    slurm: bool = flag("Of Slurm: ask scontrol and squeue.")
    kube: bool = flag("Of Kubernetes: ask kubectl.")
    name: str | None = again(NAME)
    topology: str | None = option("NAME", "Which topology, where the cluster has several.")
    levels: Sequence[str] | None = again(LEVELS_OF_NODES)
    scontrol: str = option(
        "COMMAND", "Where scontrol is; or 'ssh login scontrol'.", default="scontrol"
    )
    squeue: str = option("COMMAND", "Where squeue is.", default="squeue")
    kubectl: str = option(
        "COMMAND", "Where kubectl is; or 'kubectl --context prod'.", default="kubectl"
    )
    keep: Path | None = option(
        "DIR", "Keep what the tools print in this folder; of Slurm, commands read it as a snapshot."
    )


@dataclass(frozen=True)
class Export:
    """The options of `topoplace.front.exporting.export`."""

    source: Exportable = argument(
        "SOURCE", "A snapshot, the instance of a mapping, or a result.", kind=Path
    )
    _: KW_ONLY
    to_format: str = option(
        "FORMAT", f"What to write: {', '.join(EXPORTS)}.", "--to", default="opb", is_required=True
    )
    level: str | None = option(
        "NAME",
        "The level of the objective, by default the first; later ones need a result, which says "
        "what earlier levels must reach.",
    )


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """What some conversions ask for besides the file.

    Beside a file, `topology` is the name of a topology in it, as `topology_name` is.
    """

    name: str | None = again(NAME)
    machine: str | None = option("MACHINE", "swf, rfold: the machine the jobs are for.", "--on")
    procs_per_node: int = option("N", "swf: processors of a node.", default=1, least=1)
    node_class: str | None = option("NAME", "swf: node class of all jobs.", "--class")
    limit: int | None = option("N", "swf, rfold: take the first N jobs only.", least=0)
    topology: File | None = option(
        "NAME|FILE",
        "Which topology of FILE, where it has several; slurm: without FILE, the file itself.",
    )
    nodes: File | None = option(
        "FILE", "slurm: from scontrol show nodes -o; slurm-topology: if it is flat."
    )
    jobs: File | None = option(
        "FILE", "slurm: from squeue --json, squeue -o or scontrol show job -o."
    )
    partitions: File | None = option("FILE", "slurm: from scontrol show partition -o.")
    reservations: File | None = option(
        "FILE", "slurm: from scontrol show reservation --json or -o."
    )
    levels: Sequence[str] | None = again(LEVELS_OF_NODES)
    without: Sequence[str] | None = option(
        "oss*,mds*", "ibnetdiscover: patterns of nodes to leave out.", parse=_names
    )
    topology_name: str | None = python("Which topology of a file, where it has several.")


@dataclass(frozen=True)
class Convert(ConvertOptions):
    """The options of `topoplace.front.converting.convert`."""

    file: File | None = argument("FILE", "The file to read; slurm: the topology.", default=None)
    from_format: str = option(
        "F", f"The format of FILE: {', '.join(FORMATS)}.", "--from", default="", is_required=True
    )
    to_format: str | None = option("F", f"What to write: {', '.join(WRITTEN)}.", "--to")
