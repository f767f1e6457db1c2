"""Models in the formats of solvers: OPB, free MPS, LP, and the proto of CP-SAT."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ortools.sat.python import cp_model

from topoplace.explicit.model import Model, Row, Sum


def opb(model: Model) -> Iterator[str]:
    """Yield the lines of a pseudo-Boolean model (OPB, with names)."""
    equal = sum(row.sense == "=" for row in model.rows)
    yield f"* #variable= {len(model.variables)} #constraint= {len(model.rows)} #equal= {equal}"
    yield from (f"* {note}" for note in model.notes)
    yield f"min: {_terms(model, model.objective)} ;"
    for row in model.rows:
        yield f"{opb_row(model, row)} ;"


def opb_row(model: Model, row: Row) -> str:
    """Return a row as OPB has it, where ``<=`` is written as ``>=``."""
    sign = -1 if row.sense == "<=" else 1
    relation = "=" if row.sense == "=" else ">="
    return f"{_terms(model, row.sum, sign)} {relation} {sign * row.limit}"


def _terms(model: Model, of: Sum, sign: int = 1) -> str:
    return " ".join(f"{sign * c:+d} {model.variables[v]}" for v, c in of.terms())


def lp(model: Model) -> Iterator[str]:
    """Yield the lines of a model in CPLEX's LP format."""
    yield from (f"\\ {note}" for note in model.notes)
    yield "minimize"
    yield from _wrapped(" obj:", model, model.objective, "")
    yield "subject to"
    for row in model.rows:
        yield from _wrapped(f" {row.name}:", model, row.sum, f" {row.sense} {row.limit}")
    yield "binary"
    yield from (f" {name}" for name in model.variables)
    yield "end"


def _wrapped(head: str, model: Model, of: Sum, end: str) -> Iterator[str]:
    """Yield a sum in lines of a few terms, as solvers limit the length of lines."""
    terms = [f"{c:+d} {model.variables[v]}" for v, c in of.terms()] or [f"0 {model.variables[0]}"]
    for k in range(0, len(terms), 8):
        last = end if k + 8 >= len(terms) else ""
        yield f"{head if not k else '  '} {' '.join(terms[k : k + 8])}{last}"


def mps(model: Model) -> Iterator[str]:
    """Yield the lines of a model in free MPS format."""
    yield from (f"* {note}" for note in model.notes)
    yield "NAME topoplace"
    yield "ROWS"
    yield " N obj"
    letters = {">=": "G", "<=": "L", "=": "E"}
    yield from (f" {letters[row.sense]} {row.name}" for row in model.rows)
    columns: list[list[str]] = [[] for _ in model.variables]
    for name, of in [("obj", model.objective), *((row.name, row.sum) for row in model.rows)]:
        for v, c in of.terms():
            columns[v].append(f"{name} {c}")
    yield "COLUMNS"
    yield " FROM 'MARKER' 'INTORG'"  # a name and two words: HiGHS takes a third one for a row
    for name, entries in zip(model.variables, columns, strict=True):
        yield from (f" {name} {entry}" for entry in entries or ["obj 0"])
    yield " TO 'MARKER' 'INTEND'"
    yield "RHS"
    yield from (f" RHS {row.name} {row.limit}" for row in model.rows if row.limit)
    yield "BOUNDS"
    yield from (f" UP BND {name} 1" for name in model.variables)
    yield "ENDATA"


def cp_sat(model: Model) -> Iterator[str]:
    """Yield the text of CP-SAT's proto (`CpModelProto`)."""
    yield from str(cp_model_of(model).proto).splitlines()


WRITERS: Mapping[str, tuple[str, Callable[[Model], Iterator[str]]]] = {
    "opb": ("opb", opb),
    "mps": ("mps", mps),
    "lp": ("lp", lp),
    "cp-sat": ("pbtxt", cp_sat),
}
"""By format, the ending of a file and what yields its lines."""


def cp_model_of(model: Model, zeros: Collection[int] = ()) -> Any:
    """Return a model as a `CpModel`, in which some variables are 0."""
    program = cp_model.CpModel()
    every = [
        program.new_int_var(0, int(v not in zeros), name) for v, name in enumerate(model.variables)
    ]

    def total(of: Sum) -> Any:
        own = [every[v] for v in of.variables.tolist()]
        return cp_model.LinearExpr.weighted_sum(own, of.coefficients.tolist())

    for row in model.rows:
        own, limit = total(row.sum), row.limit
        program.add(
            own >= limit
            if row.sense == ">="
            else own <= limit
            if row.sense == "<="
            else own == limit
        )
    program.minimize(total(model.objective))
    return program
