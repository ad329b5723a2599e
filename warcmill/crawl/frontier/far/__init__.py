"""The distance between a process and its Redis: calls under way at once, leases and answers that are there in time."""
