"""Prices of rows: the bounds that they prove, and how good ones are found."""
