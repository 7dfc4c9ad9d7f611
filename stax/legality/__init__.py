"""Whether a schedule would change a value.

In: a Pipeline and the lines of a schedule. Out: `schedule.legal.Legal`, the token that `lower` asks for, or
LegalityError. Begin reading at `check.py`; `order.py` judges the loops of one stage.
"""
