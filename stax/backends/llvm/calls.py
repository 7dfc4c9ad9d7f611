"""Functions that are instructions."""

from __future__ import annotations

from stax import dtypes
from stax.backends.llvm import types
from stax.backends.llvm.convert import cast
from stax.backends.llvm.lanes import Part, vector
from stax.backends.llvm.writer import Function
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.nodes import Call, Fn

_PLAIN = {
    Fn.FMA: "fma", Fn.SQRT: "sqrt", Fn.FLOOR: "floor", Fn.CEIL: "ceil", Fn.TRUNC: "trunc", Fn.RINT: "rint",
    Fn.COPYSIGN: "copysign",
}  # fmt: skip


def call(f: Function, node: Call, args: list[Part], lanes: int) -> Part:
    """Return one component of a primitive function of `args`."""
    if all(a.slope == 0 for a in args):
        lanes = 0
    texts = [vector(f, a, e.dtype, lanes) for a, e in zip(args, node.args, strict=True)]
    return Part(_call(f, node.fn, texts, node.args[0].dtype, node, lanes), None if lanes else 0)


def _call(f: Function, fn: Fn, args: list[str], source: DType, node: Call, lanes: int) -> str:
    kind, element, flag = types.value(source, lanes), types.element(source), types.vector("i1", lanes)
    if source.is_float and source.bits == 16 and fn is not Fn.SATURATING_CAST:
        wide = [cast(f, a, source, dtypes.float32, lanes) for a in args]
        made = _call(f, fn, wide, dtypes.float32, node, lanes)
        return made if node.dtype.is_bool else cast(f, made, dtypes.float32, node.dtype, lanes)
    if fn in _PLAIN:
        return f.over(_PLAIN[fn], element, lanes, *args)
    sign = "s" if source.is_signed else "u"
    match fn:
        case Fn.ISNAN:
            return f.put(f"fcmp uno {kind} {args[0]}, {args[0]}")
        case Fn.POPCOUNT:
            return cast(f, f.over("ctpop", element, lanes, args[0]), _unsigned(source), node.dtype, lanes)
        case Fn.CLZ:
            count = f.intrinsic(f"ctlz.{types.mangled(element, lanes)}", kind, [(kind, args[0]), ("i1", "false")])
            return cast(f, count, _unsigned(source), node.dtype, lanes)
        case Fn.SATURATING_CAST:
            return _saturating_cast(f, args[0], source, node.dtype, lanes)
        case Fn.SATURATING_ADD:
            return f.over(f"{sign}add.sat", element, lanes, *args)
        case Fn.SATURATING_SUB:
            return f.over(f"{sign}sub.sat", element, lanes, *args)
        case Fn.ABSD if source.is_float:
            return f.over("fabs", element, lanes, f.put(f"fsub {kind} {args[0]}, {args[1]}"))
        case Fn.ABSD:
            most, least = (f.over(f"{sign}{word}", element, lanes, *args) for word in ("max", "min"))
            return cast(f, f.put(f"sub {kind} {most}, {least}"), _unsigned(source), node.dtype, lanes)
        case Fn.WIDENING_MUL:
            a, b = (cast(f, x, e.dtype, node.dtype, lanes) for x, e in zip(args, node.args, strict=True))
            return f.put(f"{'fmul' if node.dtype.is_float else 'mul'} {types.value(node.dtype, lanes)} {a}, {b}")
        case Fn.ROUNDING_AVERAGE:
            either, apart = f.put(f"or {kind} {args[0]}, {args[1]}"), f.put(f"xor {kind} {args[0]}, {args[1]}")
            word = "ashr" if source.is_signed else "lshr"
            half = f.put(f"{word} {kind} {apart}, {types.splat('1', element, lanes)}")
            return f.put(f"sub {kind} {either}, {half}")
        case Fn.MUL_HIGH:
            wide = types.vector(f"i{2 * source.bits}", lanes)
            word = "sext" if source.is_signed else "zext"
            a, b = (f.put(f"{word} {kind} {x} to {wide}") for x in args)
            bits = types.splat(str(source.bits), f"i{2 * source.bits}", lanes)
            high = f.put(f"lshr {wide} {f.put(f'mul {wide} {a}, {b}')}, {bits}")
            return f.put(f"trunc {wide} {high} to {kind}")
        case _:
            raise InternalError(f"{fn.value} of {source.name} is no primitive of {flag}")


def _unsigned(dtype: DType) -> DType:
    return {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bits]


def _saturating_cast(f: Function, a: str, source: DType, dtype: DType, lanes: int) -> str:
    if not (source.is_integer and dtype.is_integer):
        return cast(f, a, source, dtype, lanes)
    sign, element = "s" if source.is_signed else "u", types.element(source)
    low, high = max(source.low, dtype.low), min(source.high, dtype.high)
    if low > source.low:
        a = f.over(f"{sign}max", element, lanes, a, types.constant(low, source, lanes))
    if high < source.high:
        a = f.over(f"{sign}min", element, lanes, a, types.constant(high, source, lanes))
    return cast(f, a, source, dtype, lanes)
