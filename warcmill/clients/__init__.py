"""Clients of other people's servers: one small package or module each. They know nothing of tasks or markers."""
