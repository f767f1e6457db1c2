"""Which jobs of a log communicate, and how (Mishra 2020, sections 5.1 and 6.2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from topoplace.errors import InputError
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.study.replay.log import LogJob


def _shares(**shares: int) -> tuple[PatternUse, ...]:
    return tuple(PatternUse(pattern=Pattern(name), share=share) for name, share in shares.items())


MIXES = MappingProxyType(
    {
        "A": _shares(rhvd=33),
        "B": _shares(rhvd=50),
        "C": _shares(rhvd=70),
        "D": _shares(rd=15, binomial=35),
        "E": _shares(rd=21, binomial=49),
    }
)
"""The five mixes of section 6.2: patterns with their share of the run time, the rest computes."""


def with_intensive(
    jobs: Sequence[LogJob], percent: int, patterns: Sequence[PatternUse], seed: int
) -> tuple[LogJob, ...]:
    """Return the jobs, a drawn `percent` of them (rounded down) with these patterns.

    Raises
    ------
    InputError
        If `percent` is not between 0 and 100.
    """
    if not 0 <= percent <= 100:
        raise InputError("a number from 0 to 100", field="percent", value=percent)
    order = np.random.default_rng(seed).permutation(len(jobs))
    drawn = set(order[: len(jobs) * percent // 100].tolist())
    return tuple(
        dataclasses.replace(job, patterns=tuple(patterns) if idx in drawn else ())
        for idx, job in enumerate(jobs)
    )
