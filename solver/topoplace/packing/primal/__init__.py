"""What looks for placements."""
