"""Jobs on hierarchies of domains (docs/hierarchies.md)."""
