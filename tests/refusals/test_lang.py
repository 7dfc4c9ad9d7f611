"""Programs that are refused while they are written or frozen: each with the full text of its error."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import stax as sx
from stax.errors import DefinitionError, StaxError
from stax.lang.freeze import freeze

REFUSALS = [
    (
        "if on an expression",
        r"""
x = sx.Var("x")
if x > 3:
    pass
""",
        r"""
SymbolicValueError: a value of the program has no truth yet
  program.py:2
     2 | if x > 3:
       |    ^^^^^ Python asks whether this is true
  `if`, `and`, `or`, `not`, `in`, chains such as 0 < x < 5, and Python's max and min ask so
  hint: use `&`, `|`, `~` with brackets, as in (0 < x) & (x < 5), and sx.select(condition, a, b) or sx.maximum""",
    ),
    (
        "chained comparison",
        r"""
x = sx.Var("x")
inside = 0 < x < 5
""",
        r"""
SymbolicValueError: a value of the program has no truth yet
  program.py:2
     2 | inside = 0 < x < 5
       |          ^^^^^^^^^ Python asks whether this is true
  `if`, `and`, `or`, `not`, `in`, chains such as 0 < x < 5, and Python's max and min ask so
  hint: use `&`, `|`, `~` with brackets, as in (0 < x) & (x < 5), and sx.select(condition, a, b) or sx.maximum""",
    ),
    (
        "an expression as a list index",
        r"""
x = sx.Var("x")
[10, 20, 30][x]
""",
        r"""
SymbolicValueError: a value of the program is no Python number yet
  program.py:2
     2 | [10, 20, 30][x]
       | ^^^^^^^^^^^^^^^ an index of a Python sequence needs one
  hint: sx.choose(i, [...]) picks one of several values""",
    ),
    (
        "membership",
        r"""
x = sx.Var("x")
x in [1, 2]
""",
        r"""
SymbolicValueError: a value of the program has no truth yet
  program.py:2
     2 | x in [1, 2]
       | ^^^^^^^^^^^ Python asks whether this is true
  `if`, `and`, `or`, `not`, `in`, chains such as 0 < x < 5, and Python's max and min ask so
  hint: use `&`, `|`, `~` with brackets, as in (0 < x) & (x < 5), and sx.select(condition, a, b) or sx.maximum""",
    ),
    (
        "float() of an expression",
        r"""
import math
x = sx.Var("x")
math.sin(x)
""",
        r"""
SymbolicValueError: a value of the program is no Python number yet
  program.py:3
     3 | math.sin(x)
       | ^^^^^^^^^^^ float() needs one
  hint: sx.cast(e, dtype) converts, as in sx.cast(e, sx.float32); functions are sx.exp, sx.sqrt, ...""",
    ),
    (
        "a Param whose limits exclude each other",
        r"""
sx.Param("p", sx.float32, low=3, high=1)
""",
        r"""
DefinitionError: no value of Param `p` lies between low=3 and high=1
  program.py:1
     1 | sx.Param("p", sx.float32, low=3, high=1)
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here""",
    ),
    (
        "a Param whose default is no number",
        r"""
sx.Param("p", sx.float32, default="3")
""",
        r"""
DefinitionError: the default of Param `p` is '3', and a number is needed
  program.py:1
     1 | sx.Param("p", sx.float32, default="3")
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here""",
    ),
    (
        "an Input of less than no dims",
        r"""
sx.Input("a", sx.float32, -1)
""",
        r"""
DefinitionError: Input `a` has -1 dims
  program.py:1
     1 | sx.Input("a", sx.float32, -1)
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here""",
    ),
    (
        "names that are no text",
        r"""
sx.vars(3)
""",
        r"""
DefinitionError: 3 is no text of names
  program.py:1
     1 | sx.vars(3)
       | ^^^^^^^^^^ here
  hint: sx.vars("y x")""",
    ),
    (
        "round() of an expression",
        r"""
x = sx.Var("x")
round(x / 2)
""",
        r"""
