"""The views of the line: a request of `routes.py` in, an answer and its page out. They read the state folder alone."""
