"""Kernels of hand-written machine code: right on any layout, from many threads, and clear when they fail."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from stax import dtypes
from stax.backends.artifact import OUT_OF_MEMORY, Artifact, Facts
from stax.errors import ArgumentError, BackendError, BoundsError, DeviceError, InternalError, UnsupportedError
from stax.runtime.kernel import MOST_VERSIONS, Kernel
from tests.runtime.artifacts import SCALED_SLOTS, artifact, copied, echo, failing, scaled, scaled_text

A = np.arange(10, dtype=np.int32)


def test_a_kernel_is_a_function_of_arrays() -> None:
    k = scaled()
    assert k(A).tolist() == [2 * v + 1 for v in range(1, 10)]
    assert k(A, 3).tolist() == k(a=A, k=3).tolist() == k(A, k=np.int64(3)).tolist() == [3 * v + 1 for v in range(1, 10)]


def test_out_is_written_and_returned() -> None:
    out = np.zeros(9, np.int32)
    assert scaled()(A, out=out) is out
    assert out.tolist() == [2 * v + 1 for v in range(1, 10)]


def test_a_smaller_shape_computes_less() -> None:
    assert scaled()(A, shape=4).tolist() == [3, 5, 7, 9]


@pytest.mark.parametrize("n", range(19))
def test_small_and_empty_arrays(n: int) -> None:
    a = np.arange(n, dtype=np.int32)
    assert scaled()(a).tolist() == [2 * v + 1 for v in range(1, n)]


def layouts(shape: tuple[int, int]) -> dict[str, np.ndarray[Any, Any]]:
    n, m = shape
    raw = np.zeros(8 * n * m + 1, np.uint8)
    packed = np.dtype([("gap", "u1"), ("v", "f8")])
    return {
        "plain": np.zeros(shape),
        "fortran": np.zeros(shape, order="F"),
        "backwards": np.zeros(shape)[::-1, ::-1],
        "rows backwards": np.zeros(shape)[::-1],
        "every second": np.zeros((2 * n, 2 * m))[::2, ::2],
        "part": np.zeros((n + 2, m + 3))[1 : n + 1, 2 : m + 2],
        "misaligned": raw[1:].view(np.float64).reshape(shape),
        "fields": np.zeros(shape, packed)["v"],
    }


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (4, 0), (1, 7), (7, 1)])
def test_every_layout_of_input_and_output(shape: tuple[int, int]) -> None:
    """One version of the code for each, chosen by what holds of the arrays."""
    k = copied()
    want = np.random.default_rng(0).random(shape)
    for (name, a), (other, out) in itertools.product(layouts(shape).items(), layouts(shape).items()):
        a[...], out[...] = want, -1
        k(a, out=out)
        assert (out == want).all(), (name, other)
    assert k.cache_info().versions <= MOST_VERSIONS + 1


def test_an_array_that_repeats_one_row() -> None:
    row = np.arange(4.0)
    assert (copied()(np.broadcast_to(row, (3, 4))) == row).all()
    assert (copied()(np.broadcast_to(row[:, None], (4, 5))) == row[:, None]).all()


def test_layouts_beyond_the_first_few_share_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes nothing for granted, so it serves them all."""
    monkeypatch.setattr("stax.runtime.kernel.MOST_VERSIONS", 2)
    made: list[Facts] = []

    def respecialise(facts: Facts) -> Artifact:
        made.append(facts)
        return artifact(scaled_text(facts), SCALED_SLOTS, facts)

    k = scaled(respecialise=respecialise)
    odd = np.zeros(41, np.uint8)[1:].view(np.int32)
    odd[:] = A
    for a in (A, A[::2], odd, odd[::2], A, A[::-1]):
        assert (k(a) == 2 * a[1:] + 1).all()
    both = frozenset({"a", "f"})
    assert made == [Facts(both, both), Facts(both - {"a"}, both), Facts()]
    assert k.cache_info().versions == 3


