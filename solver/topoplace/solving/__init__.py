"""What every problem shares: options, methods, outcomes, and the one call that solves.

Read `outcome` for what a method hands back and reports on the way, `registry` for what it takes
and how it is registered, `topoplace.interrupts` for what ends it, and `solve` for how an outcome
becomes a result document. What differs from problem to problem (placements on tori, allocations on
trees, mappings) is a `Frame`.
"""

from topoplace.interrupts import (
    Interrupted as Interrupted,
    heeded as heeded,
)
from topoplace.solving.outcome import (
    Bound as Bound,
    Display as Display,
    Incumbent as Incumbent,
    Outcome as Outcome,
    Progress as Progress,
    stronger as stronger,
)
from topoplace.solving.registry import (
    Method as Method,
    Options as Options,
    Solver as Solver,
    in_turn as in_turn,
    method_names as method_names,
    method_of as method_of,
    methods as methods,
    register as register,
)
from topoplace.solving.solve import (
    found_by as found_by,
    result_of as result_of,
    solve as solve,
)
