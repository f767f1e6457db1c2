"""Jobs on hierarchies of domains (docs/guide/hierarchies.md)."""
