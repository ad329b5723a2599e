"""The one Luigi target of the line: a marker."""
