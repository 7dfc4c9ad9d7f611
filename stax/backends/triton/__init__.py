"""Loop programs as Triton kernels.

In: the host part and kernels that `lower.split_kernels` cuts from a program whose values have axes. Out: a module of
text for each kernel (`source.emit`), and how to run or compile it (`launch`). Begin reading at `source.py`; `expr.py`
prints values, `calls.py` functions, `prelude.triton` is what Triton's own operators do not mean.
"""
