"""The version: written here once, read by the build."""

__version__ = "0.1.0"
