"""The rules for what may be crawled, and when: one policy a module, each pure."""
