"""Calls that machine code checks give what calls that Python checks give, errors included."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.runtime import entry
from stax.runtime.kernel import Kernel
from tests.meaning.programs import PROGRAMS

here = pytest.mark.skipif(entry.layout_here() is None, reason="this interpreter has no entries")
F32 = np.float32


def scaled(**param: Any) -> Kernel:
    x, a, gain = sx.Var("x"), sx.Input("a", sx.float32, 1), sx.Param("gain", sx.float32, **param)
    f = sx.Func("f")
    f[x] = a[x] * gain
    return sx.compile(f, strict_native=True)


def stencil() -> Kernel:
    y, x = sx.vars("y x")
    a, b, f = sx.Input("a", sx.int32, 2), sx.Input("b", sx.int32, 1), sx.Func("f")
    f[y, x] = a[y, x] + a[y + 1, x + 2] * b[x]
    return sx.compile(f, strict_native=True)


def hot(kernel: Kernel, *args: Any, **named: Any) -> Kernel:
    """Return the kernel after calls with these arguments, which an entry serves from now on."""
    for _ in range(3):
        kernel(*args, **named)
    assert kernel.cache_info().entered
    return kernel


def said(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return the bytes that a call gives, or its error."""
    try:
        found = call(*args, **named)
    except Exception as error:
        return type(error), str(error)
    parts: list[Any] = []
    for one in found if isinstance(found, tuple) else (found,):
        parts += one if isinstance(one, tuple) else (one,)
    return [(p.dtype, p.shape, p.tobytes()) for p in parts]


def agree(kernel: Kernel, *args: Any, **named: Any) -> None:
    """Assert that a kernel says the same through its entry and through Python."""
    assert said(kernel, *args, **named) == said(kernel._call, *args, **named)


@here
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_entries_give_the_bits_that_python_gives(program: Any) -> None:
    case = program()
    kernel = sx.compile(case.outputs, strict_native=True)
    args = [case.arguments[name] for name in kernel.signature.arguments if name in case.arguments]
    if not case.shaped or len(args) < len(kernel.signature.arguments):
        pytest.skip("the call is more than its arguments in order")
    wanted = said(kernel._call, *args)
    for _ in range(4):
        assert said(kernel, *args) == wanted
    out = kernel(*args)
    flat = not any(isinstance(o, tuple) for o in out) if isinstance(out, tuple) else True
    if flat:
        for _ in range(4):
            assert said(kernel, *args, out=out) == wanted
        if len(kernel.signature.outputs) == 1 and not kernel.signature.overwritten:
            fits = all(type(a) in (np.ndarray, int, float, bool) for a in args) and np.size(case.expected)
            takes = all(a.dtype != np.float16 for a in args if not isinstance(a, np.ndarray) and hasattr(a, "dtype"))
            plain = all(a.flags.aligned for a in args if isinstance(a, np.ndarray))
            assert kernel.cache_info().entered or not (fits and takes and plain)