def test_guards_say_what_each_version_takes_for_granted() -> None:
    k = scaled()
    assert k.guards == ()
    k(A)
    k(A[::-1])
    assert k.guards == (
        "last dimension steps by one element: a, f; aligned to the element: a, f",
        "last dimension steps by one element: f; aligned to the element: a, f",
    )


def test_the_usual_version_can_be_made_before_the_first_call() -> None:
    k = scaled()
    k.prepare()
    k.prepare()
    k(A)
    assert k.cache_info().versions == 1
    assert len(k.guards) == 1


def test_a_refused_call_writes_nothing_and_compiles_nothing() -> None:
    k = scaled()
    out = np.full(10, -7, np.int32)
    for call in (
        lambda: k(A, out=out),
        lambda: k(A, 101, out=out[:9]),
        lambda: k(A.astype(np.int64), out=out[:9]),
        lambda: k(A, out=out[:9], threads=0),
        lambda: k(A, out=out[:9], threads=True),
        lambda: k(A, out=out[:9], threads="2"),
    ):
        with pytest.raises((ArgumentError, BoundsError)):
            call()
    assert (out == -7).all()
    assert k.cache_info().versions == 0


def test_overlap_is_refused_or_copied() -> None:
    memory = A.copy()
    with pytest.raises(ArgumentError, match="shares memory"):
        scaled()(memory, out=memory[1:])
    assert (memory == A).all()
    scaled()(memory, out=memory[1:], overlap="copy")
    assert memory.tolist() == [0] + [2 * v + 1 for v in range(1, 10)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    a = np.arange(10_000, dtype=np.int32)
    assert (scaled()(a, threads=threads) == 2 * a[1:] + 1).all()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (dtypes.int8, -3), (dtypes.uint8, 200), (dtypes.uint64, 2**64 - 1), (dtypes.int64, -(2**63)),
        (dtypes.bool_, True), (dtypes.float16, -1.5), (dtypes.float32, 3.25), (dtypes.float64, -1e300),
    ],
)  # fmt: skip
def test_scalars_lie_in_the_low_bytes_of_a_word(dtype: dtypes.DType, value: float) -> None:
    word = echo(dtype)(value)
    low = word.view(np.uint8)[: dtype.size_bytes].view(dtype.dtype)
    assert low[0] == value


def test_out_of_memory_is_a_device_error() -> None:
    with pytest.raises(DeviceError, match="`f` ran out of memory") as error:
        failing(OUT_OF_MEMORY, 123)()
    assert error.value.facts == ("123 bytes were asked for",)


def test_another_code_is_a_fault_of_stax() -> None:
    with pytest.raises(InternalError, match="failed with code 9"):
        failing(9, 1, 2)()


def test_thousands_of_failing_calls() -> None:
    k = failing(OUT_OF_MEMORY)
    for _ in range(2000):
        with pytest.raises(DeviceError):
            k()
    assert k.cache_info().calls == 2000


def test_eight_threads_call_one_kernel() -> None:
    """The first calls meet in the compile lock; each version is made once."""
    made: list[Facts] = []

    def respecialise(facts: Facts) -> Artifact:
        made.append(facts)
        return artifact(scaled_text(facts), SCALED_SLOTS, facts)

    k, wrong, barrier = scaled(respecialise=respecialise), list[int](), threading.Barrier(8)

    def work(n: int) -> None:
        a = np.arange(500 + n, dtype=np.int32)[:: 1 if n % 2 else -1]
        barrier.wait()
        for _ in range(50):
            if not (k(a, n) == a[1:] * n + 1).all():
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert wrong == []
    assert len(made) == 2


