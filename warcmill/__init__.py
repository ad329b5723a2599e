"""Warcmill's library: everything but the tasks. It never imports Luigi."""

__version__ = "0.1.0"
