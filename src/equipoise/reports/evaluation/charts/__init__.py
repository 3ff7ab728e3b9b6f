"""The charts of an evaluation."""
