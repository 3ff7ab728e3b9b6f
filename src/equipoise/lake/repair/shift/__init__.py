"""Distribution shift between the added rows and the base."""
