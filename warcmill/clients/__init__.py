"""Clients of external servers, one module or package each. They know no tasks and no markers."""
