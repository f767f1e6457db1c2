"""What is wrong with a document, told as all else: expected X, found Y."""

from __future__ import annotations

import contextlib
import json
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from topoplace.errors import InputError, number_of, visible
from topoplace.kinds import kind_of_machine, shipped
from topoplace.snapshot.schema import (
    NAME_PATTERN,
    SET_PATTERN,
    MachineModel,
    PrismModel,
    Snapshot,
)

# ---- What kind of file something is, and which commands take it: for whoever gave the wrong one --

SWF = "a job log (SWF), which topoplace replay and convert --from swf take"

_SCHEMAS = {
    "topoplace.snapshot/1": ("a snapshot", "topoplace place, compare, batch and map --on"),
    "topoplace.mapping/1": ("a mapping instance", "topoplace compare and batch"),
    "topoplace.objects/1": ("an instance of objects of an earlier version, to be mapped again", ""),
    "topoplace.application/1": ("an application of objects", "topoplace map --objects"),
    "topoplace.workload/1": ("a workload table", ""),
    "topoplace.result/4": ("a result", "topoplace check, show, compare and map --on"),
    "topoplace.frontier/1": ("a frontier", "topoplace check and show"),
    "topoplace.optima/1": ("placements as good as each other", "topoplace check and show"),
    "topoplace.result/3": ("a result of an earlier version, to be solved again", ""),
    "topoplace.result/2": ("a result of an earlier version, to be solved again", ""),
    "topoplace.result/1": ("a result of an earlier version, to be solved again", ""),
}

_SKIPPED = rb"\s*((#[^\n]*|---)\n\s*)*"  # comments, and the beginning of a YAML document

_JOBS, _RESERVATIONS = "Slurm's jobs", "Slurm's reservations"

_TEXTS = (
    (re.compile(_SKIPPED + rb"(Switch|Block)Name\s*=", re.I), "a Slurm topology.conf", "--on and"),
    (re.compile(_SKIPPED + rb"-\s+topology\s*:"), "a Slurm topology.yaml", "--on and"),
    (re.compile(_SKIPPED + rb"NodeName\s*=", re.I), "Slurm's node states", "--nodes of"),
    (re.compile(rb"\s*PartitionName\s*="), "Slurm's partitions", "--partitions of"),
    (re.compile(rb"\s*ReservationName\s*="), _RESERVATIONS, "--reservations of"),
    (re.compile(rb"\s*JobId=|[^\n]*\bJOBID\b"), _JOBS, "--jobs of"),
)

_TABLE = re.compile(rb"\s*(NAMESPACE\s+)?NAME\s+[A-Z]")
_KUBECTL = "a table of kubectl get, which has to be asked for -o yaml or -o json"

_SWF_LINE = re.compile(rb"\s*(;|(-?\d+(\.\d+)?\s+){17}-?\d+(\.\d+)?\s*$)", re.MULTILINE)


_MOST_KEYS = 5


def kind_named(schema: object) -> str:
    """Return what documents of a schema are, with the schema, for messages."""
    what = _SCHEMAS.get(str(schema), ("", ""))[0]
    return f'{what} ("{schema}")' if what else f'"{schema}"'


def kind_of_document(raw: dict[str, Any]) -> str:
    """Tell what a JSON object is and which commands take it."""
    schema = raw.get("schema")
    if isinstance(schema, str) and schema in _SCHEMAS:
        takers = _SCHEMAS[schema][1]
        return kind_named(schema) + (f", which {takers} take" if takers else "")
    if schema is None and raw.get("name") and {"shape", "switches", "distances"} & raw.keys():
        return "a machine, which the option --on takes"
    for key, what in (("jobs", _JOBS), ("reservations", _RESERVATIONS)):
        if schema is None and isinstance(raw.get(key), list):
            return f"{what}, which --{key} of topoplace convert --from slurm takes"
    return "nothing" if schema is None else json.dumps(schema)[:80]


def listed_keys(raw: dict[str, Any]) -> str:
    """Return some of the keys of an object as text."""
    shown = [json.dumps(key)[:40] for key in [*raw][:_MOST_KEYS]]
    return ", ".join(shown) + (", .." if len(raw) > _MOST_KEYS else "") if raw else "nothing"


def kind_of_text(text: bytes) -> str | None:
    """Tell what a text that is no JSON is and which commands take it; None if it is unknown."""
    if _SWF_LINE.match(text):
        return SWF
    if _TABLE.match(text):
        return _KUBECTL
    for pattern, what, option in _TEXTS:
        if pattern.match(text):
            verb = "take" if option.endswith("and") else "takes"
            return f"{what}, which {option} topoplace convert --from slurm {verb}"
    return None


