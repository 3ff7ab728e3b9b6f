"""Bias watched as data arrives: a history of counts, tests that may be looked at every day, alerts."""
