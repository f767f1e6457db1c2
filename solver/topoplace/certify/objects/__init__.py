"""The checker of mappings of objects: `instance`, what certificates prove in `bounds`, `check`."""