def kind_of_json(text: str) -> str | None:
    """Return what kind of JSON document a text is; None if it is no JSON object."""
    if not text.lstrip().startswith("{"):
        return None
    with contextlib.suppress(ValueError, RecursionError):
        known = kind_of_document(json.loads(text))
        return "a JSON document" if known == "nothing" else known
    return None


# ---- The faults that pydantic finds in a document, told as all others: expected X, found Y -------

Details = dict[str, Any]

_QUOTED = re.compile(r"'([^']*)'")

_PATTERNS = {
    NAME_PATTERN: "a name without blanks, commas and semicolons",
    SET_PATTERN: "a name without blanks, &, |, ! and parentheses",
    r"^[A-Za-z0-9_.,\[\]\- ]*$": 'nodes such as "0-47,60", on a tree "n[01-16,20]"',
}

_PLAIN = {
    **dict.fromkeys(["missing", "union_tag_not_found"], "a value"),
    **dict.fromkeys(["int_type", "int_from_float"], "an integer"),
    **dict.fromkeys(["list_type", "tuple_type"], "a list"),
    **dict.fromkeys(["dict_type", "model_type", "model_attributes_type"], "an object"),
    "extra_forbidden": "one of the known fields",
    "int_parsing_size": "an integer of fewer digits",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "none_required": "null",
}
_EXPECTED: dict[str, Callable[[Details], str]] = {
    "literal_error": lambda d: _one_of(d["expected"]),
    "enum": lambda d: _one_of(d["expected"]),
    "union_tag_invalid": lambda d: _one_of(d["expected_tags"]),
    "greater_than": lambda d: _limit("above", d["gt"]),
    "greater_than_equal": lambda d: _limit("of at least", d["ge"]),
    "less_than": lambda d: _limit("below", d["lt"]),
    "less_than_equal": lambda d: _limit("of at most", d["le"]),
    "string_too_short": lambda d: f"text of at least {_count(d['min_length'], 'character')}",
    "string_too_long": lambda d: f"text of at most {_count(d['max_length'], 'character')}",
    "string_pattern_mismatch": lambda d: _PATTERNS.get(d["pattern"], f"text like {d['pattern']}"),
    "too_short": lambda d: f"a list of at least {_count(d['min_length'], 'entry')}",
    "too_long": lambda d: f"a list of at most {_count(d['max_length'], 'entry')}",
}

_NAMES = {"literal_error": "expected", "enum": "expected", "union_tag_invalid": "expected_tags"}
"""The detail that holds the names to choose from."""

_ABSENT = ("missing", "union_tag_not_found")


def faults_of(error: ValidationError, model: type[BaseModel], raw: object) -> InputError:
    """Return what keeps JSON values from being a document as one error, each field named once."""
    faults: dict[str, InputError] = {}
    for problem in error.errors(include_url=False):
        fault = _fault(typing.cast(Details, problem), model, raw)
        faults.setdefault(fault.field or "", fault)
    return InputError.together(list(faults.values()))


def _fault(problem: Details, model: type[BaseModel], raw: object) -> InputError:
    kind, details = problem["type"], problem.get("ctx", {})
    parts = list(_parts(problem["loc"], raw, added=kind in _ABSENT))
    if kind.startswith("union_tag"):
        parts.append(details["discriminator"].strip("'"))
    known: list[str] = []
    value = problem.get("input")
    if kind == "extra_forbidden":
        known = _fields_at(*_of_others(model, problem["loc"][:-1], raw))
        value = str(problem["loc"][-1])
    elif kind in _NAMES:
        known = _QUOTED.findall(details[_NAMES[kind]])
    if kind == "union_tag_invalid":
        value = details["tag"]
    if kind == "string_pattern_mismatch" and visible(str(value)) != value:
        problem = {**problem, "msg": "a name without control and text-direction characters"}
        kind = "unseen"
    told = _EXPECTED.get(kind)
    expected = _PLAIN.get(kind) or (told(details) if told else _told(problem["msg"]))
    found = "nothing" if kind in _ABSENT else "null" if value is None else None
    return InputError(expected, field=_path(parts), value=value, found=found, known=known)


