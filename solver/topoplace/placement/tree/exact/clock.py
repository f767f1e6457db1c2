"""Shares of the time until a deadline."""

from __future__ import annotations

from topoplace import clock


def at_share(share: float, deadline: float) -> float:
    """Return the time when a share of what is left until a deadline is over."""
    now = clock.now()
    return now + share * (deadline - now)
