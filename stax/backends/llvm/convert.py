"""Conversions: integers wrap, floats saturate on their way to integers, halves round once.

float16 and bfloat16 are kept as their bits. Where the processor has no instructions for float16, both directions are
spelled out in integers, since LLVM would call functions that nobody brings; for bfloat16 they always are.
"""

from __future__ import annotations

from stax import dtypes
from stax.backends.llvm import types
from stax.backends.llvm.writer import Function, Narrow
from stax.dtypes import DType
from stax.expr.build import wrap


def cast(f: Function, a: str, source: DType, dtype: DType, lanes: int) -> str:
    """Return `a` as `dtype`."""
    if source == dtype:
        return a
    from_, to = types.value(source, lanes), types.value(dtype, lanes)
    zero = types.constant(0, source, lanes)
    if dtype.is_bool:
        if source.is_float and source.bits == 16:
            return cast(f, cast(f, a, source, dtypes.float32, lanes), dtypes.float32, dtype, lanes)
        return f.put(f"fcmp une {from_} {a}, {zero}" if source.is_float else f"icmp ne {from_} {a}, {zero}")
    if source.is_float and dtype.is_float:
        return _between_floats(f, a, source, dtype, lanes)
    if source.is_float:
        if source.bits == 16:
            return cast(f, cast(f, a, source, dtypes.float32, lanes), dtypes.float32, dtype, lanes)
        return _saturated(f, a, source, dtype, lanes)
    if dtype.is_float:
        if dtype.bits == 16:
            return cast(f, cast(f, a, source, dtypes.float32, lanes), dtypes.float32, dtype, lanes)
        return f.put(f"{'sitofp' if source.is_signed else 'uitofp'} {from_} {a} to {to}")
    if source.bits == dtype.bits:
        return a
    known = types.known(a)
    if known is not None and not source.is_bool:
        return types.constant(wrap(wrap(known, source), dtype), dtype, lanes)
    word = "trunc" if dtype.bits < source.bits else "sext" if source.is_signed else "zext"
    made = f.put(f"{word} {from_} {a} to {to}")
    if dtype.bits == 64 and lanes and not source.is_bool and lanes * source.bits % 64 == 0:
        f.widened[made] = Narrow(a, source.bits, source.is_signed)
    return made


def _saturated(f: Function, a: str, source: DType, dtype: DType, lanes: int) -> str:
    """Return `a` cut to an integer, or the nearest one that there is; LLVM would do it lane by lane."""
    to, from_, flag = types.value(dtype, lanes), types.value(source, lanes), types.vector("i1", lanes)
    word = "fptosi" if dtype.is_signed else "fptoui"
    if not lanes:
        names = f"{types.element(dtype)}.{types.mangled(types.element(source), 0)}"
        return f.intrinsic(f"{word}.sat.{names}", to, [(from_, a)])
    low = types.constant(float(dtype.low), source, lanes)
    above = f.put(f"fcmp ogt {from_} {a}, {low}")
    inside = f.put(f"select {flag} {above}, {from_} {a}, {from_} {low}")  # of unsigned types, this takes NaN to 0
    if dtype.bits < (32 if source.bits == 32 else 64):  # the highest integer is a float too
        high = types.constant(float(dtype.high), source, lanes)
        below = f.put(f"fcmp olt {from_} {inside}, {high}")
        inside = f.put(f"select {flag} {below}, {from_} {inside}, {from_} {high}")
        if dtype.bits < 32:
            middle = types.vector("i32", lanes)
            whole = f.put(f"trunc {middle} {f.put(f'fptosi {from_} {inside} to {middle}')} to {to}")
        else:
            whole = f.put(f"{word} {from_} {inside} to {to}")
    else:
        most = types.constant(dtype.high, dtype, lanes)
        end = types.constant(float(dtype.high + 1), source, lanes)
        far = f.put(f"fcmp oge {from_} {a}, {end}")
        whole = f.put(f"freeze {to} {f.put(f'{word} {from_} {inside} to {to}')}")
        whole = f.put(f"select {flag} {far}, {to} {most}, {to} {whole}")
    if not dtype.is_signed:
        return whole
    some = f.put(f"fcmp ord {from_} {a}, {a}")
    return f.put(f"select {flag} {some}, {to} {whole}, {to} zeroinitializer")


