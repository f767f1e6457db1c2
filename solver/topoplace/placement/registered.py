"""Importing this module registers every placement method that topoplace ships."""

from __future__ import annotations

__all__: list[str] = []
