"""Schedules that are worked out: lines that a person could have written, and that the check accepts by itself.

In: a Pipeline, a Machine, and shapes where they are known. Out: lines, each with its reason. Begin with `choose.py`:
what `features.py` says of the program is inlined (`inlining.py`) and grouped (`group.py`), the loops of a group are
written (`heads.py`, `loops.py`), and the check judges the whole. `waves.py` tiles recurrences along isl's bands.
"""
