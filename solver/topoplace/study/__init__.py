"""Methods on many instances: `compare` (with `case`, `ranking`), `batch`, `replay`, `external`."""
