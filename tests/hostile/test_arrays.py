"""Arrays as users have them: any layout gives the right values, and what is wrong is refused with nothing written."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError, BoundsError, StaxError

Array = np.ndarray[Any, Any]
y, x = sx.vars("y x")


def blur() -> tuple[sx.Func, sx.Func]:
    a, bx, by = sx.Input("a", sx.int32, 2), sx.Func("bx"), sx.Func("by")
    bx[y, x] = a[y, x] + a[y, x + 1]
    by[y, x] = bx[y, x] + 3 * bx[y + 1, x]
    return bx, by


@pytest.fixture(scope="module", params=["default", "hand"])
def kernel(request: pytest.FixtureRequest) -> sx.Kernel:
    bx, by = blur()
    if request.param == "default":
        return sx.compile(by, strict_native=True)
    s = sx.Schedule(by)
    s[by].tile((y, x), ("yo", "xo"), ("yi", "xi"), (4, 16)).vectorize("xi", 8).parallel("yo")
    s[bx].compute_at(by, "xo").vectorize(x, 8)
    return sx.compile(by, s, strict_native=True)


def expected(a: Array) -> Array:
    b = a[:, :-1] + a[:, 1:]
    return b[:-1] + 3 * b[1:]


def raw(shape: tuple[int, ...], offset: int = 0) -> Array:
    """Return an array of int32 that begins `offset` bytes into its memory."""
    n = int(np.prod(shape))
    memory = np.zeros(4 * n + 64, np.uint8)[offset : offset + 4 * n].view(np.int32).reshape(shape)
    memory[...] = (np.arange(n) * 7919 % 1009).reshape(shape)
    return memory


LAYOUTS = {
    "C order": lambda: raw((11, 37)),
    "Fortran order": lambda: np.asfortranarray(raw((11, 37))),
    "transposed": lambda: raw((37, 11)).T,
    "reversed": lambda: raw((11, 37))[::-1, ::-1],
    "every second": lambda: raw((22, 111))[::2, ::-3],
    "one row spread": lambda: np.broadcast_to(raw((37,)), (11, 37)),
    "one column spread": lambda: np.broadcast_to(raw((11, 1)), (11, 37)),
    "one number spread": lambda: np.broadcast_to(np.int32(7), (11, 37)),
    "misaligned by 1": lambda: raw((11, 37), 1),
    "misaligned by 2": lambda: raw((11, 37), 2),
    "misaligned and reversed": lambda: raw((11, 37), 3)[:, ::-1],
    "misaligned steps": lambda: np.ndarray((11, 37), np.int32, bytearray(11 * 37 * 7 + 64), 0, (37 * 7, 7)),
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(raw((47,)), 37),
    "a part of records": lambda: np.zeros((11, 37), [("p", "u1"), ("v", "<i4"), ("q", "u2")])["v"],
    "read only": lambda: _locked(raw((11, 37))),
    "a subclass": lambda: np.asmatrix(raw((11, 37))),
    "two rows": lambda: raw((2, 37)),
    "two columns": lambda: raw((37, 2)),
}
OUTPUTS = {
    "C order": lambda h, w: (np.full((h, w), -7, np.int32), np.s_[:, :]),
    "Fortran order": lambda h, w: (np.full((h, w), -7, np.int32, "F"), np.s_[:, :]),
    "reversed": lambda h, w: (np.full((h, w), -7, np.int32), np.s_[::-1, ::-1]),
    "every second": lambda h, w: (np.full((2 * h + 1, 3 * w + 2), -7, np.int32), np.s_[1::2, -1:1:-3]),
    "inside a larger one": lambda h, w: (np.full((h + 6, w + 9), -7, np.int32), np.s_[3:-3, 4:-5]),
    "misaligned": lambda h, w: (_misaligned(h, w), np.s_[:, :]),
}


def _locked(a: Array) -> Array:
    a.setflags(write=False)
    return a


def _misaligned(h: int, w: int) -> Array:
    out = np.zeros(4 * h * w + 1, np.uint8)[1:].view(np.int32).reshape(h, w)
    out[...] = -7
    return out


@pytest.mark.parametrize(("given", "out"), itertools.product(LAYOUTS, OUTPUTS))
def test_layouts_change_no_value_and_nothing_around_the_output(kernel: sx.Kernel, given: str, out: str) -> None:
    a = LAYOUTS[given]()
    before, wanted = a.copy(), expected(np.asarray(a))
    whole, part = OUTPUTS[out](*wanted.shape)
    around = whole.copy()
    around[part] = wanted
    view = whole[part]
    assert kernel(a, out=view) is view
    np.testing.assert_array_equal(whole, around)
    np.testing.assert_array_equal(a, before)
    assert kernel(a).tolist() == wanted.tolist()


class Device:
    """An array in the memory of a GPU, as CuPy and PyTorch show theirs; its pointer must never be followed."""

    shape, dtype, ndim = (11, 37), np.dtype(np.int32), 2

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (11, 37), "typestr": "<i4", "data": (8, False), "version": 3}


A = raw((11, 37))
WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "dtype": ((A.astype(np.int64),), {}),
    "unsigned": ((A.view(np.uint32),), {}),
    "float of the same width": ((A.view(np.float32),), {}),
    "rank 1": ((A[0],), {}),
    "rank 3": ((A[None],), {}),
    "rank 0": ((np.int32(4),), {}),
    "byte order": ((A.astype(">i4"),), {}),
    "records": ((np.zeros((11, 37), "i4,i4"),), {}),
    "objects": ((A.astype(object),), {}),
    "text": ((np.zeros((11, 37), "U1"),), {}),
    "complex": ((A.astype(complex),), {}),
    "time": ((np.zeros((11, 37), "M8[s]"),), {}),
    "masked": ((np.ma.masked_array(A, A > 3),), {}),
    "list": ((A.tolist(),), {}),
    "None": ((None,), {}),
    "a Func": ((blur()[1],), {}),
    "device": ((Device(),), {}),
    "too small": ((A[:5],), {"fits": False}),
    "too narrow": ((A[:, :7],), {"fits": False}),
    "nothing": ((), {}),
    "two": ((A, A), {}),
    "another name": ((), {"img": A}),
    "twice": ((A,), {"a": A}),
    "shape too large": ((A,), {"shape": (11, 36)}),
    "shape of another rank": ((A,), {"shape": (4,)}),
    "shape negative": ((A,), {"shape": (-1, 3)}),
    "shape of text": ((A,), {"shape": "10 36"}),
    "shape NaN": ((A,), {"shape": (float("nan"), 3)}),
    "shape huge": ((A,), {"shape": (2**63, 36)}),
    "shape beyond index": ((A,), {"shape": (2**80, 36)}),
    "threads none": ((A,), {"threads": 0}),
    "threads text": ((A,), {"threads": "2"}),
    "threads float": ((A,), {"threads": 1.5}),
    "origin": ((A,), {"origin": (1, 1)}),
    "overlap": ((A,), {"overlap": True}),
}


@pytest.mark.parametrize("title", WRONG)
def test_a_refused_call_writes_nothing(kernel: sx.Kernel, title: str) -> None:
    args, named = WRONG[title]
    named = dict(named)
    named.pop("fits", None)
    out = np.full((10, 36), -7, np.int32)
    with pytest.raises(StaxError) as refused:
        kernel(*args, **named, out=out)
    assert isinstance(refused.value, ArgumentError | BoundsError)
    assert len(str(refused.value)) < 1500
    assert (out == -7).all()


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((10, 36), np.int64), np.zeros((10, 36), ">i4"), np.zeros((9, 36), np.int64), np.zeros(360, np.int32),
        np.broadcast_to(np.int32(0), (10, 36)), _locked(np.zeros((10, 36), np.int32)), [[0] * 36] * 10, 3, "out",
        np.lib.stride_tricks.as_strided(np.zeros(400, np.int32), (10, 36), (4, 4)), Device(),
        np.zeros((11, 37), np.int32),
        (np.zeros((10, 36), np.int32),) * 2, np.ma.masked_array(np.zeros((10, 36), np.int32), True),
        np.lib.stride_tricks.as_strided(np.zeros(400, np.int32), (10, 36), (0, 4)),
        np.lib.stride_tricks.as_strided(np.zeros(800, np.int32), (10, 36), (8, 2)),
    ],
    ids=lambda out: f"{type(out).__name__}",
)  # fmt: skip
def test_a_wrong_output_is_refused_and_stays_as_it_is(kernel: sx.Kernel, out: Any) -> None:
    before = np.array(out, copy=True) if isinstance(out, np.ndarray) else None
    with pytest.raises((ArgumentError, BoundsError)):
        kernel(A, out=out)
    if before is not None:
        assert np.array_equal(np.asarray(out), before)


@pytest.mark.parametrize("shift", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_an_output_on_its_own_input_is_refused_or_copied(kernel: sx.Kernel, shift: tuple[int, int]) -> None:
    a = raw((11, 37))
    before, (dy, dx) = a.copy(), shift
    out = a[dy : dy + 10, dx : dx + 36]
    with pytest.raises(ArgumentError, match="shares memory with input `a`"):
        kernel(a, out=out)
    assert (a == before).all()
    kernel(a, out=out, overlap="copy")
    np.testing.assert_array_equal(out, expected(before))


def test_the_result_is_fresh_each_time(kernel: sx.Kernel) -> None:
    first = kernel(A)
    kept = first.copy()
    second = kernel(A + 1)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


def test_arrays_of_no_dim_and_numbers() -> None:
    a, k, f = sx.Input("a", sx.float64, 0), sx.Param("k", sx.int16, default=3, low=-4, high=4), sx.Func("f")
    f[()] = a[()] * k
    kernel = sx.compile(f, strict_native=True)
    for given in (np.float64(2.5), np.array(2.5), np.array([[2.5]])[0, 0], np.zeros((3, 4)) + 2.5):
        if np.ndim(given):
            with pytest.raises(ArgumentError, match="`a` has 2 dimensions, and the kernel takes 0"):
                kernel(given)
        else:
            found = kernel(given)
            assert (found.shape, found.dtype, float(found)) == ((), np.float64, 7.5)
    assert float(kernel(np.float64(2), k=-4)) == -8
    for wrong in (5, -5, 2**40, 1.5, "3", None, np.array([3]), float("nan"), True):
        with pytest.raises(ArgumentError, match="`k`"):
            kernel(np.float64(2), k=wrong)