def _between_floats(f: Function, a: str, source: DType, dtype: DType, lanes: int) -> str:
    if source.bits == 16:
        single = _from_bfloat(f, a, lanes) if source.name == "bfloat16" else _from_half(f, a, lanes)
        return single if dtype.bits == 32 else _between_floats(f, single, dtypes.float32, dtype, lanes)
    if dtype.bits == 16:
        single = a if source.bits == 32 else _to_odd(f, a, lanes)
        return _to_bfloat(f, single, lanes) if dtype.name == "bfloat16" else _to_half(f, single, lanes)
    word = "fpext" if dtype.bits > source.bits else "fptrunc"
    return f.put(f"{word} {types.value(source, lanes)} {a} to {types.value(dtype, lanes)}")


def _to_odd(f: Function, a: str, lanes: int) -> str:
    """Return float64 `a` as float32, with an odd last bit where inexact, so that rounding again is rounding once."""
    wide, kind, bits, flag = (types.vector(t, lanes) for t in ("double", "float", "i32", "i1"))
    single = f.put(f"fptrunc {wide} {a} to {kind}")
    back = f.put(f"fpext {kind} {single} to {wide}")
    pattern = f.put(f"bitcast {kind} {single} to {bits}")
    inexact = f.put(f"fcmp one {wide} {back}, {a}")
    last = f.put(f"trunc {bits} {pattern} to {flag}")
    even = f.put(f"xor {flag} {last}, {types.splat('true', 'i1', lanes)}")
    wrong = f.put(f"and {flag} {inexact}, {even}")
    sizes = [f.over("fabs", "double", lanes, x) for x in (back, a)]
    short = f.put(f"fcmp olt {wide} {sizes[0]}, {sizes[1]}")
    one, minus = (types.splat(x, "i32", lanes) for x in ("1", "-1"))
    step = f.put(f"select {flag} {short}, {bits} {one}, {bits} {minus}")
    moved = f.put(f"add {bits} {pattern}, {step}")
    return f.put(f"bitcast {bits} {f.put(f'select {flag} {wrong}, {bits} {moved}, {bits} {pattern}')} to {kind}")


def _native(f: Function) -> bool:
    target = f.module.target
    return target.has("f16c") or not target.is_x86


def _from_half(f: Function, a: str, lanes: int) -> str:
    short, half, kind, bits = (types.vector(t, lanes) for t in ("i16", "half", "float", "i32"))
    if _native(f):
        return f.put(f"fpext {half} {f.put(f'bitcast {short} {a} to {half}')} to {kind}")
    wide = f.put(f"zext {short} {a} to {bits}")
    magnitude = f.put(f"and {bits} {wide}, {types.splat('32767', 'i32', lanes)}")
    sign = f.put(f"shl {bits} {f.put(f'xor {bits} {wide}, {magnitude}')}, {types.splat('16', 'i32', lanes)}")
    moved = f.put(f"shl {bits} {magnitude}, {types.splat('13', 'i32', lanes)}")
    scale = types.constant(2.0**112, dtypes.float32, lanes)  # from the exponents of halves to those of float32
    scaled = f.put(f"fmul {kind} {f.put(f'bitcast {bits} {moved} to {kind}')}, {scale}")
    special = f.put(f"icmp uge {bits} {magnitude}, {types.splat(str(0x7C00), 'i32', lanes)}")
    raised = f.put(f"or {bits} {moved}, {types.splat(str(0x7F800000), 'i32', lanes)}")
    finite = f.put(f"bitcast {kind} {scaled} to {bits}")
    chosen = f.put(f"select {types.vector('i1', lanes)} {special}, {bits} {raised}, {bits} {finite}")
    return f.put(f"bitcast {bits} {f.put(f'or {bits} {chosen}, {sign}')} to {kind}")


