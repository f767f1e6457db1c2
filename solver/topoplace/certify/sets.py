"""Which hosts an expression over named sets stands for, by a stack of operators.

`!` binds closest, then `&`, then `|` (docs/reference/formats.md, "Sets of hosts").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from topoplace.certify.report import RefusedError

Hosts = frozenset[int]
_BINDS = {")": 0, "|": 1, "&": 2, "!": 3}


def hosts_of(expression: str, sets: Mapping[str, Hosts], every: Hosts) -> Hosts:
    """Return the hosts of an expression; raise `RefusedError` if it is none."""
    values: list[Hosts] = []
    waiting: list[str] = []

    def apply() -> None:
        operator, last = waiting.pop(), values.pop()
        if operator == "!":
            values.append(every - last)
        else:
            values.append(values.pop() & last if operator == "&" else values.pop() | last)

    wants_value = True
    for token in re.findall(r"[&|!()]|[^\s&|!()]+", f"({expression})"):
        if (token in "&|)") == wants_value:
            raise RefusedError(f"{expression!r} is no expression over sets")
        if token in "!(":
            waiting.append(token)
        elif token in "&|)":
            while waiting and waiting[-1] != "(" and _BINDS[waiting[-1]] >= _BINDS[token]:
                apply()
            wants_value = token != ")"
            if wants_value:
                waiting.append(token)
            elif not waiting:
                raise RefusedError(f"{expression!r} closes a parenthesis that it does not open")
            else:
                waiting.pop()
        elif token in sets:
            values.append(sets[token])
            wants_value = False
        else:
            raise RefusedError(f"{token} is no set of the snapshot")
    if waiting:
        raise RefusedError(f"{expression!r} opens a parenthesis that it does not close")
    return values.pop()
