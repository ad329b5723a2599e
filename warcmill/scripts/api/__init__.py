"""The modules that a script imports, under pyspider's names: a handler, responses, addresses. They import nothing else
of ours.

It runs in a process of its own, whose only task is one callback at a time (`warcmill/scripts/walled/worker.py`).
"""