@here
def test_whatever_is_not_as_the_entry_takes_it_is_left_to_python() -> None:
    """Each of these through a kernel whose entry serves dense arrays: the same values, or the same words."""
    a, b = np.arange(63, dtype=np.int32).reshape(7, 9), np.arange(7, dtype=np.int32)
    kernel = hot(stencil(), a, b)
    out = kernel(a, b)
    hot(kernel, a, b, out=out)
    readonly = out.copy()
    readonly.flags.writeable = False
    shared = np.zeros(200, np.int32)
    raw = np.zeros(260, np.uint8)[1:253].view(np.int32).reshape(7, 9)
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((a, b), {}), ((a[:, ::-1], b), {}), ((a[::-1], b), {}), ((a.T, b), {}), ((np.asfortranarray(a), b), {}),
        ((a[:1], b), {}), ((a[:, :2], b), {}), ((a[:0], b), {}), ((a, b[:3]), {}), ((a, b[:0]), {}), ((raw, b), {}),
        ((a.astype(np.int64), b), {}), ((a.astype(">i4"), b), {}), ((a[0], b), {}), ((a,), {}), ((a, b, b), {}),
        ((a.tolist(), b), {}), ((memoryview(a), b), {}), ((None, b), {}), ((np.ma.masked_array(a), b), {}),
        ((a, b), {"out": out}), ((a, b), {"out": out[:3]}), ((a, b), {"out": out[:, ::-1]}), ((a, b), {"out": None}),
        ((a, b), {"out": readonly}), ((a, b), {"out": out.astype(np.int64)}), ((a, b), {"out": (out,)}),
        ((a, b), {"out": np.zeros((6, 14), np.int32)[:, ::2]}), ((a, b), {"out": np.zeros((6, 20), np.int32)[:, 3:10]}),
        ((a, b), {"out": np.zeros((7, 6), np.int32).T}), ((a, b), {"out": np.zeros((0, 7), np.int32)}),
        ((a, b), {"out": np.zeros((6, 8), np.int32)}), ((a, b), {"out": np.broadcast_to(out[:1], (6, 7))}),
        ((shared[:63].reshape(7, 9), b), {"out": shared[40:82].reshape(6, 7)}),
        ((shared[:63].reshape(7, 9), b), {"out": shared[63:105].reshape(6, 7)}),
        ((shared[:126].reshape(7, 18)[:, :9], b), {"out": shared[9:117].reshape(6, 18)[:, :7]}),
        ((a, b), {"out": out, "shape": (2, 3)}), ((a, b), {"shape": (2, 3)}), ((a, b), {"origin": (1, 0)}),
        ((a, b), {"threads": 1}), ((a, b), {"threads": 0}), ((a,), {"b": b}), ((a, b), {"c": b}),
        ((), {"a": a, "b": b}),
        ((a, b), {"out": out, "overlap": "copy"}), ((a, b), {"overlap": "no"}),
        ((np.zeros((300, 500), np.int32), b), {}),
        ((np.zeros((300, 9), np.int32), np.zeros(400, np.int32)), {}), ((np.zeros((2, 40000), np.int32), b), {}),
    ]  # fmt: skip
    for args, named in cases:
        agree(kernel, *args, **named)


@here
@pytest.mark.parametrize(
    "value", [2.5, 1e-46, 3.4028235e38, 3.5e38, float("inf"), float("nan"), -0.0, 2, True, F32(1.5), None, "x"]
)
def test_numbers_for_floats_are_rounded_and_refused_as_python_does(value: Any) -> None:
    a = np.arange(5, dtype=F32)
    kernel = hot(scaled(), a, 1.5)
    agree(kernel, a, value)
    agree(hot(scaled(low=-1.0, high=1e9), a, 1.5), a, value)
    agree(hot(scaled(default=0.1), a), a, value)
    agree(hot(scaled(default=0.1), a), a)


@here
@pytest.mark.parametrize("dtype", [sx.int8, sx.uint16, sx.int32, sx.int64, sx.uint64])
def test_numbers_for_integers_fit_or_are_refused(dtype: Any) -> None:
    x, a, k, f = sx.Var("x"), sx.Input("a", sx.int64, 1), sx.Param("k", dtype), sx.Func("f")
    f[x] = a[x] + sx.cast(k, sx.int64)
    kernel, given = sx.compile(f), np.arange(4)
    hot(kernel, given, 3)
    for bits in (7, 8, 15, 16, 31, 32, 63, 64, 80):
        for value in (2**bits, 2**bits - 1, -(2**bits), -(2**bits) - 1):
            agree(kernel, given, value)
    for other in (1.0, True, np.int16(4), np.array(3)):
        agree(kernel, given, other)


@here
def test_bools_and_sizes_that_depend_on_params() -> None:
    x, n, flag = sx.Var("x"), sx.Param("n", sx.int64), sx.Param("flag", sx.bool_, default=True)
    f = sx.Func("f", shape=(n * n - 3,))
    f[x] = sx.select(flag, x, -x)
    kernel = hot(sx.compile(f), 4)
    for args in ((4,), (4, False), (1,), (0,), (-5,), (2**31,), (2**62,), (300,), (4, 1), (True,)):
        agree(kernel, *args)


@here
def test_layouts_that_come_in_turns_each_have_an_entry() -> None:
    x, a, f = sx.Var("x"), sx.Input("a", sx.int16, 1), sx.Func("f")
    f[x] = a[x] * 3
    kernel, v = sx.compile(f), np.arange(20, dtype=np.int16)
    for _ in range(3):
        for given in (v, v[::2], v[::-1]):
            assert np.array_equal(kernel(given), given * 3)
    before = kernel.cache_info()
    assert before.versions == 2
    for given in (v, v[::2], v[::-3]):
        assert np.array_equal(kernel(given), given * 3)
    after = kernel.cache_info()
    assert after.entered - before.entered == after.calls - before.calls == 3


