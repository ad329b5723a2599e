"""The facts of claims, typed: one frozen class for each claim that has facts. Each is in the module of its chain.

`from_claim` raises BadInput with the marker's path and the fact that is missing or of another type. So a step that
needs a fact fails and names it, and audit shows such a marker as broken, for its own launch alone.
`MarkerStore.read` and `MarkerStore.holds` do not check facts: to them such a marker is sound, and it is redone only
when an operator asks.

Read a fact that was added after the first release of its marker with `maybe`: older markers lack it.
"""
