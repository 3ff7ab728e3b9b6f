"""Rows in memory resampled: counted, how many must move, and which are chosen."""