@here
def test_channels_of_pixels_are_a_kind_of_their_own() -> None:
    y, x, c = sx.vars("y x c")
    photo, f = sx.Input("photo", sx.uint8, (None, None, 3)), sx.Func("f")
    f[y, x, c] = photo[y, x, c] + 1
    kernel, v = sx.compile(f), np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    hot(kernel, v, out=np.empty_like(v))
    for given in (v, v[:, ::2], np.zeros((4, 5, 4), np.uint8)[..., :3], np.zeros((4, 5, 4), np.uint8)):
        agree(kernel, given)
        agree(kernel, given, out=np.empty(given.shape, np.uint8))


def test_lengths_from_1_to_512_are_served_by_one_version() -> None:
    """A thousand calls; sizes are arguments of the code and no part of its key."""
    x, a, f = sx.Var("x"), sx.Input("a", sx.float32, 1), sx.Func("f")
    f[x] = a[x] * 2 + 1
    kernel, random = sx.compile(f, strict_native=True), np.random.default_rng(0)
    for n in random.integers(1, 512, 1000, endpoint=True):
        v = np.arange(n, dtype=F32)
        assert np.array_equal(kernel(v), v * 2 + 1)
    assert (kernel.cache_info().versions, kernel.cache_info().calls) == (1, 1000)


@here
def test_tables_tuples_and_several_outputs() -> None:
    x, table = sx.Var("x"), sx.Const("table", np.arange(10, 20, dtype=np.int32))
    a, f, g = sx.Input("a", sx.int32, 1), sx.Func("f"), sx.Func("g")
    f[x] = table[sx.clip(a[x], 0, 9)]
    g[x] = f[x] + a[x]
    kernel, v = sx.compile((f, g)), np.arange(7, dtype=np.int32)
    outs = (np.empty(7, np.int32), np.empty(7, np.int32))
    hot(kernel, v, out=outs)
    assert kernel(v, out=outs) == outs
    agree(kernel, v, out=outs)
    for other in (list(outs), (outs[0], None), (outs[0], outs[0]), (outs[0], outs[1][:3]), outs[:1], (v, outs[1])):
        agree(kernel, v, out=other)


@here
def test_nothing_is_leaked() -> None:
    a, kernel = np.arange(5, dtype=F32), hot(scaled(default=2.0), np.arange(5, dtype=F32))
    out = kernel(a)
    counted = (a, out, a.dtype, np.ndarray)
    before = [sys.getrefcount(o) for o in counted]
    for _ in range(2000):
        kernel(a, out=out)
        kernel(a, 1.5)
        with pytest.raises(sx.errors.ArgumentError):
            kernel(a, "x")
    assert all(abs(sys.getrefcount(o) - b) < 10 for o, b in zip(counted, before, strict=True))
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None


@here
def test_several_threads_call_one_entry() -> None:
    kernel, wrong = hot(scaled(), np.arange(5, dtype=F32), 2.0), list[int]()

    def work(n: int) -> None:
        v = np.arange(n, dtype=F32)
        for _ in range(300):
            if not np.array_equal(kernel(v, 3.0), v * 3):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 7, 5000, 16000)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_where_objects_are_laid_out_otherwise_python_checks_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "layout_here", lambda: None)
    kernel, a = scaled(), np.arange(5, dtype=F32)
    for _ in range(4):
        assert np.array_equal(kernel(a, 2.0), a * 2)
    assert (kernel.cache_info().entered, kernel.cache_info().calls) == (0, 4)


def test_a_miss_is_explained() -> None:
    kernel = stencil()
    a, b = np.arange(63, dtype=np.int32).reshape(7, 9), np.arange(7, dtype=np.int32)
    assert kernel.explain_miss(a, b) == "a call compiles a version for these arrays"
    kernel(a, b)
    assert kernel.explain_miss(a, b) == "version 1 serves these arrays"
    assert kernel.explain_miss(a[:, ::-1], b).splitlines() == [
        "version 1: `a` steps by -4 bytes in its last dimension, of elements of 4; it takes one element",
        "a call compiles a version for these arrays",
    ]
    raw = np.zeros(260, np.uint8)[1:253].view(np.int32).reshape(7, 9)
    assert "it takes multiples of 4" in kernel.explain_miss(raw, b)
