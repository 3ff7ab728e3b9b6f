"""The explorer: pages that measure, plan, find and compare in the browser, each with a JSON twin.

Needs the extra ``web``. Routes only read requests and write answers; everything that computes runs in
worker processes, which can be cancelled and are limited in time and memory.
"""
