"""Pages about who works here: people and their tokens, and who did what."""
