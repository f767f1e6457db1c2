"""Placement rules of schedulers and of textbooks: `queue` serves requests with any of them."""
