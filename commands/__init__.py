"""The verbs of the `warcmill` command, one module each; `commands.main` finds and runs them."""
