"""Whatever fails behind the proof, the values are right and their origin is said; strict raises BackendError."""

from __future__ import annotations

import builtins
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax import lowering
from stax.backends.llvm import build, module, optimize
from stax.errors import BackendError, InternalError, StaxWarning, UnsupportedError
from stax.runtime import kernel, load

Patch = pytest.MonkeyPatch


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def no_llvmlite(patch: Patch) -> None:
    plain = builtins.__import__

    def importing(name: str, *args: Any) -> Any:
        if name.startswith("llvmlite"):
            raise ImportError("No module named 'llvmlite'")
        return plain(name, *args)

    patch.setattr(builtins, "__import__", importing)


def garbled(patch: Patch) -> None:
    plain = module.emit
    patch.setattr(build, "emit", lambda *args: plain(*args).replace("ret i32 0", "ret i33 zero"))


def forbidden_word(patch: Patch) -> None:
    plain = module.emit
    text = """
declare float @llvm.pow.f32(float, float)
define float @g(float %a) {
  %r = call float @llvm.pow.f32(float %a, float %a)
  ret float %r
}
"""
    patch.setattr(build, "emit", lambda *args: plain(*args) + text)


def cut(patch: Patch) -> None:
    plain = optimize.compile_text
    patch.setattr(build, "compile_text", lambda *args: plain(*args)[:200])


def missing_symbol(patch: Patch) -> None:
    plain = build.entry
    patch.setattr(build, "entry", lambda program: plain(program) + "_")


FAULTS: dict[str, Callable[[Patch], None]] = {
    "the printer has no way to do it": lambda p: p.setattr(build, "emit", raising(UnsupportedError("no such lanes"))),
    "the printer has a fault": lambda p: p.setattr(build, "emit", raising(KeyError("x"))),
    "the printer finds a fault": lambda p: p.setattr(build, "emit", raising(InternalError("no such axis"))),
    "the text is not LLVM's": garbled,
    "the text has a word that is not allowed": forbidden_word,
    "LLVM has no such machine": lambda p: p.setattr(optimize, "_machine", raising(BackendError("no target"))),
    "LLVM's passes fail": lambda p: p.setattr(optimize, "_run_passes", raising(RuntimeError("pass failed"))),
    "no code is emitted": lambda p: p.setattr(optimize, "_emitted", raising(OSError(28, "No space left on device"))),
    "the object is cut": cut,
    "the entry is not in the object": missing_symbol,
    "the loader does not start": lambda p: p.setattr(load, "_jit", raising(BackendError("no loader"))),
    "the loader has a fault": lambda p: p.setattr(kernel, "load", raising(AssertionError("no address"))),
    "lowering has a fault": lambda p: p.setattr(lowering, "lower", raising(AssertionError("no loop"))),
    "lowering finds a fault": lambda p: p.setattr(lowering, "lower", raising(InternalError("no loop"))),
    "there is no llvmlite": no_llvmlite,
}


def program() -> Any:
    y, x = sx.vars("y x")
    a, k = sx.Input("a", sx.float32, 2), sx.Param("k", sx.float32, default=0.5)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y, x] * k + a[y, x + 1]
    g[y, x] = f[y, x] - f[y + 1, x]
    r = sx.RDom("r", k=a.shape[0])
    h[x] = sx.sum(a[r, x], r)
    return g, h


V = np.random.default_rng(0).random((7, 9), dtype=np.float32)


@pytest.fixture
def options(tmp_path: Path) -> sx.Options:
    return sx.Options(cache_dir=tmp_path)


def same(found: Any, wanted: Any) -> None:
    assert [f.tobytes() for f in found] == [w.tobytes() for w in wanted]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_falls_back_to_the_right_values(name: str, options: sx.Options, monkeypatch: Patch) -> None:
    wanted = sx.compile(program(), options=sx.Options(cache=False), strict_native=True)(V, 0.25)
    with monkeypatch.context() as patch:
        FAULTS[name](patch)
        made = sx.compile(program(), options=options)
        with pytest.warns(StaxWarning, match="is interpreted, slowly, as there is no machine code for it") as said:
            same(made(V, 0.25), wanted)
        assert said[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(3):
                out = (np.empty((6, 8), np.float32), np.empty(9, np.float32))
                same(made(V, 0.25, out=out), wanted)
    assert made.provenance["backend"] == "interpreter"
    assert made.provenance["reason"]
    assert made.cache_info().interpreted
    same(sx.compile(program(), options=sx.Options(cache=False), strict_native=True)(V, 0.25), wanted)


@pytest.mark.parametrize("name", FAULTS)
def test_strict_raises_a_backend_error(name: str, options: sx.Options, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        FAULTS[name](patch)
        with pytest.raises(BackendError):
            sx.compile(program(), options=options, strict_native=True)(V)


def test_what_the_user_did_wrong_is_never_interpreted(monkeypatch: Patch) -> None:
    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.float32, 2), sx.Func("f")
    f[y, x] = a[y, x] * 2
    s = sx.Schedule(f)
    s[f].unroll(x)
    with pytest.raises(sx.errors.UserError):
        sx.compile(f, s)
    with pytest.raises(sx.errors.ArgumentError):
        sx.compile(f)(V.astype(np.float64))


def test_a_quick_compilation_gives_the_same_values(options: sx.Options) -> None:
    wanted = sx.compile(program(), options=options)(V)
    quick = sx.compile(
        program(), options=sx.Options(mode="fast-compile", cache_dir=options.cache_dir), strict_native=True
    )
    same(quick(V), wanted)


def test_a_deterministic_mode_refuses_other_orders() -> None:
    a, t = sx.Input("a", sx.float32, 1), sx.Func("t")
    r = sx.RDom("r", k=a.shape[0])
    t[()] = np.float32(0)
    t[()] += a[r]
    s = sx.Schedule(t)
    s[t].update(0).reassociate().vectorize(r, 16)
    with pytest.raises(sx.errors.LegalityError, match="bitwise"):
        sx.compile(t, s, mode="deterministic")


def test_the_steps_of_a_first_call_are_told(
    options: sx.Options, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAX_LOG", "trace")
    made = sx.compile(program(), options=options)
    for _ in range(2):
        made(V)
    lines = capsys.readouterr().err.splitlines()
    steps = [re.sub(r" +[\d.]+ ms.*", "", line.removeprefix("stax:").strip()) for line in lines]
    assert steps == [
        "compile", "freeze", "key", "regions", "proof", "lowering", "compile",
        "call 1 of g", "arguments", "LLVM", "code", "load", "run", "call 1 of g",
        "call 2 of g", "arguments", "run", "entry, which later calls take", "call 2 of g",
    ]  # fmt: skip
    whole, rest = (float(t) for t in re.findall(r"([\d.]+) ms", lines[6]))
    assert rest < 0.25 * whole + 5
    sx.compile(program(), options=options)(V)
    again = capsys.readouterr().err
    assert "proof" not in again
    assert "LLVM" not in again
    monkeypatch.delenv("STAX_LOG")
    sx.compile(program(), options=options)(V)
    assert capsys.readouterr().err == ""
