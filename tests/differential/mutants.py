# ruff: noqa: D401
"""Small faults in `lower` and the LLVM backend, each of which the random programs must find.

A mutant replaces one function of stax in a process of its own. It is found when a program under it gives other bits
than the oracle, fails, or ends its process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from stax import dtypes
from stax.backends.llvm import arith, calls, convert, divide, lanes, memory, parallel
from stax.backends.llvm import expr as expressions
from stax.backends.llvm import loop as loops
from stax.expr import build
from stax.expr.nodes import COMPARES, Binary, BinaryOp, Broadcast, Call, Const, Expr, Fn, Load, Select
from stax.expr.walk import postorder
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Program, Stmt, Store
from stax.loops.walk import as_block, rewrite_expressions, rewrite_statements, substitute
from stax.lower import passes
from tests.differential.work import Job, quick
from tests.differential.workers import Died, run_all


@dataclass(frozen=True, slots=True)
class Mutant:
    """`apply` breaks stax in this process."""

    name: str
    apply: Callable[[], None]


def _wrap(module: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Return what replaces `module.name` by `make` of it, and wherever else it was imported."""

    def apply() -> None:
        old = getattr(module, name)
        new = make(old)
        for one in [m for at, m in sys.modules.items() if at.startswith("stax.") and getattr(m, name, None) is old]:
            setattr(one, name, new)

    return apply


def _after(pass_: str, change: Callable[[Program], Program]) -> Callable[[], None]:
    """Return what lets `change` follow a pass of `lower`."""

    def make(old: Callable[..., Program]) -> Callable[..., Program]:
        return lambda *args, **named: change(old(*args, **named))

    return _wrap(passes, pass_, make)


def _stmts(rule: Callable[[Stmt], Stmt]) -> Callable[[Program], Program]:
    return lambda p: replace(p, body=as_block(rewrite_statements(p.body, rule)))


def _exprs(rule: Callable[[Expr], Expr]) -> Callable[[Program], Program]:
    return lambda p: replace(p, body=as_block(rewrite_expressions(p.body, rule)))


# ------------------------------------------------------------------------------------------------------------- lower


def _no_guards(s: Stmt) -> Stmt:
    """Partial tiles run in full, and predicates of RDoms are forgotten."""
    return s.then if isinstance(s, If) else s


def _unmasked(e: Expr) -> Expr:
    return replace(e, mask=()) if isinstance(e, Load) and e.mask else e


def _no_halo(s: Stmt) -> Stmt:
    """Rows of scratch are one cell too short."""
    if isinstance(s, Allocate) and s.buffer.shape:
        *rest, last = s.buffer.shape
        return Allocate(replace(s.buffer, shape=(*rest, build.maximum(build.sub(last, 1), build.index(0)))))
    return s


def _short_tail(s: Stmt) -> Stmt:
    """A partial tile loses its last iteration."""
    if isinstance(s, For) and any(isinstance(n, Binary) and n.op is BinaryOp.MIN for n in postorder((s.extent,))):
        return replace(s, extent=build.sub(s.extent, 1))
    return s


def _from_zero(s: Stmt) -> Stmt:
    """Carried values begin at 0."""
    if not isinstance(s, For) or not s.carries:
        return s
    fresh = []
    for c in s.carries:
        value: Expr = Const(c.init.dtype, False if c.init.dtype.is_bool else 0)
        fresh.append(replace(c, init=Broadcast(c.init.dtype, value, axes=c.init.axes) if c.init.axes else value))
    return replace(s, carries=tuple(fresh))


def _no_store_mask(s: Stmt) -> Stmt:
    return replace(s, mask=()) if isinstance(s, Store) else s


def _upwards(s: Stmt) -> Stmt:
    return replace(s, down=False) if isinstance(s, For) else s


def _short_unroll(s: Stmt) -> Stmt:
    """An unrolled loop loses its last copy."""
    if isinstance(s, For) and s.kind is LoopKind.UNROLL:
        return replace(s, extent=build.sub(s.extent, 1))
    return s


def _swapped_arms(e: Expr) -> Expr:
    """`select`s on positions give the other arm."""
    if isinstance(e, Select) and not any(isinstance(n, Load) for n in postorder((e.cond,))):
        return replace(e, yes=e.no, no=e.yes)
    return e


