"""What the tables of a lake could give for a plan."""
