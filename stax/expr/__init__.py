"""Scalar values, shared by algorithms and loop programs.

Begin reading at `nodes.py`. `build.py` makes nodes and folds constants, `walk.py` visits and rewrites graphs without
recursion, `number.py` says which nodes are equal, `affine.py` is arithmetic on positions, `evaluate.py` is what each
node means in NumPy, and `intrinsics.py` spells functions out.
"""
