"""External allocators: run, checked against the rules, and scored like our own methods."""
