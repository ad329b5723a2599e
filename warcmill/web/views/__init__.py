"""The views of the line: a request of `routes.py` in, a document and its page out. They read the state folder alone."""
