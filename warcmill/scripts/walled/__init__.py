"""The processes in which scripts run: what shuts them in, who asks them, and what they do."""