def test_the_interpreter_lock_is_released_in_a_call() -> None:
    """Another thread runs Python while a kernel does."""
    a, k = np.zeros(3_000_000, np.int32), scaled()
    k(a, threads=1)
    done, ticks = threading.Event(), [0]

    def count() -> None:
        while not done.is_set():
            ticks[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    run = k.bind(a, threads=1)
    before = ticks[0]
    for _ in range(5):
        run()
    seen = ticks[0] - before
    done.set()
    counter.join()
    assert seen > 100


def test_a_kernel_runs_in_a_forked_child() -> None:
    k = scaled()
    k(A)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            code = 0 if (k(A, threads=3) == 2 * A[1:] + 1).all() and (k(A[::-1]) == 2 * A[::-1][1:] + 1).all() else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class TestBind:
    def test_it_runs_again_on_the_same_arrays(self) -> None:
        a, out = A.copy(), np.zeros(9, np.int32)
        run = scaled().bind(a, 3, out=out)
        assert run() is out
        a += 1
        assert run().tolist() == [3 * (v + 1) + 1 for v in range(1, 10)]

    def test_outputs_are_allocated_once(self) -> None:
        run = scaled().bind(A)
        assert run() is run()

    def test_a_large_output_begins_with_a_line_of_the_caches(self) -> None:
        """As streamed stores need; a small one is what NumPy makes."""
        a = np.zeros(100_001, np.int32)
        for _ in range(4):
            out = scaled()(a)
            assert out.ctypes.data % 64 == 0
            assert out.shape == (100_000,)
            assert out.flags.c_contiguous
            assert out.flags.writeable

    def test_arguments_are_checked_when_bound(self) -> None:
        with pytest.raises(ArgumentError):
            scaled().bind(A.astype(float))

    def test_it_keeps_its_code_alive(self) -> None:
        run = scaled().bind(A)
        gc.collect()
        assert run().tolist() == [2 * v + 1 for v in range(1, 10)]


def test_code_goes_with_the_kernel() -> None:
    k = scaled()
    k(A)
    (runner,) = (weakref.ref(v.run) for v in k._versions.values())
    del k
    gc.collect()
    assert runner() is None


def test_what_cannot_be_compiled_raises_without_a_program() -> None:
    def respecialise(facts: Facts) -> Artifact:
        raise UnsupportedError("no such instruction here")

    with pytest.raises(BackendError, match="no such instruction"):
        scaled(respecialise=respecialise)(A)


def test_what_cannot_be_loaded_raises() -> None:
    def respecialise(facts: Facts) -> Artifact:
        return Artifact("", b"not an object", "entry", tuple(SCALED_SLOTS), facts)

    with pytest.raises(BackendError, match="could not be loaded"):
        scaled(respecialise=respecialise)(A)


def test_a_failed_compile_is_tried_again() -> None:
    """And leaves no lock behind."""
    tries: list[int] = []

    def respecialise(facts: Facts) -> Artifact:
        tries.append(1)
        if len(tries) == 1:
            raise BackendError("once")
        return artifact(scaled_text(facts), SCALED_SLOTS, facts)

    k = scaled(respecialise=respecialise)
    with pytest.raises(BackendError):
        k(A)
    assert len(k(A)) == 9


def test_what_a_kernel_says_of_itself() -> None:
    k: Kernel = scaled(
        source=lambda kind: f"text of {kind}",
        schedule=lambda: "s",
        contract="reassociates",
        provenance={"target": "here"},
    )
    assert str(k.signature) == "f(a: int32[d0], k: int32 in -100..100 = 2) -> f: int32[a.shape[0] - 1]"
    assert repr(k) == f"<Kernel {k.signature}>"
    assert (k.source(), k.source("asm")) == ("text of loops", "text of asm")
    assert (k.schedule, k.contract) == ("s", "reassociates")
    assert k.provenance == {"backend": "llvm", "target": "here"}
    with pytest.raises(UnsupportedError):
        scaled().source()


def test_importing_the_runtime_loads_nothing_heavy() -> None:
    """LLVM is loaded when code is, so that `import stax` is quick."""
    script = (
        "import sys, stax.runtime.kernel, stax.runtime.cache\n"
        "print([m for m in ('llvmlite', 'platformdirs', 'islpy', 'triton') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
