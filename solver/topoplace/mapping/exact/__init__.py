"""Engines of proofs: embeddings of dilation 1 for any size, branch and bound for a few tasks."""
