"""The solver of batches for tests, as it is but for what its results tell of their process."""

from __future__ import annotations

import json
import os
import sys

from topoplace.study.batch import solving
from topoplace.study.batch.task import Task

prepare = solving.prepare


def solve_task(task: Task) -> str:
    """Solve; `versions` of the result says which process this is, and what it loaded meanwhile."""
    before = set(sys.modules)
    document = json.loads(solving.solve_task(task))
    new = sorted(set(sys.modules) - before)
    document["versions"] |= {"process": str(os.getpid()), "loaded": " ".join(new)}
    document["versions"]["packing"] = str("topoplace.packing.search" in sys.modules)
    return json.dumps(document)
