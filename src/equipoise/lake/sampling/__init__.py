"""Sources that can only be sampled, each draw at a price."""
