"""Ranks put on leaves whose counts are given, under given thresholds."""
