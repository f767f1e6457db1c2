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
    proof = Proof.SEARCH if optimum.bound == optimum.objective else Proof.NONE
    if optimum.proof is not proof:
        raise RefusedError(f"proof is {optimum.proof.value}, the figures say {proof.value}")
    _check_depths(instance, window, optimum)
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
    if proven > hop_bytes:
        raise RefusedError(
            f"the flow proves {proven}, yet the mapping, which is in the window, reaches "
            f"{hop_bytes}: the evidence contradicts itself"
        )
    if optimum.window_bound > proven:
        raise RefusedError(f"window bound is {optimum.window_bound}, the flow proves {proven}")
    return f"the flow proves {proven} in its window; {optimum.proof.value} elsewhere, not repeated"


def _check_depths(instance: Instance, window: Window, optimum: ClassOptimum) -> None:
    """Raise unless the extents searched lie in the machine and are no less than the window's."""
    shape = instance.torus.shape
    own = [
        window.depth if d == window.pencil else extent for d, extent in enumerate(window.extents)
    ]
    if len(optimum.max_depth) != len(shape) or not all(
        least <= most <= n for least, most, n in zip(own, optimum.max_depth, shape, strict=True)
    ):
        raise RefusedError(
            f"max_depth is {optimum.max_depth}, the window has {own} of the machine's {list(shape)}"
        )
