"""Addresses that are not rooms: downloads, uploads, and long work."""
