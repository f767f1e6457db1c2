"""Checking an allocation on a tree machine: from its instance and its node lists alone."""
