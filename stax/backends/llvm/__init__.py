"""Loop programs as LLVM text, and that text as object code.

`module.emit` prints a program, `optimize.compile_text` compiles the text, `build.build` does both. Begin reading at
`module.py`; `stmt.py` prints statements, `expr.py` values, `memory.py` loads and stores.
"""
