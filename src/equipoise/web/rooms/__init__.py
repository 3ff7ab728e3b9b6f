"""The rooms of the explorer, in the order of the method.

Each module holds the address of a room, the options of its form, and the function that computes what
it shows. That function runs in a worker process.
"""
