"""A mapping made elsewhere."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register


@register("mapping", "given", "a mapping made elsewhere, only evaluated and bounded")
def given(problem: MappingProblem, options: Options) -> Outcome:
    """Return the mapping that the options start from."""
    if options.start is None:
        raise InputError("a mapping made elsewhere (--mapping)", field="method", value="given")
    return outcome_of(options.start)
