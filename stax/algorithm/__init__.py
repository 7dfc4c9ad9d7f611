"""What is to be computed: the frozen program, before any schedule.

In: what `lang.freeze` makes. Out: Pipelines for `bounds`, `schedule` and `lower`, and their meaning (`interpret`).
Begin reading at `nodes.py`; `show.py` prints a Pipeline, `verify.py` says what holds of each, `interpret.py` is the
oracle.
"""
