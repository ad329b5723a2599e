"""The terminal: words that are typed, lines that are printed, and what several verbs share."""
