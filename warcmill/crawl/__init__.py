"""The built-in crawler: it fetches what a feed asks for and leaves what Heritrix leaves, WARCs and logs of a launch.

It knows formats, layout, the model and the engine's protocol; no store, marker, launch or task, as Heritrix knows none.
"""
