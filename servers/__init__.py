"""Real servers on loopback, for tests, demos and development: `./scripts/services up`.

One module for each server: `up(work)` starts it and returns an object with its addresses and with methods that
break it; `down(work)` ends what `up` started. Ports and versions are in `pins.py`, nowhere else.
"""
