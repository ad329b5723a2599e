"""What a script imports, under pyspider's names: a handler, responses, addresses. It imports nothing else of ours.

It runs in a process of its own, whose only task is one callback at a time (`warcmill/scripts/worker.py`).
"""
