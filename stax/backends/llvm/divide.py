"""Division and remainder, rounding down, 0 where the divisor is 0.

By a constant there is no guard, and LLVM multiplies instead. Vectors of 8 to 32 bits divide as floats wide enough to be
exact, since there is no vector division of integers.
"""

from __future__ import annotations

from stax import dtypes
from stax.backends.llvm import types
from stax.backends.llvm.convert import cast
from stax.backends.llvm.writer import Function
from stax.dtypes import DType


def floor(f: Function, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return `a // b` of integers."""
    by = types.known(b)
    if by is not None:
        return _by_constant(f, a, by, dtype, lanes)
    return _pair(f, a, b, dtype, lanes)[0]


def modulo(f: Function, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return `a % b` of integers."""
    kind, element = types.value(dtype, lanes), types.element(dtype)
    by = types.known(b)
    if by is None:
        return _pair(f, a, b, dtype, lanes)[1]
    if by > 0 and by & (by - 1) == 0:
        return f.put(f"and {kind} {a}, {types.splat(str(by - 1), element, lanes)}")
    if by == 0 or (by == -1 and dtype.is_signed):
        return types.splat("0", element, lanes)
    if not dtype.is_signed:
        return f.put(f"urem {kind} {a}, {b}")
    whole = _by_constant(f, a, by, dtype, lanes)
    return f.put(f"sub {kind} {a}, {f.put(f'mul {kind} {whole}, {b}')}")


def _by_constant(f: Function, a: str, by: int, dtype: DType, lanes: int) -> str:
    kind, element = types.value(dtype, lanes), types.element(dtype)
    divisor = types.splat(str(by), element, lanes)
    if by == 0:
        return types.splat("0", element, lanes)
    if not dtype.is_signed:
        return f.put(f"udiv {kind} {a}, {divisor}")
    if by > 0 and by & (by - 1) == 0:
        return f.put(f"ashr {kind} {a}, {types.splat(str(by.bit_length() - 1), element, lanes)}")
    if by == -1:
        return f.put(f"sub {kind} {types.splat('0', element, lanes)}, {a}")
    sign = f.put(f"ashr {kind} {a}, {types.splat(str(dtype.bits - 1), element, lanes)}")
    if by > 0:  # below 0, floor(a / by) is ~(~a / by), and a ^ sign is never below 0
        size = f.put(f"xor {kind} {a}, {sign}")
        return f.put(f"xor {kind} {f.put(f'udiv {kind} {size}, {divisor}')}, {sign}")
    whole = f.put(f"sdiv {kind} {a}, {divisor}")
    rest = f.put(f"sub {kind} {a}, {f.put(f'mul {kind} {whole}, {divisor}')}")
    above = f.put(f"icmp sgt {kind} {rest}, {types.splat('0', element, lanes)}")
    flag = types.vector("i1", lanes)
    return f.put(f"add {kind} {whole}, {f.put(f'sext {flag} {above} to {kind}')}")


def _pair(f: Function, a: str, b: str, dtype: DType, lanes: int) -> tuple[str, str]:
    """Return quotient and remainder by a divisor that may be anything."""
    f.module.thorough = True  # or a division would stay in loops that it does not vary in
    kind, element, flag = types.value(dtype, lanes), types.element(dtype), types.vector("i1", lanes)
    zero, one = types.splat("0", element, lanes), types.splat("1", element, lanes)
    if not dtype.is_signed:
        none = f.put(f"icmp eq {kind} {b}, {zero}")
        safe = f.put(f"select {flag} {none}, {kind} {one}, {kind} {b}")
        whole = _quotient(f, a, safe, dtype, lanes)
        rest = f.put(f"sub {kind} {a}, {f.put(f'mul {kind} {whole}, {safe}')}")
        return (
            f.put(f"select {flag} {none}, {kind} {zero}, {kind} {whole}"),
            f.put(f"select {flag} {none}, {kind} {zero}, {kind} {rest}"),
        )
    special = f.put(f"icmp ule {kind} {f.put(f'add {kind} {b}, {one}')}, {one}")  # b is 0 or -1, and a // b is a * b
    safe = f.put(f"select {flag} {special}, {kind} {one}, {kind} {b}")
    cut = _quotient(f, a, safe, dtype, lanes)
    rest = f.put(f"sub {kind} {a}, {f.put(f'mul {kind} {cut}, {safe}')}")
    apart = f.put(f"icmp slt {kind} {f.put(f'xor {kind} {rest}, {safe}')}, {zero}")
    some = f.put(f"icmp ne {kind} {rest}, {zero}")
    low = f.put(f"and {flag} {apart}, {some}")
    whole = f.put(f"add {kind} {cut}, {f.put(f'sext {flag} {low} to {kind}')}")
    moved = f.put(f"select {flag} {low}, {kind} {safe}, {kind} {zero}")
    product = f.put(f"mul {kind} {a}, {b}")
    return (
        f.put(f"select {flag} {special}, {kind} {product}, {kind} {whole}"),
        f.put(f"select {flag} {special}, {kind} {zero}, {kind} {f.put(f'add {kind} {rest}, {moved}')}"),
    )


def _quotient(f: Function, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return `a / b` cut towards 0; b is neither 0 nor -1."""
    if lanes and dtype.bits <= 32:
        wide = dtypes.float64 if dtype.bits == 32 else dtypes.float32
        x, y = (cast(f, v, dtype, wide, lanes) for v in (a, b))
        ratio = f.put(f"fdiv {types.value(wide, lanes)} {x}, {y}")
        middle = "i32" if dtype.bits < 32 else types.element(dtype)
        word = "fptosi" if dtype.is_signed or dtype.bits < 32 else "fptoui"
        whole = f.put(f"{word} {types.value(wide, lanes)} {ratio} to {types.vector(middle, lanes)}")
        if dtype.bits == 32:
            return whole
        return f.put(f"trunc {types.vector(middle, lanes)} {whole} to {types.value(dtype, lanes)}")
    return f.put(f"{'sdiv' if dtype.is_signed else 'udiv'} {types.value(dtype, lanes)} {a}, {b}")


def float_modulo(f: Function, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return `a % b` of floats."""
    kind, flag = types.value(dtype, lanes), types.vector("i1", lanes)
    zero = types.constant(0.0, dtype, lanes)
    rest, apart = _float_rest(f, a, b, dtype, lanes)
    moved = f.put(f"fadd {kind} {rest}, {b}")
    whole = f.put(f"select {flag} {apart}, {kind} {moved}, {kind} {rest}")
    some = f.put(f"fcmp une {kind} {rest}, {zero}")
    signed = f.over("copysign", types.element(dtype), lanes, zero, b)
    result = f.put(f"select {flag} {some}, {kind} {whole}, {kind} {signed}")
    none = f.put(f"fcmp oeq {kind} {b}, {zero}")
    return f.put(f"select {flag} {none}, {kind} {rest}, {kind} {result}")


def float_floor(f: Function, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return `a // b` of floats."""
    kind, element, flag = types.value(dtype, lanes), types.element(dtype), types.vector("i1", lanes)
    zero, one, half = (types.constant(x, dtype, lanes) for x in (0.0, 1.0, 0.5))
    rest, apart = _float_rest(f, a, b, dtype, lanes)
    exact = f.put(f"fdiv {kind} {f.put(f'fsub {kind} {a}, {rest}')}, {b}")
    some = f.put(f"and {flag} {apart}, {f.put(f'fcmp une {kind} {rest}, {zero}')}")
    lower = f.put(f"fsub {kind} {exact}, {one}")
    quotient = f.put(f"select {flag} {some}, {kind} {lower}, {kind} {exact}")
    whole = f.over("floor", element, lanes, quotient)
    far = f.put(f"fcmp ogt {kind} {f.put(f'fsub {kind} {quotient}, {whole}')}, {half}")
    whole = f.put(f"select {flag} {far}, {kind} {f.put(f'fadd {kind} {whole}, {one}')}, {kind} {whole}")
    plain = f.put(f"fdiv {kind} {a}, {b}")
    signed = f.over("copysign", element, lanes, zero, plain)
    empty = f.put(f"fcmp oeq {kind} {quotient}, {zero}")
    whole = f.put(f"select {flag} {empty}, {kind} {signed}, {kind} {whole}")
    none = f.put(f"fcmp oeq {kind} {b}, {zero}")
    return f.put(f"select {flag} {none}, {kind} {plain}, {kind} {whole}")


def _float_rest(f: Function, a: str, b: str, dtype: DType, lanes: int) -> tuple[str, str]:
    """Return fmod(a, b), and whether it and b lie on different sides of 0."""
    kind, zero = types.value(dtype, lanes), types.constant(0.0, dtype, lanes)
    f.module.thorough = True
    rest = f.put(f"frem {kind} {a}, {b}")
    below = f.put(f"fcmp olt {kind} {rest}, {zero}")
    under = f.put(f"fcmp olt {kind} {b}, {zero}")
    return rest, f.put(f"xor {types.vector('i1', lanes)} {below}, {under}")