SymbolicValueError: a value of the program is no Python number yet
  program.py:2
     2 | round(x / 2)
       | ^^^^^^^^^^^^ round() needs one
  hint: sx.rint, sx.floor, sx.ceil and sx.trunc round; sx.cast(e, sx.int64) makes integers""",
    ),
    (
        "a read as in Halide",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.uint8, 1)
a(x)
""",
        r"""
DefinitionError: `a` is called
  program.py:3
     3 | a(x)
       | ^^^^ here
  hint: a[...] reads it at an index; sx.compile makes what is called""",
    ),
    (
        "a literal that does not fit",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.uint8, 1)
b = a[x] + 300
""",
        r"""
DefinitionError: the Python integer 300 does not fit uint8
  program.py:3
     3 | b = a[x] + 300
       |     ^^^^^^^^^^ here
  uint8 holds 0 .. 255
  hint: cast the other operand to a wider type, or write the number as one, such as sx.int32(...)""",
    ),
    (
        "a negative literal in an unsigned definition",
        r"""
x = sx.Var("x")
f = sx.Func("f", dtype=sx.uint8)
f[x] = -1
""",
        r"""
DefinitionError: the Python integer -1 does not fit uint8
  program.py:3
     3 | f[x] = -1
       | ^^^^ here
  uint8 holds 0 .. 255
  hint: cast the other operand to a wider type, or write the number as one, such as sx.int32(...)""",
    ),
    (
        "an array in an expression",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
b = a[x] * np.ones(3)
""",
        r"""
DefinitionError: an array stands in an expression
  program.py:3
     3 | b = a[x] * np.ones(3)
       |     ^^^^^^^^^^^^^^^^^ here
  hint: make it part of the program, `t = sx.Const(name, array)`, and read t[...]""",
    ),
    (
        "a Func without an index",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = x
g = f + 1
""",
        r"""
DefinitionError: `f` stands for a value, without an index
  program.py:4
     4 | g = f + 1
       |     ^^^^^ here
  hint: read it at an index: f[...]""",
    ),
    (
        "a text as a value",
        r"""
x = sx.Var("x")
x + "1"
""",
        r"""
DefinitionError: str '1' stands for a value
  program.py:2
     2 | x + "1"
       | ^^^^^^^ here""",
    ),
    (
        "a complex number",
        r"""
x = sx.Var("x")
x + 1j
""",
        r"""
DefinitionError: complex 1j stands for a value
  program.py:2
     2 | x + 1j
       | ^^^^^^ here""",
    ),
    (
        "minus of bools",
        r"""
x = sx.Var("x")
(x > 1) - (x > 2)
""",
        r"""
DefinitionError: `-` of two bools
  program.py:2
     2 | (x > 1) - (x > 2)
       | ^^^^^^^^^^^^^^^^^ here
  hint: use `^`, or cast one""",
    ),
    (
        "shift of a float",
        r"""
x = sx.Var("x")
(x / 2) << 1
""",
        r"""
DefinitionError: `<<` needs integers, not float64
  program.py:2
     2 | (x / 2) << 1
       | ^^^^^^^^^^^^ here""",
    ),
    (
        "a condition that is a number",
        r"""
x = sx.Var("x")
sx.select(x, 1, 2)
""",
        r"""
DefinitionError: a condition is int64, not bool
  program.py:2
     2 | sx.select(x, 1, 2)
       | ^^^^^^^^^^^^^^^^^^ here
  hint: compare it: `... != 0`""",
    ),
    (
        "select without otherwise",
        r"""
x = sx.Var("x")
sx.select(x > 0, 1)
""",
        r"""
DefinitionError: select has 2 arguments
  program.py:2
     2 | sx.select(x > 0, 1)
       | ^^^^^^^^^^^^^^^^^^^ here
  hint: select(condition, value, ..., otherwise)""",
    ),
    (
        "arms of different lengths",
        r"""
x = sx.Var("x")
sx.select(x > 0, (1, 2), (1, 2, 3))
""",
        r"""
DefinitionError: the arms of a select are tuples of different lengths
  program.py:2
     2 | sx.select(x > 0, (1, 2), (1, 2, 3))
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
  hint: give each arm the same parts""",
    ),
    (
        "a float as an index",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
a[x / 2]
""",
        r"""
DefinitionError: an index of `a` is a float
  program.py:3
     3 | a[x / 2]
       | ^^^^^^^^ here
  hint: use `//` instead of `/`, or sx.cast(..., sx.int64)""",
    ),
    (
        "a slice",
        r"""
a = sx.Input("a", sx.float32, 1)
a[1:3]
""",
        r"""
DefinitionError: `a` is sliced
  program.py:2
     2 | a[1:3]
       | ^^^^^^ here
  hint: an index is a number; a Func over the slice's indices does what a slice does""",
    ),
    (
        "a list as an index",
        r"""
a = sx.Input("a", sx.float32, 1)
a[[1, 2]]
""",
        r"""
DefinitionError: `a` is indexed with list
  program.py:2
     2 | a[[1, 2]]
       | ^^^^^^^^^ here
  hint: an index is one integer value a dim""",
    ),
    (
        "too few indices",
        r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
a[x]
""",
        r"""
DefinitionError: `a` has 2 dims and is indexed with 1
  program.py:3
     3 | a[x]
       | ^^^^ here
  its dims are a[d0, d1]""",
    ),
    (
        "writing into an Input",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
a[x] = 1
""",
        r"""
DefinitionError: `a` is an Input and takes no definition
  program.py:3
     3 | a[x] = 1
       | ^^^^ here
  hint: define a Func""",
    ),
    (
        "a Var on the right only",
        r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f = sx.Func("f")
f[y] = a[y, x]
""",
        r"""
DefinitionError: `x` stands on the right of a definition of `f`, not on the left
  program.py:4
     4 | f[y] = a[y, x]
       | ^^^^ here
  hint: put it on the left, fix it, or reduce over an RDom""",
    ),
    (
        "a Var twice on the left",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x, x] = 1
""",
        r"""
DefinitionError: `x` stands twice on the left of `f`
  program.py:3
     3 | f[x, x] = 1
       | ^^^^^^^ here
  hint: use two Vars, or an update over an RDom for the diagonal""",
    ),
    (
        "a second definition",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = x
f[x] = 2 * x
""",
        r"""
DefinitionError: `f` is defined a second time
  program.py:3
     3 | f[x] = x
       | ^^^^ first here
  program.py:4
     4 | f[x] = 2 * x
       | ^^^^ and here
  hint: an update reads the Func, or fixes an index, or runs over an RDom; else make a new Func""",
    ),
    (
        "an update after a reader",
        r"""
x = sx.Var("x")
f, g = sx.Func("f"), sx.Func("g")
f[x] = x
g[x] = f[x] + 1
f[0] = 7
""",
        r"""
DefinitionError: `f` is updated after `g` has read it
  program.py:4
     4 | g[x] = f[x] + 1
       |        ^^^^ read here
  program.py:5
     5 | f[0] = 7
       | ^^^^ updated here
  hint: write all updates before the Func is read, or make a new Func""",
    ),
    (
        "plus-equals without a start",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] += 1
""",
        r"""
DefinitionError: `f` is read before it is defined
  program.py:3
     3 | f[x] += 1
       | ^^^^ here
  hint: f[...] = ... comes before updates and readers; a recurrence needs a start value or dtype=""",
    ),
    (
        "plus-equals without a start, with a declared type",
        r"""
x = sx.Var("x")
f = sx.Func("f", dtype=sx.int32)
f[x] += 1
""",
        r"""
DefinitionError: `f` is defined by its own value at the same index
  program.py:3
     3 | f[x] += 1
       | ^^^^ this is what the line defines
  hint: for an update, write f[...] = 0 first; for a recurrence, read an earlier index""",
    ),
    (
        "an update over an RDom without a start",
        r"""
r = sx.RDom("r", k=3)
f = sx.Func("f", dtype=sx.int32)
f[r] = 1
""",
        r"""
DefinitionError: `f` is updated over `r.k` before it has a definition
  program.py:3
     3 | f[r] = 1
       | ^^^^ here
  hint: write f[...] = 0 first""",
    ),
    (
        "an RDom variable in a definition",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
r = sx.RDom("r", k=3)
f = sx.Func("f")
f[x] = a[x + r]
""",
        r"""
DefinitionError: `f` is updated over `r.k` before it has a definition
  program.py:5
     5 | f[x] = a[x + r]
       | ^^^^ here
  hint: write f[...] = 0 first, or use sx.sum(..., over=...)""",
    ),
    (
        "a start value whose index moves",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x + 1] = 1
""",
        r"""
DefinitionError: an index of `f` on the left is made of `x`
  program.py:3
     3 | f[x + 1] = 1
       | ^^^^^^^^ here
  hint: before the definition over all Vars, an index is a Var alone or free of Vars (a start value)""",
    ),
    (
        "start values without a definition",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[0] = 1
freeze(f)
""",
        r"""
DefinitionError: `f` has start values only
  program.py:3
     3 | f[0] = 1
       | ^^^^ a start value
  hint: define it over all its Vars too: f[...] = ...""",
    ),
    (
        "a Func without a definition",
        r"""
x = sx.Var("x")
f, g = sx.Func("f", dtype=sx.int32), sx.Func("g")
g[x] = f[x]
freeze(g)
""",
        r"""
DefinitionError: `f` has no definition
  program.py:2
     2 | f, g = sx.Func("f", dtype=sx.int32), sx.Func("g")
       |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ made here
  hint: write f[...] = ...""",
    ),
    (
        "a recurrence whose type is not known",
        r"""
x = sx.Var("x")
fib = sx.Func("fib", shape=(20,))
fib[0] = 0
fib[1] = 1
fib[x] = fib[x - 1] + fib[x - 2]
""",
        r"""
DefinitionError: `fib` is read before its type is known: its start values are Python numbers
  program.py:5
     5 | fib[x] = fib[x - 1] + fib[x - 2]
       |          ^^^^^^^^^^ here
  hint: declare it: sx.Func("fib", dtype=...)""",
    ),
    (
        "a recurrence without a shape",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
f = sx.Func("f")
f[0] = a[0]
f[x] = f[x - 1] + a[x]
freeze(f)
""",
        r"""
DefinitionError: the recurrence `f` moves along `x`, where it has no declared extent
  program.py:5
     5 | f[x] = f[x - 1] + a[x]
       |        ^^^^^^^^ read here
  program.py:5
     5 | f[x] = f[x - 1] + a[x]
       | ^^^^ while this is defined
  hint: declare it: sx.Func("f", shape=(...)), with None for dims that every read keeps""",
    ),
    (
        "an update that reads its Func at another place",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = x
f[x] = f[x - 1] + 1
""",
        r"""
DefinitionError: an update of `f` reads it at another place along `x`
  program.py:4
     4 | f[x] = f[x - 1] + 1
       |        ^^^^^^^^ `x` alone must stand for `x` here
  hint: run over an RDom in that dim, or define a recurrence, or read another Func""",
    ),
    (
        "a Var inside an index of an update",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = 0
f[2 * x] = 1
""",
        r"""
DefinitionError: an index of an update of `f` is made of `x`
  program.py:4
     4 | f[2 * x] = 1
       | ^^^^^^^^ here
  hint: a Var of an update stands alone in the place of a dim, too; an RDom gives variables for the rest""",
    ),
    (
        "two RDoms in one update",
        r"""
x = sx.Var("x")
q, r = sx.RDom("q", k=3), sx.RDom("r", k=3)
f = sx.Func("f")
f[x] = 0
f[q] = r + 1
""",
        r"""
DefinitionError: an update of `f` runs over two RDoms
  program.py:5
     5 | f[q] = r + 1
       | ^^^^ here
  hint: make one RDom of all the variables""",
    ),
    (
        "a reduction of the Func itself",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = 1
r = sx.RDom("r", k=3)
f[0] = sx.sum(f[r], over=r)
""",
        r"""
DefinitionError: a reduction inside a definition of `f` reads `f`
  program.py:5
     5 | f[0] = sx.sum(f[r], over=r)
       |               ^^^^ read here
  program.py:5
     5 | f[0] = sx.sum(f[r], over=r)
       | ^^^^ while this is defined
  hint: write a recurrence, or an update over an RDom""",
    ),
    (
        "a float given to an integer Func",
        r"""
x = sx.Var("x")
f = sx.Func("f", dtype=sx.int32)
f[x] = x / 2
""",
        r"""
DefinitionError: a value of float64 is given to `f`, which is int32
  program.py:3
     3 | f[x] = x / 2
       | ^^^^ here
  hint: sx.cast(..., sx.int32)""",
    ),
    (
        "an index number given to a narrow unsigned Func",
        r"""
x = sx.Var("x")
f = sx.Func("f", dtype=sx.uint8)
f[x] = x
""",
        r"""
DefinitionError: a value of int64 is given to `f`, which is uint8
  program.py:3
     3 | f[x] = x
       | ^^^^ here
  hint: sx.cast(..., sx.uint8)""",
    ),
    (
        "another number of parts",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = (x, 1)
f[0] = 3
""",
        r"""
DefinitionError: `f` has 2 values an index, and is given 1
  program.py:4
     4 | f[0] = 3
       | ^^^^ here""",
    ),
    (
        "an empty maximum",
        r"""
a = sx.Input("a", sx.float32, 1)
r = sx.RDom("r", k=a.shape[0])
sx.max(a[r], over=r)
""",
        r"""
DefinitionError: max over RDom('r', k), which may have no point
  program.py:3
     3 | sx.max(a[r], over=r)
       | ^^^^^^^^^^^^^^^^^^^^ this has no value over nothing
  hint: give initial=, the value over nothing; or fix the extent: Input(..., (None, 8)), Param(..., low=1)""",
    ),
    (
        "an argmax under a condition",
        r"""
a = sx.Input("a", sx.float32, (8,))
r = sx.RDom("r", k=8, where=lambda r: r.k > 2)
sx.argmax(a[r], over=r)
""",
        r"""
DefinitionError: argmax over RDom('r', k), which may have no point
  program.py:3
     3 | sx.argmax(a[r], over=r)
       | ^^^^^^^^^^^^^^^^^^^^^^^ this has no value over nothing
  hint: give initial=, the position over nothing; or fix the extent: Input(..., (None, 8)), Param(..., low=1)""",
    ),
    (
        "a reduction over a Var",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
sx.sum(a[x], over=x)
""",
        r"""
DefinitionError: a reduction runs over an RDom, not over x
  program.py:3
     3 | sx.sum(a[x], over=x)
       | ^^^^^^^^^^^^^^^^^^^^ here
  hint: over= takes an RDom: r = sx.RDom("r", x=n)""",
    ),
    (
        "an RDom as in Halide",
        r"""
r = sx.RDom("r", [(0, 3), (0, 3)])
""",
        r"""
DefinitionError: the ranges of RDom 'r' have no names
  program.py:1
     1 | r = sx.RDom("r", [(0, 3), (0, 3)])
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
  hint: name each variable: sx.RDom("r", y=(lo, hi), x=n); ranges are half open""",
    ),
    (
        "an RDom of several variables as a value",
        r"""
r = sx.RDom("r", y=3, x=3)
r + 1
""",
        r"""
DefinitionError: RDom 'r' of several variables stands for a value
  program.py:2
     2 | r + 1
       | ^^^^^ here
  hint: use one of r.y, r.x""",
    ),
    (
        "an RDom variable that is not there",
        r"""
r = sx.RDom("r", y=3, x=3)
r.z
""",
        r"""
DefinitionError: RDom 'r' has no variable `z`
  program.py:2
     2 | r.z
       | ^^^ here
  hint: it has r.y, r.x""",
    ),
    (
        "a where that is no condition",
        r"""
r = sx.RDom("r", y=3, where=lambda r: r.y + 1)
""",
        r"""
DefinitionError: the `where` of RDom 'r' gives int64, not bool
  program.py:1
     1 | r = sx.RDom("r", y=3, where=lambda r: r.y + 1)
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here""",
    ),
    (
        "two RDoms of one name in a reduction",
        r"""
a = sx.Input("a", sx.float32, 1)
r, q = sx.RDom("r", k=3), sx.RDom("r", k=3)
sx.sum(sx.sum(a[r + q], over=q), over=r)
""",
        r"""
DefinitionError: two RDoms of one reduction call a variable `r.k`
  program.py:3
     3 | sx.sum(sx.sum(a[r + q], over=q), over=r)
       |        ^^^^^^^^^^^^^^^^^^^^^^^^ here
  hint: give the RDoms different names""",
    ),
    (
        "a dotted Var",
        r"""
sx.Var("r.y")
""",
        r"""
DefinitionError: 'r.y' is no name of a Var
  program.py:1
     1 | sx.Var("r.y")
       | ^^^^^^^^^^^^^ here
  hint: a name is text without `.` and `′`""",
    ),
    (
        "a type that stax lacks",
        r"""
sx.Input("a", np.complex64, 1)
""",
        r"""
DefinitionError: stax has no scalar type for <class 'numpy.complex64'>
  program.py:1
     1 | sx.Input("a", np.complex64, 1)
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
  hint: types are sx.uint8, sx.float32, ... or NumPy's""",
    ),
    (
        "a Monoid that is not associative",
        r"""
a = sx.Input("a", sx.int32, 1)
r = sx.RDom("r", k=a.shape[0])
m = sx.Monoid("m", lambda p, q: sx.select(p == 0, q, q == 0, p, p - q), 0)
m(a[r], over=r)
""",
        r"""
DefinitionError: Monoid `m`: combine is not associative: combine(combine(x, y), z) is not combine(x, combine(y, z))
  program.py:4
     4 | m(a[r], over=r)
       | ^^^^^^^^^^^^^^^ here
  x = 3, y = 1, z = 3
  one gives -1, the other 5""",
    ),
    (
        "a Monoid whose identity is none",
        r"""
a = sx.Input("a", sx.int32, 1)
r = sx.RDom("r", k=a.shape[0])
m = sx.Monoid("m", lambda p, q: p * q, 0)
m(a[r], over=r)
""",
        r"""
DefinitionError: Monoid `m`: its identity is none: combine(identity, x) is not x
  program.py:4
     4 | m(a[r], over=r)
       | ^^^^^^^^^^^^^^^ here
  x = 3
  one gives 0, the other 3""",
    ),
    (
        "a Monoid that does not commute",
        r"""
a = sx.Input("a", sx.int32, 1)
r = sx.RDom("r", k=a.shape[0])
m = sx.Monoid("first", lambda p, q: sx.select(p == 99, q, p), 99, commutes=True)
m(a[r], over=r)
""",
        r"""
DefinitionError: Monoid `first`: combine does not commute: combine(x, y) is not combine(y, x)
  program.py:4
     4 | m(a[r], over=r)
       | ^^^^^^^^^^^^^^^ here
  x = 3, y = 1
  one gives 3, the other 1""",
    ),
    (
        "pad of an unknown mode",
        r"""
a = sx.Input("a", sx.float32, 1)
sx.pad(a, "mirror")
""",
        r"""
DefinitionError: `mirror` is no mode of pad
  program.py:2
     2 | sx.pad(a, "mirror")
       | ^^^^^^^^^^^^^^^^^^^ here
  hint: modes are constant, edge, reflect, symmetric, wrap""",
    ),
    (
        "pad of a Func without a shape",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = x
sx.pad(f, "edge")
""",
        r"""
DefinitionError: `f` is padded along `x`, where it has no declared extent
  program.py:4
     4 | sx.pad(f, "edge")
       | ^^^^^^^^^^^^^^^^^ here
  hint: sx.Func("f", shape=(...)), or pad the Input that it reads""",
    ),
    (
        "a power of integers",
        r"""
x = sx.Var("x")
2 ** x
""",
        r"""
DefinitionError: a power of integers needs a constant exponent of 0 .. 64
  program.py:2
     2 | 2 ** x
       | ^^^^^^ here
  hint: cast the base to a float, or multiply""",
    ),
    (
        "three dots on the right only",
        r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 2)
f = sx.Func("f")
f[x] = a[..., x]
""",
        r"""
DefinitionError: `...` stands on the right of a definition of `f`, not on the left
  program.py:4
     4 | f[x] = a[..., x]
       | ^^^^ here""",
    ),
    (
        "an input left out of the arguments",
        r"""
x = sx.Var("x")
a, b = sx.Input("a", sx.float32, 1), sx.Input("b", sx.float32, 1)
f = sx.Func("f")
f[x] = a[x] + b[x]
freeze(f, inputs=[a])
""",
        r"""
DefinitionError: `inputs` leaves out `b`, which the program uses
  program.py:5
     5 | freeze(f, inputs=[a])
       | ^^^^^^^^^^^^^^^^^^^^^ here""",
    ),
    (
        "an output that is no Func",
        r"""
x = sx.Var("x")
freeze(x + 1)
""",
        r"""
DefinitionError: Value <int64 x + 1> is no output
  program.py:2
     2 | freeze(x + 1)
       | ^^^^^^^^^^^^^ here
  hint: outputs are Funcs: a Func, or a tuple of them""",
    ),
    (
        "an output named twice",
        r"""
x = sx.Var("x")
f = sx.Func("f")
f[x] = x
freeze((f, f))
""",
        r"""
DefinitionError: an output is named twice
  program.py:4
     4 | freeze((f, f))
       | ^^^^^^^^^^^^^^ here""",
    ),
    (
        "a type before the value",
        r"""
x, a = sx.Var("x"), sx.Input("a", sx.uint8, 1)
f = sx.Func("f")
f[x] = sx.cast(sx.int32, a[x]) + 1
""",
        r"""
DefinitionError: `cast` takes the value first, then the type
  program.py:3
     3 | f[x] = sx.cast(sx.int32, a[x]) + 1
       |        ^^^^^^^^^^^^^^^^^^^^^^^ here
  hint: sx.cast(value, sx.int32)""",
    ),
    (
        "a value for a type",
        r"""
x, a = sx.Var("x"), sx.Input("a", sx.uint8, 1)
f = sx.Func("f", dtype=a[x])
""",
        r"""
DefinitionError: stax has no scalar type for <uint8 a[x]>
  program.py:2
     2 | f = sx.Func("f", dtype=a[x])
       |     ^^^^^^^^^^^^^^^^^^^^^^^^ here
  hint: types are sx.uint8, sx.float32, ... or NumPy's""",
    ),
]


def run(program: str) -> None:
    """Run `program` as a file of a user, whose lines errors can show."""
    linecache.cache["program.py"] = (len(program), None, program.splitlines(keepends=True), "program.py")
    exec(compile(program, "program.py", "exec"), {"sx": sx, "np": np, "freeze": freeze})


@pytest.mark.parametrize(("program", "text"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_a_wrong_program_is_refused_with_its_line_and_a_way_out(program: str, text: str) -> None:
    with pytest.raises(StaxError) as found:
        run(program.lstrip("\n"))
    assert f"{type(found.value).__name__}: {found.value}" == text.lstrip("\n")


def test_a_use_as_a_plain_value_is_a_type_error_too() -> None:
    """Python code that guards against TypeError sees what it expects."""
    with pytest.raises(TypeError, match="no truth"):
        bool(sx.Var("x") > 3)
    assert issubclass(sx.errors.SymbolicValueError, DefinitionError)


def test_numpys_way_to_convert_is_answered_with_staxs() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'astype'; sx.cast\(value, dtype\) converts"):
        sx.Input("a", sx.uint8, 1)[sx.Var("x")].astype(sx.int32)  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(sx.Var("x"), "shape")
