"""The line's Luigi tasks: one module a namespace."""
