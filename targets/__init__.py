"""Luigi's targets: only markers."""
