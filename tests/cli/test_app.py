"""The command line, in this process and once in one of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from stax.cli.app import app
from stax.cli.demo import photograph, unsharp, unsharp_numpy
from stax.cli.doctor import examine
from stax.compiler import compile as compile_
from stax.runtime.cache import Store, digest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
    import stax as sx

    x = sx.Var("x")
    a = sx.Input("a", sx.float32, 1)
    gain = sx.Param("gain", sx.float32, default=2.0)
    f, g, free = sx.Func("f"), sx.Func("g"), sx.Func("free", shape=(None,))
    f[x] = a[x] + a[x + 1]
    g[x] = f[x] * gain
    free[x] = x * x
    both = (f, g)

    def make():
        return g

    def fails():
        raise RuntimeError("no such thing")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    np.save(tmp_path / "a.npy", np.arange(9, dtype=np.float32))
    return file


def stax(*args: object, code: int = 0) -> str:
    """Run a command; return all that it prints."""
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.output


def test_the_demo_writes_its_picture_and_says_what_it_checked(tmp_path):
    out = tmp_path / "demo.png"
    said = stax("demo", "--out", out, "--rounds", 1, "--threads", 2)
    assert "bit for bit (llvm)" in said
    assert 's["sharp"]' in said
    assert "times as fast" in said
    with Image.open(out) as picture:
        assert picture.size == (2 * 512 + 8, 600)
        pixels = np.asarray(picture)
    assert np.array_equal(pixels[:, :512].transpose(2, 0, 1), photograph())
    assert not np.array_equal(pixels[:, :512], pixels[:, 520:])


def test_the_demo_says_where_it_cannot_write(tmp_path):
    assert "cannot write" in stax("demo", "--out", tmp_path / "no" / "demo.png", "--rounds", 1, code=2)


def test_the_demos_numpy_code_is_its_program():
    photo = photograph()[:, 50:110, 60:130]
    apart = np.abs(compile_(unsharp(), strict_native=True)(photo).astype(int) - unsharp_numpy(photo))
    assert apart.max() <= 1


def test_the_doctor_finds_this_machine_well(capsys):
    assert examine()
    said = capsys.readouterr().out
    for word in ("python", "numpy", "llvm", "processor", "cores", "cache", "machine code", "threads"):
        assert word in said
    assert "no " not in {line[:3] for line in said.splitlines()}


def test_the_doctor_says_what_is_wrong_and_fails(monkeypatch, tmp_path):
    """A cache folder that is a file."""
    (tmp_path / "stax").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = stax("doctor", code=1)
    assert "FileExistsError" in said


def test_a_program_runs_on_files(program):
    out = program.parent / "out.npy"
    said = stax("run", f"{program}:g", "-i", f"a={program.parent / 'a.npy'}", "-i", "gain=3", "-o", out, "--strict")
    assert "(llvm)" in said
    assert np.load(out).tolist() == [3 * (2 * k + 1) for k in range(8)]


def test_several_outputs_go_to_one_file(program):
    given, out = f"a={program.parent / 'a.npy'}", program.parent / "out.npz"
    stax("run", f"{program}:both", "-i", given, "-o", out)
    with np.load(out) as found:
        assert sorted(found) == ["f", "g"]
    assert "write an .npz" in stax("run", f"{program}:both", "-i", given, "-o", out.with_suffix(".npy"), code=2)


def test_an_image_is_read_and_written(tmp_path):
    file, out = tmp_path / "in.png", tmp_path / "out.png"
    grey = np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)
    Image.fromarray(grey).save(file)
    stax("run", ROOT / "examples" / "histogram_equalisation.py", "-i", f"img={file}", "-o", out)
    with Image.open(out) as picture:
        assert np.asarray(picture).shape == grey.shape
        assert np.asarray(picture).max() == 255


def test_a_shape_is_given_where_nothing_says_it(program):
    assert "free: int64 (5,), 0 .. 16" in stax("run", f"{program}:free", "--shape", "5")
    assert "no list of extents" in stax("run", f"{program}:free", "--shape", "five", code=2)
    stax("run", f"{program}:free", code=2)


def test_explain_shows_the_schedule_and_the_loops_with_bounds_and_bytes():
    said = stax("explain", ROOT / "examples" / "blur.py")
    assert 's["blur_y"].parallel("y", 32)' in said
    assert "parallel for blur_y.y in 0 +: (blur_y.shape[0] + 31) // 32:" in said
    assert "bytes" in said


def test_a_schedule_is_written_edited_and_used(program):
    file = program.parent / "schedule.py"
    stax("schedule", f"{program}:g", "-o", file)
    assert file.read_text() in stax("schedule", f"{program}:g")
    lines = file.read_text().splitlines()[:2]
    file.write_text("\n".join([*lines, 's["f"].compute_root()', 's["g"].parallel("x", 4)']))
    assert 's["f"].compute_root()' in stax("explain", f"{program}:g", "--schedule", file)
    stax("run", f"{program}:g", "-i", f"a={program.parent / 'a.npy'}", "--schedule", file, "--strict")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "several outputs: g, free"),
        (":h", "has no `h`"),
        (":ff", "did you mean f?"),
        (":x", "is a Var"),
        (":fails", "RuntimeError: no such thing"),
    ],
)
def test_a_name_that_is_no_output_is_refused(program, name, words):
    assert words in stax("explain", f"{program}{name}", code=2)


def test_a_function_may_make_the_outputs(program):
    assert 's["g"]' in stax("schedule", f"{program}:make")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f = 1 +", "line 1: SyntaxError"),
        ("import stax\n\nraise ValueError('bad day')", "line 3: ValueError: bad day"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("x = 1", "defines no Func"),
        ("import stax as sx\nf = sx.Func('f')\nf[sx.Var('x')] = sx.Var('y')", "`y` stands on the right"),
    ],
)
def test_a_file_at_fault_is_named_with_its_line(tmp_path, text, words):
    file = tmp_path / "bad.py"
    file.write_text(text)
    assert words in stax("explain", file, code=2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "input `a` was not given"),
        (("-i", "a"), "has no value"),
        (("-i", "b=1"), "no argument `b`"),
        (("-i", "a=no.npy"), "there is no file no.npy"),
        (("-i", "gain=much"), "which is no number"),
    ],
)
def test_an_argument_at_fault_is_named(program, given, words):
    assert words in stax("run", f"{program}:g", *given, code=2)


def test_a_file_that_holds_no_array_is_refused(program):
    for name, data, words in (("x.npy", b"nothing", "cannot read"), ("x.txt", b"1", "is no array")):
        (program.parent / name).write_bytes(data)
        assert words in stax("run", f"{program}:g", "-i", f"a={program.parent / name}", code=2)


def test_a_picture_is_made_of_bytes_only(program):
    out = program.parent / "out.png"
    assert "is no image" in stax("run", f"{program}:g", "-i", f"a={program.parent / 'a.npy'}", "-o", out, code=2)


def test_a_schedule_at_fault_is_shown_with_its_line(program):
    file = program.parent / "schedule.py"
    stax("schedule", f"{program}:g", "-o", file)
    file.write_text(file.read_text() + "import os\n")
    said = stax("explain", f"{program}:g", "--schedule", file, code=2)
    assert "import os" in said
    assert "no file" in stax("explain", f"{program}:g", "--schedule", "none.py", code=2)


def test_a_schedule_that_would_change_a_value_is_refused(tmp_path):
    file = tmp_path / "schedule.py"
    file.write_text('# stax schedule 1\ns["back"].parallel("x")\n')
    said = stax("explain", ROOT / "examples" / "iir.py", "--schedule", file, code=2)
    assert "LegalityError" in said


def test_a_benchmark_that_is_not_there_is_refused():
    assert "one of b4, b5, imports" in stax("bench", "b9", code=2)


def test_the_roofline_is_measured_once(monkeypatch, tmp_path):
    from stax.measure import roofline

    monkeypatch.setenv("STAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(roofline, "LEAST_BYTES", 1 << 20)
    monkeypatch.setattr(roofline, "TIMES_L3", 0)
    monkeypatch.setattr(roofline, "ORDER", 64)
    monkeypatch.setattr(roofline, "PAUSE_S", 0)
    said = stax("roofline", "--threads", 1, "--rounds", 1)
    assert "ridge P / B" in said
    assert stax("roofline", "--threads", 1, "--rounds", 1) == said
    assert stax("roofline", "--threads", 1, "--rounds", 1, "--again") != said
    assert "machine" in stax("cache", "ls")


def test_the_command_works_in_a_process_of_its_own(program):
    """As `python -m stax`, elsewhere than in the source tree."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stax", *args]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=program.parent, check=False, timeout=120,
            stdin=subprocess.DEVNULL, env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(program.parent)},
        )  # fmt: skip

    done = run("run", "program.py:g", "-i", "a=a.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert "g: float32 (8,), 2.0 .. 30.0" in done.stdout
    failed = run("run", "program.py:nothing")
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.startswith("ArgumentError: program.py has no `nothing`")


def test_export_writes_files_that_need_nothing_of_stax(program, tmp_path):
    said = stax("export", f"{program}:g", "-o", tmp_path / "build" / "twice", "--no-library")
    assert said.splitlines() == [f"wrote {tmp_path / 'build' / n}" for n in ("twice.o", "twice.h")]
    assert "int32_t twice(" in (tmp_path / "build" / "twice.h").read_text()
    assert "cannot be called 'while'" in stax("export", f"{program}:g", "-o", tmp_path / "while", code=2)


def test_the_cache_is_listed_verified_and_emptied(tmp_path):
    store = Store(tmp_path)
    for n, kind in enumerate(("object", "program", "proof")):
        store.put(digest(str(n)), bytes(100), kind)
    where = ("--folder", tmp_path)
    said = stax("cache", "info", *where)
    assert f"folder    {tmp_path}" in said
    assert "private, and can be written" in said
    assert "proof          1 entries" in said
    assert "test" not in stax("cache", "ls", *where)
    assert "and 2 more" in stax("cache", "ls", *where, "--most", 1)
    assert stax("cache", "verify", *where) == "3 entries, 0 damaged\n"
    file = next(tmp_path.rglob("*.entry"))
    file.write_bytes(file.read_bytes()[:-1])
    assert stax("cache", "verify", *where, code=1) == "3 entries, 1 damaged and removed\n"
    assert stax("cache", "gc", *where).startswith("0 entries removed")
    assert stax("cache", "clear", *where).startswith("2 entries removed")
    assert "0 entries" in stax("cache", "info", *where)
