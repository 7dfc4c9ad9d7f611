"""How much of each Func is needed.

In: a Pipeline. Out: `infer.Regions`: a box for each Func, the shapes of outputs, and what a call must check. Begin
reading at `infer.py`; `accesses.py` says what a stage reads and writes, `interval.py` bounds an index, `solve.py` runs
inference backwards.
"""
