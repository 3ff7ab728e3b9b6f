"""Readers of what a database cannot open itself; engines read the copies that they make."""
