"""Prices of rows: what they prove, and how good ones are found."""
