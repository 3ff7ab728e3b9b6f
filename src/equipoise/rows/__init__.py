"""Rows in memory: drawing them by cell, and giving their columns as plain values."""
