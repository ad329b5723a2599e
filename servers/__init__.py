"""Real servers on loopback, for tests, demos and development: `./scripts/services up`.

One module a server: `up(work)` starts it and returns an object that knows its addresses and its faults,
`down(work)` ends what `up` started. Ports and versions are in `pins.py`, nowhere else.
"""
