"""What users write, and how it becomes a Pipeline.

In: Vars, Inputs, Funcs with their definitions (`func`), values built by operators and functions (`value`, `math`,
`reduce`). Out: `freeze.freeze`, an `algorithm.Pipeline` with every type and name resolved. Begin with `terms`, which
says what an expression is before that, then `promote`, `func`, `resolve` and `freeze`.
"""
