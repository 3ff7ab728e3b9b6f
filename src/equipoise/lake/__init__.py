"""Real rows for a plan: where they come from, and how they get into a table."""
