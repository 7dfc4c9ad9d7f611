"""Run it: artifacts and arrays come in, results or one clear error go out.

Begin with `kernel`: a call is checked by `arguments` against a `signature`, and runs code that `load` has mapped, on
the threads of `pool`; `cache` keeps object code on disk, and `fallback` says what happens where there is none.
"""
