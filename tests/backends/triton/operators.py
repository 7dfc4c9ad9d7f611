"""Every operator and function of a type in one program: a tile of each, stored to an output of its own."""

from __future__ import annotations

import numpy as np

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import Axis, BinaryOp, Bitcast, Expr, Fn, Reduce, UnaryOp
from stax.loops.nodes import Buffer, Program, Role, Store
from tests.loops import programs
from tests.loops.programs import Array

LANES, SUMMED = 100, 12
TYPES = dtypes.ALL
BOTH = [BinaryOp.MIN, BinaryOp.MAX, BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE, BinaryOp.ADD, BinaryOp.MUL]
BITS = [BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR]
INTEGER = [*BOTH, *BITS, BinaryOp.SUB, BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.SHL, BinaryOp.SHR]
FLOAT = [*BOTH, BinaryOp.SUB, BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.MOD]
WIDER = {8: 16, 16: 32, 32: 64}
SPELLED = [
    Fn.EXP, Fn.EXPM1, Fn.LOG, Fn.LOG1P, Fn.SIN, Fn.COS, Fn.TANH, Fn.ERF, Fn.SIGMOID, Fn.RSQRT, Fn.ATAN, Fn.SIGN,
    Fn.ISINF, Fn.ISFINITE,
]  # fmt: skip


def values(dtype: DType, a: Expr, b: Expr) -> list[tuple[str, Expr]]:
    """Return what can be made of two values of `dtype`, each with a name."""
    made: list[tuple[str, Expr]] = []
    ops = [*BOTH, *BITS] if dtype.is_bool else FLOAT if dtype.is_float else INTEGER
    made += [(op.name, build.binary(op, a, b)) for op in ops]
    made.append(("SELECT", build.select(build.binary(BinaryOp.LT, a, b), b, a)))
    made += [(f"to {t.name}", build.cast(a, t)) for t in TYPES if t != dtype]
    if dtype.is_bool:
        made.append(("NOT", build.unary(UnaryOp.NOT, a)))
        return made
    made += [("NEG", build.unary(UnaryOp.NEG, a)), ("ABS", build.unary(UnaryOp.ABS, a))]
    made.append(("3 - a", build.sub(build.const(3, dtype, a.axes), a)))
    if dtype.is_float:
        made += [(fn.name, build.call(fn, (a,), dtype)) for fn in (Fn.FLOOR, Fn.CEIL, Fn.TRUNC, Fn.RINT)]
        made += [("ISNAN", build.call(Fn.ISNAN, (a,), dtypes.bool_)), ("ABSD", build.call(Fn.ABSD, (a, b), dtype))]
        made += [(fn.name, build.call(fn, (a, b), dtype)) for fn in (Fn.COPYSIGN,)]
        made += [("SQRT", build.call(Fn.SQRT, (a,), dtype)), ("FMA", build.call(Fn.FMA, (a, b, a), dtype))]
        whole = {16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}[dtype.bits]
        made.append(("BITCAST", Bitcast(whole, a, axes=a.axes)))
        if dtype.bits == 32:
            made += [
                (fn.name, build.call(fn, (a,), dtypes.bool_ if fn in (Fn.ISINF, Fn.ISFINITE) else dtype))
                for fn in SPELLED
            ]
        return made
    unsigned = dtypes.as_dtype(f"uint{dtype.bits}")
    made.append(("a // 7", build.floordiv(a, 7)))
    made.append(("a % 7", build.mod(a, 7)))
    made.append(("a << 3", build.binary(BinaryOp.SHL, a, build.const(3, dtype, a.axes))))
    made.append(("NOT", build.unary(UnaryOp.NOT, a)))
    made += [(fn.name, build.call(fn, (a, b), dtype)) for fn in (Fn.SATURATING_ADD, Fn.SATURATING_SUB, Fn.MUL_HIGH)]
    made.append(("ROUNDING_AVERAGE", build.call(Fn.ROUNDING_AVERAGE, (a, b), dtype)))
    made.append(("ABSD", build.call(Fn.ABSD, (a, b), unsigned)))
    made += [(fn.name, build.call(fn, (a,), dtype)) for fn in (Fn.POPCOUNT, Fn.CLZ)]
    made += [
        (f"SATURATING_CAST {t.name}", build.call(Fn.SATURATING_CAST, (a,), t)) for t in dtypes.NUMBERS if t.is_integer
    ]
    if dtype.bits < 64:
        wide = dtypes.as_dtype(f"{'int' if dtype.is_signed else 'uint'}{WIDER[dtype.bits]}")
        made.append(("WIDENING_MUL", build.call(Fn.WIDENING_MUL, (a, b), wide)))
    return made


