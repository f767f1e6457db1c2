"""VeriPB, where it is installed (`make veripb`), and proofs for it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp

_BESIDE = Path(sys.prefix) / "bin" / "veripb"
PROGRAM = shutil.which("veripb") or (str(_BESIDE) if os.access(_BESIDE, os.X_OK) else None)
needs_veripb = pytest.mark.skipif(PROGRAM is None, reason="no program veripb (make veripb)")


def verdict(folder: Path) -> str:
    """Return what VeriPB says of the proof in a folder: its last line, or that it failed."""
    assert PROGRAM is not None
    files = [str(folder / "model.opb"), str(folder / "proof.pbp")]
    run = subprocess.run([PROGRAM, *files], capture_output=True, text=True, check=False)
    said = run.stdout.strip().splitlines()
    verified = run.returncode == 0 and bool(said) and said[-1].startswith("s VERIFIED")
    return said[-1] if verified else f"refused: {run.stderr[-500:]}"


def sides(result: Any, name: str) -> tuple[int | None, int | None]:
    """Return the bound and the value of a level as the model of it has them, minimised."""
    (level,) = (one for one in result.levels if one.name == name)
    notes = tp.export(result, to_format="opb", level=name).text.splitlines()[:3]
    (told,) = (line[2:] for line in notes if line.startswith(f"* {name} = "))
    sign, offset = model_of_note(told)
    bound, value = level.bound, level.objective
    return sign * (bound - offset), None if value is None else sign * (value - offset)


def model_of_note(told: str) -> tuple[int, int]:
    """Return what the note ``level = -objective + 3`` says: the sign, and what is added."""
    words = told.split(" = ")[1].split(" + ")
    return -1 if words[0] == "-objective" else 1, int(words[1]) if len(words) > 1 else 0


def assert_verified(result: Any, folder: Path, *names: str) -> None:
    """Have VeriPB check the bounds of levels, by default of all that have certificates."""
    own = [one for one in result.levels if one.certificate is not None]
    for level in own:
        if names and level.name not in names:
            continue
        tp.export(result, to_format="veripb", level=level.name).save(folder)
        bound, value = sides(result, level.name)
        expected = f"s VERIFIED BOUNDS {bound} <= obj <= {'INF' if value is None else value}"
        assert verdict(folder) == expected, level.name


def mutants(model: str, proof: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield for ever models with proofs that prove too much, or lack a step."""
    lines = proof.splitlines()
    steps = [k for k, line in enumerate(lines) if line.startswith(("pol", "rup"))]
    (at,) = (k for k, line in enumerate(lines) if line.startswith("conclusion"))
    while True:
        mutant, way = list(lines), rng.randrange(4)
        if way == 0:  # a bound that is better, without another proof
            words = lines[at].split()
            words[2] = str(int(words[2]) + rng.randint(1, 9))
            mutant[at] = " ".join(words)
        elif way == 1:  # a step less: later ones are about others
            del mutant[rng.choice(steps)]
        elif way == 2 and lines[2].startswith("sol"):  # one more of 0 or less of 1
            words = lines[2].split()
            k = rng.randrange(1, len(words))
            words[k] = words[k].removeprefix("~") if words[k].startswith("~") else f"~{words[k]}"
            end = ";" if k == len(words) - 1 and not words[k].endswith(";") else ""
            mutant[2] = " ".join(words) + end
        elif way == 3:  # an objective that has more
            own = model.splitlines()
            k = next(k for k, line in enumerate(own) if line.startswith("min:"))
            words = own[k].split()
            if len(words) > 3:
                number = 1 + 2 * rng.randrange((len(words) - 2) // 2)
                words[number] = str(int(words[number]) - rng.randint(50, 99))
                yield "\n".join([*own[:k], " ".join(words), *own[k + 1 :]]) + "\n", proof
            continue
        if mutant != lines:
            yield model, "\n".join(mutant) + "\n"
