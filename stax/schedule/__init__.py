"""How a program is to be run, as data.

In: a Pipeline and what a person, a file or the compiler says of it. Out: `resolve.Resolved`, the loops of each stage
and the place of each Func, to be judged by `legality`. Begin with `directives`, then `nest`, `resolve`, `schedule`.
"""
