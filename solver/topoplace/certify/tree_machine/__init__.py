"""Checking an allocation on a tree machine: from its instance and its node lists alone."""

from topoplace.certify.tree_machine.check import check_allocation

__all__ = ["check_allocation"]
