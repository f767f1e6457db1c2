"""Placements on hierarchies: `instance` reads, `rows` and `oracle` price, `check` claims."""
