"""The Luigi tasks: what must be there before, what is left behind, and one step of `warcmill` between."""
