"""A proved schedule as loops.

In: `schedule.legal.Legal`. Out: a `loops` Program. Begin reading at `passes.py`, the list of passes; each is a file
that shows before and after.
"""
