"""Luigi tasks: one module per namespace."""