def _parts_in_turn(s: Stmt) -> Stmt:
    """A part of a tuple is written before the next is computed."""
    if not isinstance(s, Block) or not any(isinstance(t, Let) and t.value.dtype.name != "index" for t in s.stmts):
        return s
    lets = {t.name.name: t.value for t in s.stmts if isinstance(t, Let) and t.value.dtype.name != "index"}
    kept = [substitute(t, lets) for t in s.stmts if not (isinstance(t, Let) and t.name.name in lets)]
    return Block(tuple(kept))


def _half_open(s: Stmt) -> Stmt:
    """Bounds that were `<=` are `<`."""

    def rule(e: Expr) -> Expr:
        return replace(e, op=BinaryOp.LT) if isinstance(e, Binary) and e.op is BinaryOp.LE else e

    return rewrite_expressions(s, rule) if isinstance(s, If) else s


def _serial_order(s: Stmt) -> Stmt:
    """The nests of a block run in another order: the last one first."""
    if isinstance(s, Block):
        at = [k for k, t in enumerate(s.stmts) if isinstance(t, For)]
        if len(at) > 1:
            swapped = list(s.stmts)
            swapped[at[0]], swapped[at[-1]] = swapped[at[-1]], swapped[at[0]]
            return Block(tuple(swapped))
    return s


# ----------------------------------------------------------------------------------------------------------- backend


def _swapped_vector_select(old: Any) -> Any:
    def select(f: Any, cond: str, yes: str, no: str, dtype: Any, n: int, *, by_lane: bool) -> str:
        return (
            old(f, cond, no, yes, dtype, n, by_lane=by_lane)
            if by_lane
            else old(f, cond, yes, no, dtype, n, by_lane=by_lane)
        )

    return select


def _other_sign(dtype: Any) -> Any:
    return dtypes.as_dtype(f"{'uint' if dtype.is_signed else 'int'}{dtype.bits}") if dtype.name != "index" else dtype


def _signed_compare(old: Any) -> Any:
    def binary(f: Any, op: BinaryOp, a: str, b: str, dtype: Any, n: int) -> str:
        swap = op in COMPARES and dtype.is_integer and not dtype.is_signed
        return old(f, op, a, b, _other_sign(dtype) if swap else dtype, n)

    return binary


def _logical_shift(old: Any) -> Any:
    def binary(f: Any, op: BinaryOp, a: str, b: str, dtype: Any, n: int) -> str:
        swap = op is BinaryOp.SHR and dtype.is_signed
        return old(f, op, a, b, _other_sign(dtype) if swap else dtype, n)

    return binary


def _other_op(wrong: dict[BinaryOp, BinaryOp], floats: bool) -> Callable[[Any], Any]:
    def make(old: Any) -> Any:
        def binary(f: Any, op: BinaryOp, a: str, b: str, dtype: Any, n: int) -> str:
            mine = dtype.is_float == floats and not dtype.is_bool and dtype.name != "index"
            return old(f, wrong.get(op, op) if mine else op, a, b, dtype, n)

        return binary

    return make


def _other_fn(wrong: dict[Fn, Fn]) -> Callable[[Any], Any]:
    def make(old: Any) -> Any:
        def call(f: Any, node: Call, args: Any, n: int) -> Any:
            return old(f, replace(node, fn=wrong.get(node.fn, node.fn)), args, n)

        return call

    return make


def _two_roundings(old: Any) -> Any:
    """Fma is a product and a sum."""

    def inner(f: Any, fn: Fn, args: list[str], source: Any, node: Call, n: int) -> str:
        if fn is Fn.FMA and source.bits > 16:
            product = arith.binary(f, BinaryOp.MUL, args[0], args[1], source, n)
            return arith.binary(f, BinaryOp.ADD, product, args[2], source, n)
        return old(f, fn, args, source, node, n)

    return inner


def _zero_extended(old: Any) -> Any:
    def cast(f: Any, a: str, source: Any, dtype: Any, n: int) -> str:
        if source.is_integer and dtype.is_integer and source.is_signed and dtype.bits > source.bits:
            source = _other_sign(source)
        return old(f, a, source, dtype, n)

    return cast


