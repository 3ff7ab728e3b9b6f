"""Evidence against limits on a stream of batches: arrays in, arrays out.

Every comparison is between two samples of each batch: a group and what it is compared with, mostly
the other rows. A line of an array is a comparison, a column a batch.
"""
