"""The public functions. Importing this package loads none of them."""
