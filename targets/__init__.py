"""Luigi's targets: markers, and nothing else."""
