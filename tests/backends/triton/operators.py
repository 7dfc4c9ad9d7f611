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

LANES = 12
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
    made += [(f"to {t.name}", build.cast(a, t)) for t in dtypes.ALL if t != dtype]
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
    lane = Axis("i", LANES)
    at = programs.tile("io", lane)
    a, b = programs.argument("a", dtype, 1), programs.argument("b", dtype, 1)
    inside = programs.within(at, programs.size("a", 0))
    x, y = (programs.load(array, (at,), (inside,)) for array in (a, b))
    whole = programs.load(a, (programs.ramp(lane),))
    made = values(dtype, x, y) + reductions(dtype, whole, lane)
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
    return programs.program(f"all_{dtype.name}", (a, b, *outputs), (lane,), nest), [name for name, _ in made]


def numbers(dtype: DType, rng: np.random.Generator, n: int) -> Array:
    """Return ordinary and extreme numbers of `dtype`."""
    if dtype.is_bool:
        return rng.integers(0, 2, n).astype(bool)
    if dtype.is_float:
        x = (rng.standard_normal(n) * 10).astype(dtype.dtype)
        x[:12] = [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            300.0,
            -70000.0 if dtype.bits > 16 else -9.0,
        ]
        return rng.permutation(x)
    bits = rng.integers(0, 2**64, n, dtype=np.uint64).astype(dtype.dtype)
    bits[: n // 2] = rng.integers(-5 if dtype.is_signed else 0, 12, n // 2).astype(dtype.dtype)
    bits[:4] = [dtype.low, dtype.high, 0, dtype(dtype.low) - dtype(0)]
    return rng.permutation(bits)


def data(dtype: DType, seed: int) -> tuple[dict[str, Array], list[str]]:
    """Return arrays for `program(dtype)`, outputs holding zeros, and the names of the operations."""
    made, words = program(dtype)
    rng = np.random.default_rng(seed)
    n = 4 * LANES + 5
    arrays = {"a": numbers(dtype, rng, n), "b": numbers(dtype, rng, n)}
    for buffer in made.buffers[2:]:
        arrays[buffer.name] = np.zeros(n, buffer.dtype.dtype)
    return arrays, words
