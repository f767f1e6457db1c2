"""Placement rules of schedulers, and the textbook's: `queue` serves requests with any of them."""
