"""Ways to map tasks; each module registers its methods when imported."""
