"""Offers of the tables of a lake for a plan."""
