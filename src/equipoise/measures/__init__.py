"""Measures: pure functions of counts, in a registry."""
