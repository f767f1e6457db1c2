"""Reads OPB files by code of its own, and solves them by CP-SAT; MPS files by OR-Tools and SCIP."""

from __future__ import annotations

from ortools.linear_solver.python import model_builder
from ortools.sat.python import cp_model

from veripb import model_of_note


def optimum_of(text: str) -> int | None:
    """Return the best value of the level that an OPB file is about; None if there is none."""
    program, known = cp_model.CpModel(), dict[str, cp_model.IntVar]()
    told = ""

    def total(words: list[str]) -> cp_model.LinearExprT:
        terms = []
        for number, name in zip(words[::2], words[1::2], strict=True):
            if name not in known:
                known[name] = program.new_bool_var(name)
            terms.append(int(number) * known[name])
        return sum(terms)

    for line in text.splitlines():
        words = line.removesuffix(" ;").split()
        if words[0] == "*":
            told = line[2:]
        elif words[0] == "min:":
            program.minimize(total(words[1:]))
        elif words[-2] == "=":
            program.add(total(words[:-2]) == int(words[-1]))
        else:
            assert words[-2] == ">="
            program.add(total(words[:-2]) >= int(words[-1]))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(program) != cp_model.OPTIMAL:
        return None
    sign, offset = model_of_note(told)
    return sign * round(solver.objective_value) + offset


def optimum_of_mps(text: str) -> int:
    """Return the same of an MPS file; all its variables have to be read as integers."""
    model, solver = model_builder.Model(), model_builder.Solver("SCIP")
    assert model.import_from_mps_string(text)
    assert all(v.is_integral and v.upper_bound == 1 for v in model.get_variables())
    assert solver.solve(model) == model_builder.SolveStatus.OPTIMAL
    sign, offset = model_of_note(text.splitlines()[1])
    return sign * round(solver.objective_value) + offset
