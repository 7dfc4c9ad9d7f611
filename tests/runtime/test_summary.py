"""A program that was compiled before is neither proved nor lowered again, and its key is what determines it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax import compiler, lowering
from stax.lang.freeze import freeze
from stax.runtime import cache, summary
from stax.runtime.summary import program_key
from tests.meaning.programs import PROGRAMS

MACHINE = sx.Target("x86_64-unknown-linux-gnu", "znver3", "+avx2", 32, 2)


def blur(third: int = 3, shift: int = 1) -> sx.Func:
    y, x = sx.vars("y x")
    img, f, g = sx.Input("img", sx.uint16, 2), sx.Func("f"), sx.Func("g")
    f[y, x] = (img[y, x] + img[y, x + shift]) // third
    g[y, x] = f[y, x] + f[y + 1, x]
    return g


def key(outputs: Any = None, lines: Any = (), options: Any = ("default", None), machine: sx.Target = MACHINE) -> str:
    found = program_key(freeze(blur() if outputs is None else outputs), lines, options, machine)
    assert found is not None
    return found.text


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was known")


@pytest.mark.parametrize("program", PROGRAMS[::3], ids=lambda p: p.__name__)
def test_a_second_compilation_proves_lowers_and_prints_nothing(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = sx.Options(cache_dir=tmp_path)
    case = program()
    parts = case.expected if isinstance(case.expected, tuple) else (case.expected,)
    shape = None if case.shaped else np.shape(parts[0])
    first = sx.compile(case.outputs, options=options, strict_native=True)
    wanted = first(**case.arguments, shape=shape)
    for name in ("check", "lower", "infer"):
        monkeypatch.setattr(lowering, name, forbidden)
    monkeypatch.setattr("stax.backends.llvm.build.emit", forbidden)
    second = sx.compile(program().outputs, options=options, strict_native=True)
    found = second(**case.arguments, shape=shape)
    assert str(second.signature) == str(first.signature)
    assert second.contract == first.contract
    np.testing.assert_equal(found, wanted)


def test_what_is_asked_later_is_worked_out_then(tmp_path: Path) -> None:
    options = sx.Options(cache_dir=tmp_path)
    first, second = (sx.compile(blur(), options=options) for _ in range(2))
    first.prepare()
    v = np.arange(30, dtype=np.uint16).reshape(5, 6)
    assert np.array_equal(second(v), first(v))
    assert str(second.schedule) == str(first.schedule)
    for kind in ("nests", "loops", "llvm", "asm"):
        assert second.source(kind) == first.source(kind)
    assert sx.profile(second, v).stages
    assert second.error_bound(v) == first.error_bound(v)
    files = [sx.export(k, tmp_path / n / "blur", library=False) for k, n in ((first, "one"), (second, "two"))]
    assert files[0].object_file.read_bytes() == files[1].object_file.read_bytes()


def test_errors_of_calls_show_the_lines_of_this_program(tmp_path: Path) -> None:
    """The key has no places: they are those of who calls, also where someone else compiled."""
    options, said = sx.Options(cache_dir=tmp_path), list[str]()
    y, x = sx.vars("y x")
    for _ in range(2):
        img = sx.Input("img", sx.float32, 2)
        f = sx.Func("f")
        if said:
            f[y, x] = img[y, x] + img[y + 1, x]
        else:
            f[y, x] = img[y, x] + img[y + 1, x]
        with pytest.raises(sx.errors.BoundsError) as error:
            sx.compile(f, options=options)(np.zeros((3, 3), np.float32), shape=(3, 3))
        said.append(str(error.value))
    assert said[0] != said[1]
    lines = [next(part for part in s.split() if part.startswith("tests/") or "test_summary" in part) for s in said]
    assert int(lines[1].rpartition(":")[2]) == int(lines[0].rpartition(":")[2]) - 2


def test_each_component_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    s = sx.Schedule(blur())
    s["f"].compute_root()
    vector = sx.Schedule(blur())
    vector["f"].compute_root().vectorize("x", 8)
    table = [sx.Const("t", np.array(v)) for v in ([1, 2], [1, 3])]
    y, x, tabled = sx.Var("y"), sx.Var("x"), []
    for one in table:
        f = sx.Func("f")
        f[y, x] = one[sx.clip(x, 0, 1)] + y
        tabled.append(key(f))
    keys = [
        key(), key(blur(third=5)), key(blur(shift=2)), key((blur(), blur())), *tabled,
        key(lines=s.lines), key(lines=vector.lines), key(options=("max-autotune", None)),
        key(options=("default", "bitwise")),
        *(
            key(machine=dataclasses.replace(MACHINE, **{name: value}))
            for name, value in (
                ("triple", "aarch64-unknown-linux-gnu"), ("cpu", "znver4"), ("features", "+avx"), ("vector_bytes", 64),
                ("l1_bytes", 1), ("l2_bytes", 2), ("l3_bytes", 3),
            )
        ),
    ]  # fmt: skip
    for name in ("llvm_version", "sources"):
        with monkeypatch.context() as patch:
            patch.setattr(summary, name, lambda: "another")
            keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    assert key(machine=dataclasses.replace(MACHINE, cores=64)) == keys[0]


def test_the_content_of_the_compiler_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime").mkdir()
    found = []
    for text in ("one", "two"):
        (tmp_path / "file.py").write_text(text)
        monkeypatch.setattr(cache, "__file__", str(tmp_path / "runtime" / "cache.py"))
        found.append(cache.sources.__wrapped__())
    assert found[0] != found[1]


SEEDED = """
import stax as sx
from stax.lang.freeze import freeze
from stax.runtime.summary import program_key
from tests.meaning.programs import PROGRAMS
m = sx.Target("x86_64-unknown-linux-gnu", "znver3", "+avx2", 32, 2)
print(*(program_key(freeze(p().outputs), (), (), m).text for p in PROGRAMS))
"""


def test_keys_are_the_same_under_any_hash_seed() -> None:
    root, said = Path(__file__).resolve().parents[2], set()
    for seed in range(5):
        env = {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", SEEDED], capture_output=True, text=True, env=env, check=True, cwd=root
        )
        said.add(done.stdout)
    assert len(said) == 1


def test_damaged_summaries_are_made_again(tmp_path: Path) -> None:
    options = sx.Options(cache_dir=tmp_path)
    v = np.arange(30, dtype=np.uint16).reshape(5, 6)
    wanted = sx.compile(blur(), options=options)(v)
    for path in tmp_path.rglob("*.entry"):
        whole = path.read_bytes()
        head, _, _ = whole.partition(b"\n")
        for damaged in (b"", whole[:-1], whole[: len(whole) // 2], head):
            path.write_bytes(damaged)
            assert np.array_equal(sx.compile(blur(), options=options, strict_native=True)(v), wanted)


def test_a_summary_that_verifies_and_makes_no_sense_is_made_again(tmp_path: Path) -> None:
    store, found = cache.Store(tmp_path), program_key(freeze(blur()), (), ("default", None), compiler.host())
    assert found is not None
    for nonsense in (b"", b"{}", b"[]", b'[["=", [3]]]', b'[["()", 1], ["=", [0]]]', b"\xff"):
        store.put(found.text, nonsense, "program")
        kernel = sx.compile(blur(), options=sx.Options(cache_dir=tmp_path), strict_native=True)
        assert kernel(np.ones((3, 3), np.uint16)).shape == (2, 2)


def test_a_refused_program_is_refused_again(tmp_path: Path) -> None:
    a, t = sx.Input("a", sx.float32, 1), sx.Func("t")
    r = sx.RDom("r", k=a.shape[0])
    t[()] = np.float32(0)
    t[()] += a[r]
    s = sx.Schedule(t)
    s[t].update(0).reassociate().vectorize(r, 16)
    options = sx.Options(cache_dir=tmp_path)
    for _ in range(2):
        sx.compile(t, s, options=options).prepare()
        with pytest.raises(sx.errors.LegalityError, match="bitwise"):
            sx.compile(t, s, options=options, require="bitwise")


def test_warnings_are_given_again(tmp_path: Path) -> None:
    s = sx.Schedule(blur())
    s["g"].warps(4)
    for _ in range(2):
        with pytest.warns(sx.errors.StaxWarning, match="warps"):
            sx.compile(blur(), s, options=sx.Options(cache_dir=tmp_path))


def test_a_cache_folder_may_be_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAX_CACHE_DIR", str(tmp_path))
    sx.compile(blur()).prepare()
    assert list(tmp_path.rglob("*.entry"))
    assert compiler.cache_folder(sx.Options(cache=False)) is None
