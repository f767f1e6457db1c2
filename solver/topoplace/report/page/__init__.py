"""Self-contained HTML pages: a comparison of methods, and a single result (`pages`)."""
