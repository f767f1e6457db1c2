"""What is claimed of a mapping among the pencil placements of its region."""

from __future__ import annotations

from topoplace.certify.mapping.flow import window_value
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.mapping.layout import Window
from topoplace.certify.report import RefusedError
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum


def check_optimum(
    instance: Instance, window: Window | None, hop_bytes: int, optimum: ClassOptimum
) -> str:
    """Check a class optimum: its figures, and by its flow the bound of the chosen window.

    Returns
    -------
    str
        A summary for the report, which says what was not repeated.
    """
    if window is None:
        raise RefusedError("an optimum of pencils without a layout that holds")
    if optimum.objective != hop_bytes:
        raise RefusedError(f"objective is {optimum.objective}, the hop-bytes are {hop_bytes}")
    if optimum.bound > optimum.objective:
        raise RefusedError(f"bound {optimum.bound} is above objective {optimum.objective}")
    if optimum.proof not in (Proof.SEARCH, Proof.NONE):
        raise RefusedError(f"proof is {optimum.proof.value}, a search leaves no certificate")
    if (optimum.window_bound is None) != (optimum.flow is None):
        raise RefusedError("a window bound and its flow come together or not at all")
    if optimum.window_bound is None or optimum.flow is None:
        return f"bound {optimum.bound} by {optimum.proof.value}, not repeated"
    if not optimum.bound <= optimum.window_bound <= hop_bytes:
        raise RefusedError(
            f"window bound {optimum.window_bound} is not between the bound {optimum.bound} "
            f"and the hop-bytes {hop_bytes}"
        )
    proven = window_value(instance, window, optimum.flow)
    if optimum.window_bound > proven:
        raise RefusedError(f"window bound is {optimum.window_bound}, the flow proves {proven}")
    return f"the flow proves {proven} in its window; {optimum.proof.value} elsewhere, not repeated"