def _from_bfloat(f: Function, a: str, lanes: int) -> str:
    short, kind, bits = (types.vector(t, lanes) for t in ("i16", "float", "i32"))
    wide = f.put(f"shl {bits} {f.put(f'zext {short} {a} to {bits}')}, {types.splat('16', 'i32', lanes)}")
    return f.put(f"bitcast {bits} {wide} to {kind}")


def _to_bfloat(f: Function, a: str, lanes: int) -> str:
    """Return float32 `a` rounded to nearest, ties to even; a NaN stays one, and quiet."""
    short, kind, bits, flag = (types.vector(t, lanes) for t in ("i16", "float", "i32", "i1"))
    pattern = f.put(f"bitcast {kind} {a} to {bits}")
    high = f.put(f"lshr {bits} {pattern}, {types.splat('16', 'i32', lanes)}")
    odd = f.put(f"and {bits} {high}, {types.splat('1', 'i32', lanes)}")
    most = f.put(f"add {bits} {odd}, {types.splat(str(0x7FFF), 'i32', lanes)}")
    near = f.put(f"lshr {bits} {f.put(f'add {bits} {pattern}, {most}')}, {types.splat('16', 'i32', lanes)}")
    quiet = f.put(f"or {bits} {high}, {types.splat('64', 'i32', lanes)}")
    is_nan = f.put(f"fcmp uno {kind} {a}, {a}")
    return f.put(f"trunc {bits} {f.put(f'select {flag} {is_nan}, {bits} {quiet}, {bits} {near}')} to {short}")


def _to_half(f: Function, a: str, lanes: int) -> str:
    short, half, kind, bits, flag = (types.vector(t, lanes) for t in ("i16", "half", "float", "i32", "i1"))

    def number(n: int) -> str:
        return types.splat(str(n), "i32", lanes)

    if _native(f):
        return f.put(f"bitcast {half} {f.put(f'fptrunc {kind} {a} to {half}')} to {short}")
    pattern = f.put(f"bitcast {kind} {a} to {bits}")
    magnitude = f.put(f"and {bits} {pattern}, {number(0x7FFFFFFF)}")
    sign = f.put(f"lshr {bits} {f.put(f'xor {bits} {pattern}, {magnitude}')}, {number(16)}")
    odd = f.put(f"and {bits} {f.put(f'lshr {bits} {magnitude}, {number(13)}')}, {number(1)}")
    rounded = f.put(f"add {bits} {f.put(f'add {bits} {magnitude}, {number(0xFFF - (112 << 23))}')}, {odd}")
    normal = f.put(f"lshr {bits} {rounded}, {number(13)}")
    size = f.put(f"bitcast {bits} {magnitude} to {kind}")
    aligned = f.put(f"fadd {kind} {size}, {types.constant(0.5, dtypes.float32, lanes)}")  # ulp 2**-24: the FPU rounds
    small = f.put(f"sub {bits} {f.put(f'bitcast {kind} {aligned} to {bits}')}, {number(0x3F000000)}")
    is_small = f.put(f"icmp ult {bits} {magnitude}, {number(113 << 23)}")
    finite = f.put(f"select {flag} {is_small}, {bits} {small}, {bits} {normal}")
    is_large = f.put(f"icmp uge {bits} {magnitude}, {number(143 << 23)}")
    is_nan = f.put(f"icmp ugt {bits} {magnitude}, {number(0x7F800000)}")
    special = f.put(f"select {flag} {is_nan}, {bits} {number(0x7E00)}, {bits} {number(0x7C00)}")
    chosen = f.put(f"select {flag} {is_large}, {bits} {special}, {bits} {finite}")
    return f.put(f"trunc {bits} {f.put(f'or {bits} {chosen}, {sign}')} to {short}")
