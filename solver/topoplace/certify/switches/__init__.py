"""Checking an allocation on a tree machine: from its instance and its node lists alone.

`instance` reads what is there and what it costs, `check` the solution; `filling` bounds what can
start, and `nogoods` what one request costs: by thresholds (`relaxed`) and the `rules` of its
pattern.
"""
