"""Whether added rows look like those that were there."""
