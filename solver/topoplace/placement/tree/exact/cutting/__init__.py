"""Boxes of thresholds, cut by thresholds that are impossible."""
