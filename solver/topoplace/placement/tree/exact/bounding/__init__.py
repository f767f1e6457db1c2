"""Lower bounds of the cost of one request: relaxation, search over it, and the evidence."""
