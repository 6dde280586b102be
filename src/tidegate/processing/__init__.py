"""Processing: the supervisor, its child processes, and the processors that turn one settled file into a result.

Names nothing here: a child imports this package at every start, and must not wait for what only a supervisor needs.
"""
