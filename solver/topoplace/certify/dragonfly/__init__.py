"""The checker of dragonflies: `check` has the claims, `instance` the rules, `oracle` the links."""
