"""The cheapest choice of tables and rows that covers a need: arrays in, arrays out."""
