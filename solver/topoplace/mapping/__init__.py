"""Tasks of an application onto the routers of an allocation."""
