"""Independent verification of a repair from its files."""