def reductions(dtype: DType, a: Expr, axis: Axis) -> list[tuple[str, Expr]]:
    """Return the reductions of a value, over the lanes where a predicate holds."""
    ops = [BinaryOp.MIN, BinaryOp.MAX]
    if dtype.bits >= 32:
        ops += [BinaryOp.ADD, BinaryOp.MUL]
    if not dtype.is_float:
        ops += BITS
    where = (programs.op(BinaryOp.LT, programs.ramp(axis), 5),)
    found = [(f"reduce {op.name}", Reduce(dtype, op, a, axis)) for op in ops]
    return found + [(f"reduce {op.name} where", Reduce(dtype, op, a, axis, where)) for op in ops]


def program(dtype: DType) -> tuple[Program, list[str]]:
    """Return a program of all that can be made of `a` and `b`, and the name of each output's operation."""
    lane, summed = Axis("i", LANES), Axis("k", SUMMED)
    at = programs.tile("io", lane)
    a, b = programs.argument("a", dtype, 1), programs.argument("b", dtype, 1)
    inside = programs.within(at, programs.size("a", 0))
    x, y = (programs.load(array, (at,), (inside,)) for array in (a, b))
    few = programs.load(a, (programs.tile("io", summed),))
    made = values(dtype, x, y) + reductions(dtype, few, summed)
    outputs: list[Buffer] = []
    stores: list[Store] = []
    for k, (_, value) in enumerate(made):
        out = programs.argument(f"out{k}", value.dtype, 1, Role.OUTPUT)
        outputs.append(out)
        if value.axes:
            stores.append(Store(out.name, (at,), value, (inside,)))
        else:
            stores.append(Store(out.name, (build.local("io"),), value))
    nest = programs.parallel("io", programs.blocks(programs.size("a", 0), LANES), *stores)
    return programs.program(f"all_{dtype.name}", (a, b, *outputs), (lane, summed), nest), [name for name, _ in made]


def edges(dtype: DType) -> Array:
    """Return numbers of `dtype` where something changes."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_float:
        big = 60000.0 if dtype.bits == 16 else 3e9 if dtype.bits == 32 else 2e19
        found = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, -7.0, 300.0, big, -big]
        return np.array(found, dtype.dtype)
    low = [dtype.low, dtype.low + 1, -1, -2, -7] if dtype.is_signed else []
    return np.array([*low, 0, 1, 2, 7, 12, dtype.bits - 1, dtype.bits, dtype.high - 1, dtype.high], dtype.dtype)


def data(dtype: DType, seed: int) -> tuple[dict[str, Array], list[str]]:
    """Return every pair of edges and some numbers for `program(dtype)`, outputs of zeros, and the operations' names."""
    made, words = program(dtype)
    rng = np.random.default_rng(seed)
    at = edges(dtype)
    more = (rng.standard_normal((2, 60)) * 10).astype(dtype.dtype)  # first, since sums are of the first numbers
    a, b = np.concatenate([more, np.stack(np.meshgrid(at, at)).reshape(2, -1)], axis=1)
    a[3 * SUMMED] = np.nan if dtype.is_float else a[0]
    arrays = {"a": a, "b": b}
    for buffer in made.buffers[2:]:
        arrays[buffer.name] = np.zeros(len(a), buffer.dtype.dtype)
    return arrays, words
