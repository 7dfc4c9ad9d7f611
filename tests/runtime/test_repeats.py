"""Calls like one before are served by what was prepared for it, on arrays elsewhere; torch only names them here."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.runtime.arguments import Bound
from stax.runtime.repeats import MOST_KEYS, Repeats

n = sx.Var("n")


class Tensor:
    """A tensor at an address."""

    def __init__(self, at: int, size: int = 8, dtype: str = "float32") -> None:
        self.at, self.shape, self.dtype, self.requires_grad = at, (size,), dtype, False

    def data_ptr(self) -> int:
        return self.at

    def get_device(self) -> int:
        return 0

    def new_empty(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        return Tensor(9000, shape[0], dtype)

    def stride(self) -> tuple[int, ...]:
        return (1,)


class Prepared:
    """What runs a kernel, and remembers where."""

    def __init__(self, movable: bool = True) -> None:
        self.movable, self.seen, self.released = movable, list[dict[str, int]](), False

    def __call__(self) -> None: ...

    def release(self) -> None:
        self.released = True

    def again(self, addresses: Mapping[str, int]) -> None:
        self.seen.append(dict(addresses))


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for torch."""
    module = types.ModuleType("torch")
    Tensor.__module__ = "torch"
    module.Tensor = Tensor  # type: ignore[attr-defined]
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 7)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)


def repeats() -> Repeats:
    """Return the repeats of a kernel of two arrays and a number."""
    a, b, p = sx.Input("a", sx.float32, 1), sx.Input("b", sx.float32, 1), sx.Param("p", sx.float32)
    f = sx.Func("f")
    f[n] = a[n] + b[n] * p
    return Repeats(sx.compile(f).signature)


def learned(one: Repeats, run: Any, *args: Any, out: Any = None) -> None:
    """Teach a call."""
    arrays = {name: np.zeros(8, np.float32) for name in ("a", "b", "f")}
    one.learn(args, {}, out, Bound(arrays, {}, {}, out or Tensor(4096)), run)


def test_a_call_like_one_before_runs_what_was_prepared_at_its_addresses() -> None:
    one, run = repeats(), Prepared()
    learned(one, run, Tensor(1024), Tensor(2048), 2.0)
    assert run.released
    result = one.serve((Tensor(16), Tensor(32), 2.0), {}, None)
    assert (result.at, result.shape) == (9000, (8,))
    assert run.seen == [{"a": 16, "b": 32, "f": 9000}]


@pytest.mark.parametrize(
    "args",
    [
        (Tensor(16, 9), Tensor(32), 2.0), (Tensor(16, 8, "float64"), Tensor(32), 2.0), (Tensor(20), Tensor(32), 2.0),
        (Tensor(16), Tensor(32), 2), (Tensor(16), Tensor(32), 3.0), (Tensor(16), np.zeros(8), 2.0), (Tensor(16),),
        (Tensor(16), Tensor(32), 2.0, 1),
    ],
    ids=["shape", "type", "alignment", "type of a number", "number", "another library", "fewer", "more"],
)  # fmt: skip
def test_a_call_that_differs_goes_the_long_way(args: tuple[Any, ...]) -> None:
    one, run = repeats(), Prepared()
    learned(one, run, Tensor(1024), Tensor(2048), 2.0)
    assert one.serve(args, {}, None) is None
    assert run.seen == []


def test_an_output_that_meets_an_input_goes_the_long_way() -> None:
    """There it is refused."""
    one, run, out = repeats(), Prepared(), Tensor(4096)
    learned(one, run, Tensor(1024), Tensor(2048), 2.0, out=out)
    assert one.serve((Tensor(1024), Tensor(2048), 2.0), {}, out) is out
    assert one.serve((Tensor(4096 - 16), Tensor(2048), 2.0), {}, out) is None
    assert one.serve((Tensor(4096 - 32), Tensor(4096 + 32), 2.0), {}, out) is out


def test_what_is_made_on_the_way_is_not_kept() -> None:
    one, run = repeats(), Prepared(movable=False)
    learned(one, run, Tensor(1024), Tensor(2048), 2.0)
    assert one.serve((Tensor(1024), Tensor(2048), 2.0), {}, None) is None
    assert not run.released


def test_many_numbers_do_not_fill_memory() -> None:
    one = repeats()
    for k in range(3 * MOST_KEYS):
        learned(one, Prepared(), Tensor(1024), Tensor(2048), float(k))
    assert len(one._plans) <= MOST_KEYS  # pyright: ignore[reportPrivateUsage]
