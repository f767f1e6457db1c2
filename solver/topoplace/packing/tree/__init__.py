"""Trees of branches, whose leaves carry the prices that bound them."""
