"""Effects of a repair on models, which are trained and tested on many random splits."""
