"""Ways to treat missing values: how each moves Uniform Bias, on real gaps and on made ones."""