def _wrapped(old: Any) -> Any:
    """A float becomes an integer through 32 bits or 64 and is cut, not kept in range."""

    def saturated(f: Any, a: str, source: Any, dtype: Any, n: int) -> str:
        if dtype.bits >= 32:
            return old(f, a, source, dtype, n)
        return convert.cast(f, old(f, a, source, dtypes.int64, n), dtypes.int64, dtype, n)

    return saturated


def _rounded_twice(old: Any) -> Any:
    """A float64 becomes a float16 by way of the nearest float32."""
    return lambda f, a, n: f.put(f"fptrunc {_vector('double', n)} {a} to {_vector('float', n)}")


def _vector(kind: str, n: int) -> str:
    return f"<{n} x {kind}>" if n else kind


def _truncated(old: Any) -> Any:
    """Division drops the fraction, and does not floor."""

    def floor(f: Any, a: str, b: str, dtype: Any, n: int) -> str:
        if not dtype.is_signed or dtype.name == "index":
            return old(f, a, b, dtype, n)
        one = Const(dtype, 1)
        del one
        size_a, size_b = (arith.unary(f, arith.UnaryOp.ABS, x, dtype, n) for x in (a, b))
        size = old(f, size_a, size_b, dtype, n)
        apart = arith.binary(f, BinaryOp.XOR, a, b, dtype, n)
        zero = "zeroinitializer" if n else "0"
        sign = arith.binary(f, BinaryOp.LT, apart, zero, dtype, n)
        back = arith.unary(f, arith.UnaryOp.NEG, size, dtype, n)
        return arith.select(f, sign, back, size, dtype, n, by_lane=bool(n))

    return floor


def _dense(old: Any) -> Any:
    """The last dim of an array is taken to step by one element."""

    def address(s: Any, place: Any, index: Any, n: int) -> Any:
        if place.strides and n:
            place = replace(place, strides=(*place.strides[:-1], str(place.dtype.size_bytes)))
        return old(s, place, index, n)

    return address


def _no_mask(old: Any) -> Any:
    """Lanes that are off are stored as well."""

    def store(s: Any, place: Any, index: Any, m: Any, value: Any, n: int, atomic: Any) -> None:
        old(s, place, index, memory.Mask(m.whole, None), value, n, atomic)

    return store


def _first_run(old: Any) -> Any:
    """All runs of an axis count its lanes from 0."""

    def one(s: Any, node: Expr) -> Any:
        found = old(s, node)
        if type(node).__name__ == "Ramp":
            return [replace(p, offset=0) if p.slope == 1 else p for p in found]
        return found

    return one


def _short_run(old: Any) -> Any:
    """The last run of an axis of several is left out."""

    def runs(size: int) -> Any:
        found = old(size)
        return found[:-1] if len(found) > 1 else found

    return runs


def _mixed_captures(old: Any) -> Any:
    """The first two values of a kind that a parallel body captures change places."""

    def task(s: Any, inner: Any) -> Any:
        keys = [k for k, (_, kind, _) in inner.captured.items() if kind == "i64"]
        if len(keys) > 1:
            a, b = keys[0], keys[1]
            x, y = inner.captured[a], inner.captured[b]
            inner.captured[a], inner.captured[b] = (x[0], x[1], y[2]), (y[0], y[1], x[2])
        return old(s, inner)

    return task


def _last_step(old: Any) -> Any:
    """A loop whose extent is no constant ends one iteration early."""

    def run(s: Any, node: Any, start: Any, extent: Any, count: Any) -> None:
        if count is None:
            extent = replace(extent, offset=extent.offset - 1)
        old(s, node, start, extent, count)

    return run


