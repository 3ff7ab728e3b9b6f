"""What the charts of several subjects are made of."""
