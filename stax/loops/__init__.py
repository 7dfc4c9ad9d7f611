"""The program as loops and buffers, before any machine is chosen.

In: what `lower` builds and rewrites. Out: programs for `backends`, for `interpret`, and for people (`show`). Begin
reading at `nodes.py`; `walk.py` rebuilds, `verify.py` says what holds of every program, `interpret.py` what one means,
`launches.py` how one is cut for a machine that is handed kernels.
"""
