"""The books of a launch: each entry is durable, all of it or none of it, also after a kill."""
