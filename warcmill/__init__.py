"""Warcmill's library: everything except the tasks. It never imports Luigi."""

__version__ = "0.1.0"