MUTANTS: tuple[Mutant, ...] = (
    Mutant("guards of partial tiles and predicates dropped", _after("build_nests", _stmts(_no_guards))),
    Mutant("masks of reads dropped", _after("build_nests", _exprs(_unmasked))),
    Mutant("rows of scratch one cell short", _after("build_nests", _stmts(_no_halo))),
    Mutant("partial tiles one iteration short", _after("partition_loops", _stmts(_short_tail))),
    Mutant("carried values begin at 0", _after("carry_accumulators", _stmts(_from_zero))),
    Mutant("masks of stores dropped after lanes", _after("vectorize_loops", _stmts(_no_store_mask))),
    Mutant("loops that run downwards run upwards", _after("build_nests", _stmts(_upwards))),
    Mutant("unrolled loops one copy short", _after("vectorize_loops", _stmts(_short_unroll))),
    Mutant("arms of selects on positions swapped", _after("tidy_loops", _exprs(_swapped_arms))),
    Mutant("parts of a tuple written in turn", _after("build_nests", _stmts(_parts_in_turn))),
    Mutant("conditions one point short", _after("tidy_loops", _stmts(_half_open))),
    Mutant("first and last nest change places", _after("build_nests", _stmts(_serial_order))),
    Mutant("arms of vector selects swapped", _wrap(arith, "select", _swapped_vector_select)),
    Mutant("unsigned compares are signed", _wrap(arith, "binary", _signed_compare)),
    Mutant("shifts to the right are logical", _wrap(arith, "binary", _logical_shift)),
    Mutant("minimum of floats is maximum", _wrap(arith, "binary", _other_op({BinaryOp.MIN: BinaryOp.MAX}, True))),
    Mutant("less or equal is less", _wrap(arith, "binary", _other_op({BinaryOp.LE: BinaryOp.LT}, False))),
    Mutant("rint is floor", _wrap(calls, "call", _other_fn({Fn.RINT: Fn.FLOOR}))),
    Mutant("saturating sums wrap", _wrap(calls, "call", _other_fn({Fn.SATURATING_ADD: Fn.SATURATING_SUB}))),
    Mutant("fma rounds twice", _wrap(calls, "_call", _two_roundings)),
    Mutant("signed integers are extended by zeros", _wrap(convert, "cast", _zero_extended)),
    Mutant("floats wrap on their way to small integers", _wrap(convert, "_saturated", _wrapped)),
    Mutant("float64 is rounded twice to float16", _wrap(convert, "_to_odd", _rounded_twice)),
    Mutant("division truncates", _wrap(divide, "floor", _truncated)),
    Mutant("arrays are taken to be dense", _wrap(memory, "address", _dense)),
    Mutant("masks of lanes dropped in stores", _wrap(memory, "store", _no_mask)),
    Mutant("runs of lanes all start at 0", _wrap(expressions, "_one", _first_run)),
    Mutant("last run of lanes left out", _wrap(lanes, "_runs", _short_run)),
    Mutant("captures of parallel bodies mixed", _wrap(parallel, "_task", _mixed_captures)),
    Mutant("loops of run-time extent one step short", _wrap(loops, "_loop", _last_step)),
)  # fmt: skip


def apply(name: str) -> None:
    """Break stax in this process by the mutant `name`."""
    next(m for m in MUTANTS if m.name == name).apply()


@dataclass(frozen=True, slots=True)
class Found:
    """After how many programs a mutant was found, None where it was not, and how it showed."""

    name: str
    programs: int | None
    how: str
    seconds: float


def find(name: str, programs: int, schedules: int, seed: int, jobs: int) -> Found:
    """Run programs under a mutant until one goes wrong."""
    start = time.monotonic()
    todo = (Job(seed + k, schedules) for k in range(programs))
    results = run_all(quick, todo, jobs, 30.0, (apply, name))
    try:
        for k, result in enumerate(results, 1):
            if isinstance(result, Died):
                return Found(name, k, f"seed {result.job.seed}: {result.why}", time.monotonic() - start)
            if result.status in ("wrong", "error"):
                last = [line for line in result.message.strip().splitlines() if line][-1]
                return Found(name, k, f"seed {result.seed}: {last[:90]}", time.monotonic() - start)
    finally:
        results.close()
    return Found(name, None, "", time.monotonic() - start)


def report(programs: int, schedules: int, seed: int, jobs: int) -> int:
    """Find every mutant, and print how; 1 where one was not found."""
    missed = 0
    for mutant in MUTANTS:
        found = find(mutant.name, programs, schedules, seed, jobs)
        where = "NOT FOUND" if found.programs is None else f"after {found.programs:4d} programs"
        print(f"{mutant.name:50s} {where:22s} {found.seconds:5.0f} s  {found.how}", flush=True)
        missed += found.programs is None
    print(f"{len(MUTANTS) - missed} of {len(MUTANTS)} mutants found within {programs} programs each")
    return 1 if missed else 0
