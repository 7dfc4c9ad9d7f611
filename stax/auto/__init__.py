"""Schedules that are worked out: lines that a person could have written, and that the check accepts by itself.

In: a Pipeline. Out: lines for some of its Funcs. `waves.py` tiles recurrences along the bands that isl finds.
"""
