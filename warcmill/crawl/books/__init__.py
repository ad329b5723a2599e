"""Make each entry durable, all of it or none of it, and recover after a kill."""
