"""The answers of the verbs that look: `--json` prints one, and the page of the same name shows it."""
