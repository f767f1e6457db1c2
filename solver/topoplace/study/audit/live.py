"""A live allocator: it gets states, and its answers are judged.

It gets lines of recorded decisions on stdin, without their answers, and prints as many with answers
(docs/reference/formats.md). The states come from files, or are drawn: racks of eighteen hosts, like
those of NVL72, with jobs of whole hosts and of single GPUs, and requests with and without slices;
or pods of cubes with jobs on parts of a cube and on whole cubes.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from topoplace.errors import ExitCode, InputError, TopoplaceError, number_of
from topoplace.formats.decisions import Decided, decision_of, form_of, read_lines
from topoplace.machine import format_node_set
from topoplace.machine.cubes import Cubes
from topoplace.snapshot.files import parse_object
from topoplace.snapshot.held import AS_IS, Choices
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.schema import CubesModel, Snapshot
from topoplace.study.audit.cases import Case, Source, case_of_decision, load_cases
from topoplace.study.external.allocator import (
    DEFAULT_SECONDS,
    Allocator,
    End,
    Run,
    command_allocator,
    last_words,
    run_program,
)

Line = dict[str, Any]


class NoAnswerError(TopoplaceError):
    """Raised if a live allocator answered nothing at all, or gave too many answers."""

    exit_code = ExitCode.CHECK_FAILED


def answered(allocator: Allocator, lines: Sequence[Line]) -> list[Case]:
    """Give states to an allocator and return its decisions, one case for each.

    An answer that cannot be read is a case with a fault. The allocator gets `DEFAULT_SECONDS` in
    all, or a second for each state if there are more of these.

    Raises
    ------
    InputError
        If the program cannot be run.
    NoAnswerError
        If it answers nothing, or gives too many answers.
    """
    asked = [_asked(line) for line in lines]
    text = "".join(f"{json.dumps(line)}\n" for line in asked)
    seconds = max(DEFAULT_SECONDS, float(len(lines)))
    run = run_program(allocator.arguments, text.encode(), seconds, allocator.environment)
    said = [own for own in run.stdout.decode(errors="replace").splitlines() if own.strip()]
    why = _silence(run, seconds)
    if not said:
        raise NoAnswerError(f"{allocator.name}: {why}")
    if len(said) > len(lines):  # which lines do they answer?
        raise NoAnswerError(
            f"{allocator.name}: {number_of(len(said), 'answer')} to "
            f"{number_of(len(lines), 'state')}"
        )
    texts: list[str | None] = [*said, *[None] * len(lines)][: len(lines)]
    return [_case(line, own, why) for line, own in zip(asked, texts, strict=True)]


def _asked(line: Mapping[str, Any]) -> Line:
    answers = form_of(line).answers
    return {name: value for name, value in line.items() if name not in answers}


def _silence(run: Run, seconds: float) -> str:
    """Return in words why a program gives no more answers."""
    if run.end is End.TIME_OUT:
        return f"no answer in {seconds:g} s"
    if run.end is End.TOO_MUCH:
        return "no answer: it printed too much"
    if run.code:
        return f"no answer: exit code {run.code}; it said {last_words(run.stderr)!r}"
    return "no answer"


def _case(asked: Line, text: str | None, silence: str) -> Case:
    """Return what an allocator decided; the state is the one it was asked about."""
    form = form_of(asked)
    case = case_of_decision(decision_of({**asked, **form.unanswered}))
    if text is None:
        return replace(case, fault=silence)
    try:
        answer = parse_object(text.encode(), "answer")
        if "id" in answer and answer["id"] != asked.get("id"):
            raise InputError(f"the answer to {asked.get('id')}", field="id", value=answer["id"])
        own = {name: answer[name] for name in form.answers if name in answer}
        if not own:
            raise InputError(f"one of {', '.join(form.answers)}", found="none")
        return case_of_decision(decision_of(asked | own))
    except InputError as error:
        return replace(case, outcome=Decided.STARTED, fault=f"answer: {error.brief}")


def cases_of(
    sources: Sequence[Source],
    after: str | Path | Snapshot | None = None,
    command: str | None = None,
    states: int | None = None,
    seed: int = 0,
    machine: str | None = None,
    choices: Choices = AS_IS,
) -> tuple[list[Case], list[str]]:
    """Return the cases to judge: those of sources, or the decisions of a live allocator.

    Parameters
    ----------
    sources, after
        As in `load_cases`; for a command, files of recorded decisions, from which it gets the
        states.
    command
        The allocator, as ``[NAME=]PROG ARGS``.
    states
        How many states to draw for it, instead of those of sources.
    seed
        The seed of the states drawn.
    machine
        A pod of cubes, such as ``cubes:64``, on which they are drawn; without it, racks of hosts.
    choices
        What is chosen beside the snapshot before.

    Raises
    ------
    InputError
        If a source cannot be used, or there is none, or more than needed.
    """
    if machine is not None and states is None:
        raise InputError("a number of states to draw", field="on", value=machine)
    if command is None:
        if states is not None:
            raise InputError("a command for the states", field="states", value=states)
        return load_cases(sources, after, choices)
    if after is not None:
        raise InputError("either a command or what came after", field="after", found="both")
    if bool(sources) is (states is not None):
        found = "both" if sources else "neither"
        raise InputError("recorded decisions or a number of states", field="states", found=found)
    files = [source for source in sources if isinstance(source, str | Path)]
    if states is None:
        lines = [line for file in files for _, line, _ in read_lines(file)]
    elif machine is None:
        lines = list(drawn_lines(states, seed))
    else:
        lines = list(drawn_pods(_pod(machine), states, seed))
    if not lines:
        raise InputError("states to put to the command", field="sources", found="none")
    return answered(command_allocator(command), lines), []


def _pod(machine: str) -> CubesModel:
    expected = "a pod of cubes, such as cubes:64"
    return load_machine(machine).only(CubesModel, expected, field="on", value=machine)


# ---- States drawn at random ----------------------------------------------------------------------

BLOCK, RACK, HOST = "topology/block", "topology/rack", "kubernetes.io/hostname"
HOSTS_OF_RACK = 18


def drawn_lines(number: int, seed: int) -> Iterator[Line]:
    """Yield `number` states, each with a request, in Kueue's form; a seed gives the same ones.

    Of 36 to 144 hosts with 4 or 8 GPUs each, 50 to 90 % of the GPUs are in use.
    """
    rng = random.Random(seed)
    for idx in range(number):
        nodes = _nodes(rng)
        _fill(rng, nodes, rng.uniform(0.5, 0.9))
        yield {
            "id": f"drawn-{seed}-{idx}",
            "family": "drawn",
            "kueue": "drawn",
            "usage_by": "non-tas-pods",
            "levels": [BLOCK, RACK, HOST],
            "nodes": nodes,
            "request": _request(rng, nodes),
        }


def _nodes(rng: random.Random) -> list[Line]:
    gpus, found = rng.choice((4, 8)), []
    racks = rng.randint(2, 4)
    for block in range(1, rng.randint(1, 2) + 1):
        for rack in range(1, racks + 1):
            for host in range(1, HOSTS_OF_RACK + 1):
                path = [f"b{block}", f"b{block}-r{rack}", f"b{block}-r{rack}-h{host:02d}"]
                found.append({"name": path[-1], "path": path, "capacity": gpus, "free": gpus})
    return found


def _fill(rng: random.Random, nodes: Sequence[Line], load: float) -> None:
    """Take a share of the GPUs: on most hosts all, and on some racks more than on others."""
    weights = {node["path"][1]: rng.uniform(0.5, 2.0) for node in nodes}
    order = sorted(nodes, key=lambda node: rng.random() ** weights[node["path"][1]])
    left = round(load * sum(node["capacity"] for node in nodes))
    for node in order:
        whole = node["capacity"]
        taken = min(left, whole if rng.random() < 0.8 else rng.randint(1, whole - 1))
        node["free"] -= taken
        left -= taken


def _request(rng: random.Random, nodes: Sequence[Line]) -> Line:
    """Return a request that hosts can mostly hold, whether or not its rules allow it."""
    units = rng.choice((nodes[0]["capacity"], nodes[0]["capacity"], 2, 1))
    pods = max(1, sum(node["free"] // units for node in nodes))
    size = rng.choice((1, 1, 2, 4, 8, 16))
    size = size if size <= pods else 1
    count = size * rng.randint(1, max(1, min(pods, 72) // size))
    modes = ["required", "preferred", "unconstrained"] + ["slice-only"] * (size > 1)
    request: Line = {"count": count, "mode": rng.choice(modes), "pod_units": units}
    if request["mode"] in ("required", "preferred"):
        request["level"] = rng.choice((BLOCK, RACK))
    if size > 1:
        request |= {"slice_size": size, "slice_level": RACK}
    return request


def drawn_pods(machine: CubesModel, number: int, seed: int) -> Iterator[Line]:
    """Yield `number` states of a pod of cubes, each with a request; a seed gives the same ones.

    Between 20 and 80 % of the chips are in use: some cubes are full, and others have jobs on parts
    of them. One chip in a hundred is down. Requests are for parts of a cube or for whole cubes;
    mostly enough of these are free.
    """
    rng = random.Random(f"pods-{seed}")
    pod = Cubes(machine.cubes, tuple(machine.side))
    sizes = sorted({math.prod(shape) for shape in _part_shapes(pod)})
    for idx in range(number):
        busy = _busy_chips(rng, pod, rng.uniform(0.2, 0.8))
        down = [chip for chip in range(pod.num_chips) if chip not in busy and rng.random() < 0.01]
        gone = busy | {*down}
        whole = sum(gone.isdisjoint(pod.chips_of(cube).tolist()) for cube in range(pod.num_cubes))
        nodes = rng.choice(sizes)
        if rng.random() < 0.4:
            nodes = rng.randint(1, min(pod.num_cubes, whole + 1)) * pod.volume
        yield {
            "id": f"drawn-{seed}-{idx}",
            "family": "drawn",
            "pod": "drawn",
            "cubes": pod.num_cubes,
            "side": list(pod.side),
            "busy": format_node_set(sorted(busy)),
            "down": format_node_set(down),
            "request": {"nodes": nodes},
        }


def _part_shapes(pod: Cubes) -> list[tuple[int, ...]]:
    """Return the shapes of parts of a cube."""
    every = itertools.product(*(range(1, n + 1) for n in pod.side))
    return [shape for shape in every if math.prod(shape) < pod.volume] or [pod.side]


def _busy_chips(rng: random.Random, pod: Cubes, load: float) -> set[int]:
    """Return chips of whole cubes, and of parts where they fit, up to a share of all chips."""
    shapes, busy = _part_shapes(pod), set[int]()
    for cube in rng.sample(range(pod.num_cubes), pod.num_cubes):
        if len(busy) >= load * pod.num_chips:
            break
        if rng.random() < 0.4:
            busy |= {*pod.chips_of(cube).tolist()}
            continue
        for _ in range(rng.randint(1, 4)):
            shape = rng.choice(shapes)
            inside = pod.inside(rng.choice(pod.origins(shape)), shape) + cube * pod.volume
            busy |= {*inside.tolist()}
    return busy
