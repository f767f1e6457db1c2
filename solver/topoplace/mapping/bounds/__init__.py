"""Bounds on the hop-bytes of any mapping, with certificates that the checker verifies."""