def _parts(loc: tuple[Any, ...], raw: Any, *, added: bool) -> Iterator[int | str]:
    """Yield the parts of a location that are in the document; others only tell a union's form.

    With `added`, the last part is yielded although it is not there.
    """
    for idx, part in enumerate(loc):
        is_last = idx == len(loc) - 1
        there = range(len(raw)) if isinstance(raw, list) else raw if isinstance(raw, dict) else ()
        if part in there:
            raw = raw[part]
        elif not (added and is_last):
            continue
        yield part


def _path(parts: list[int | str]) -> str:
    field = ""
    for part in parts:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    return field


def _of_others(
    model: type[BaseModel], loc: tuple[int | str, ...], raw: Any
) -> tuple[type[BaseModel], tuple[int | str, ...]]:
    """Return what a location is of: in a machine of another package's kind, of its own model."""
    machine = raw.get("machine") if isinstance(raw, dict) and loc[:1] == ("machine",) else None
    kind = kind_of_machine(str(machine.get("kind"))) if isinstance(machine, dict) else None
    if kind is None or kind.name in shipped():
        return model, loc
    return kind.get("model"), loc[1:]


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the names of the fields that the object at a location may have."""
    models = [model]
    for part in loc:
        fields = [field for m in models for name, field in _fields(m) if name == part]
        tagged = [m for m in models if _tag(m) == part]
        models = [m for field in fields for m in _models_in(field.annotation)] or tagged or models
    return list(dict.fromkeys(name for m in models for name, _ in _fields(m)))


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _tag(model: type[BaseModel]) -> object:
    kind = model.model_fields.get("kind")
    return None if kind is None else next(iter(typing.get_args(kind.annotation)), None)


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models_in(part)]


def _one_of(names: str) -> str:
    found = _QUOTED.findall(names)
    return f"one of {', '.join(found)}" if len(found) > 1 else f'"{found[0]}"' if found else names


def _limit(relation: str, limit: float) -> str:
    number = "an integer" if isinstance(limit, int) else "a number"
    return f"{number} {relation} {int(limit) if limit == int(limit) else limit}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing if number == 1 else thing.replace('entry', 'entrie') + 's'}"


def _told(message: str) -> str:
    text = message.removeprefix("Value error, ").removeprefix("Input should be ")
    return text[:1].lower() + text[1:]


# ---- Whether a machine given by name is one that the rest of a snapshot speaks of ----------------

_LETTER = re.compile(r"[A-Za-z_]")
_NUMBER = re.compile(r"\d+")


def require_suited(snapshot: Snapshot, machine: MachineModel) -> None:
    """Raise `InputError` if all else in a snapshot is about another machine than the one it names.

    Else every node and prism of the snapshot would be blamed for what is wrong with the machine.
    """
    jobs = [(f"running[{idx}]", job) for idx, job in enumerate(snapshot.running)]
    prisms = [(f"{field}.prism", job.prism) for field, job in jobs if job.prism is not None]
    for name, own in snapshot.regions.items():
        prisms += [(f"regions.{name}[{idx}]", prism) for idx, prism in enumerate(own)]
    sets = [("down", snapshot.down), *((f"{field}.nodes", job.nodes) for field, job in jobs)]
    sets = [(field, text) for field, text in sets if text.strip()]
    wanted = _machine_of_prisms(prisms, machine)
    if wanted is None and machine.num_nodes is not None:
        wanted = _machine_of_nodes(sets, machine.num_nodes)
    if wanted is not None:
        raise InputError(wanted, field="machine", value=str(snapshot.machine))


def _machine_of_prisms(prisms: list[tuple[str, PrismModel]], machine: MachineModel) -> str | None:
    """Return the machine that all prisms are of, if it is another one."""
    if not prisms:
        return None
    field, dims = prisms[0][0], len(prisms[0][1].extents)
    if machine.num_dims is None:
        return f"a torus or mesh, as {field} is a prism"
    others = all(len(prism.extents) == dims != machine.num_dims for _, prism in prisms)
    return f"a machine of {number_of(dims, 'dimension')}, as {field} has" if others else None


def _machine_of_nodes(sets: list[tuple[str, str]], num_nodes: int) -> str | None:
    """Return a machine that suits most sets of nodes, if one of `num_nodes` nodes does not."""
    if sets and all(_LETTER.search(text) for _, text in sets):
        return f"a tree machine, as {sets[0][0]} has names of nodes"
    most = [(max(map(int, _NUMBER.findall(text)), default=0), field) for field, text in sets]
    if sum(high >= num_nodes for high, _ in most) <= len(most) / 2:
        return None
    high, field = max(most)
    return f"a machine of more than {number_of(num_nodes, 'node')}, as {field} has node {high}"
