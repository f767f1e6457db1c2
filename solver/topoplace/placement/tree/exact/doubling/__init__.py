"""Binomial jobs: thresholds of the steps ruled out by what leaves can do step by step."""
