"""Exported kernels: called from C, and from a Python that has nothing but ctypes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.aot.link import link, linkers
from tests.meaning.programs import PROGRAMS, Case

linked = pytest.mark.skipif(not linkers(), reason="this machine has no linker")
compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="this machine has no C compiler")


def blur() -> Any:
    y, x = sx.vars("y x")
    img = sx.Input("img", sx.uint16, 2)
    rows, both = sx.Func("rows"), sx.Func("both")
    rows[y, x] = (img[y, x] + img[y, x + 1] + img[y, x + 2]) // 3
    both[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) // 3
    return both


def photo(height: int, width: int) -> np.ndarray:
    return (np.arange(height * width) * 7 % 1000).astype(np.uint16).reshape(height, width)


def loaded(file: Path) -> Any:
    """Return the function of a loader."""
    spec = importlib.util.spec_from_file_location(f"exported_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, file.stem)


def exported(outputs: Any, folder: Path, name: str = "f", schedule: Any = None) -> tuple[Any, Any]:
    """Return a kernel, and the function that it was exported as."""
    kernel = sx.compile(outputs, schedule, strict_native=True)
    files = sx.export(kernel, folder / name)
    assert files.loader is not None
    return kernel, loaded(files.loader)


def dense(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value


def agree(kernel: Any, function: Any, case: Case) -> None:
    given = {name: dense(value) for name, value in case.arguments.items()}
    wanted = case.expected if isinstance(case.expected, tuple) else (case.expected,)
    outs = tuple(np.empty_like(dense(np.asarray(w))) for w in wanted)
    kernel(**given, out=_shaped(kernel, outs))
    others = tuple(np.empty_like(o) for o in outs)
    function(**given, out=others if len(others) > 1 else others[0], threads=2)
    for mine, theirs in zip(others, outs, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()


def _shaped(kernel: Any, outs: tuple[Any, ...]) -> Any:
    """Return flat outputs as a call takes them: a tuple for each output of several parts."""
    left, found = list(outs), []
    for one in kernel.signature.outputs:
        parts = tuple(left.pop(0) for _ in one.dtypes)
        found.append(parts if len(parts) > 1 else parts[0])
    return found[0] if len(found) == 1 else tuple(found)


def exports(program: Any) -> bool:
    """Whether the arguments of a program are what ctypes can pass."""
    case = program()
    values = [*case.arguments.values()]
    return all(isinstance(v, np.ndarray | int | float | bool) for v in values)


@linked
@pytest.mark.parametrize("program", PROGRAMS[::5], ids=lambda p: p.__name__)
def test_an_exported_program_gives_the_bits_of_the_kernel(program: Any, tmp_path: Path) -> None:
    if not exports(program):
        pytest.skip("an argument that ctypes cannot pass")
    case = program()
    agree(*exported(case.outputs, tmp_path), case)


MAIN = r"""
#include "blur.h"
#include "twice.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    int64_t in_shape[2] = {482, 642}, shape[2] = {0, 0}, strides[2] = {642 * 2, 2};
    uint16_t *in = malloc(482 * 642 * 2), *out = malloc(480 * 640 * 2);
    for (int k = 0; k < 482 * 642; k++) in[k] = k * 7 % 1000;
    if (blur_shape(in_shape, shape) || shape[0] != 480 || shape[1] != 640) return 1;
    if (blur(in, in_shape, strides, out, shape, NULL, 2)) return 2;
    int bad = 0;
    for (int y = 0; y < 480; y++)
        for (int x = 0; x < 640; x++) {
            int s = 0;
            for (int j = 0; j < 3; j++) {
                uint16_t *p = in + (y + j) * 642 + x;
                s += (p[0] + p[1] + p[2]) / 3;
            }
            bad += out[y * 640 + x] != s / 3;
        }
    if (bad) return 3;
    shape[1] = 641;
    int code = blur(in, in_shape, NULL, out, shape, NULL, 1);
    if (code >= 0 || !strstr(blur_message(code), "reads `img`")) return 4;
    shape[1] = 640;
    if (blur(NULL, in_shape, NULL, out, shape, NULL, 1) >= 0) return 5;
    if (blur(in, in_shape, NULL, in + 7, shape, NULL, 1) >= 0) return 6;
    strides[1] = 4;
    if (blur(in, in_shape, strides, out, shape, NULL, 1) >= 0) return 7;
    shape[0] = -1;
    if (blur(in, in_shape, NULL, out, shape, NULL, 1) >= 0) return 8;
    float a[3000], b[3000];
    int64_t n[1] = {3000};
    for (int k = 0; k < 3000; k++) a[k] = k;
    if (twice(a, n, NULL, 2.5f, b, n, NULL, 3) || b[2999] != 2999 * 2.5f) return 9;
    if (twice(a, n, NULL, -1.0f, b, n, NULL, 3) >= 0) return 10;
    printf("%s; %s\n", blur_message(0), blur_message(1));
    return 0;
}
"""


@compiled
@linked
def test_two_exported_kernels_are_called_from_one_c_program(tmp_path: Path) -> None:
    """Objects and headers alone; what is wrong with an argument is a code, and a code has a message."""
    x, a, gain = sx.Var("x"), sx.Input("a", sx.float32, 1), sx.Param("gain", sx.float32, low=0.0)
    twice = sx.Func("twice")
    twice[x] = a[x] * gain
    s = sx.Schedule(twice)
    s[twice].parallel(x, 256)
    for k, name in ((sx.compile(blur()), "blur"), (sx.compile(twice, s), "twice")):
        sx.export(k, tmp_path / name, library=False)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["blur.h", "blur.o", "twice.h", "twice.o"]
    (tmp_path / "main.c").write_text(MAIN)
    build = ["cc", "-Wall", "-Werror", "main.c", "blur.o", "twice.o", "-o", "main", "-lpthread"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, text=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == "no error; out of memory\n"


ALONE = """
import sys
from array import array
import blur

cells = array("H", [k * 7 % 1000 for k in range(66 * 98)])
out = blur.blur(memoryview(cells).cast("B").cast("H", (66, 98)), threads=2)
at = lambda y, x: sum((cells[(y + j) * 98 + x] + cells[(y + j) * 98 + x + 1] + cells[(y + j) * 98 + x + 2]) // 3
                      for j in range(3)) // 3
assert len(out) == 64 and len(out[0]) == 96
assert all(out[y][x] == at(y, x) for y in range(64) for x in range(96))
try:
    blur.blur(array("H", [1, 2, 3]))
except TypeError as error:
    print(error)
assert not {"numpy", "stax", "llvmlite", "site"} & set(sys.modules)
"""


@linked
def test_a_library_is_called_by_a_python_without_packages(tmp_path: Path) -> None:
    sx.export(sx.compile(blur()), tmp_path / "blur")
    command = [sys.executable, "-S", "-c", ALONE]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "'img' has 1 dimensions, and 2 are needed\n"


@linked
def test_outputs_that_nothing_sizes_take_a_shape(tmp_path: Path) -> None:
    x, k, f = sx.Var("x"), sx.Param("k", sx.int64), sx.Func("f", shape=(None,))
    f[x] = x * k
    _, function = exported(f, tmp_path)
    assert list(function(3, shape=4)) == [0, 3, 6, 9]
    with pytest.raises(TypeError, match="nothing says how large"):
        function(3)


@linked
def test_an_input_that_is_written_over_is_the_result(tmp_path: Path) -> None:
    x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
    f[x] = a[x] * 3
    s = sx.Schedule(f)
    s[f].overwrite(a)
    _, function = exported(f, tmp_path, schedule=s)
    given = np.arange(7, dtype=np.int32)
    assert function(given) is given
    assert given.tolist() == [0, 3, 6, 9, 12, 15, 18]
    with pytest.raises(ValueError, match="read-only"):
        function(np.broadcast_to(np.int32(1), (3,)))


@linked
def test_what_a_call_from_python_refuses_is_refused_with_its_reason(tmp_path: Path) -> None:
    _, function = exported(blur(), tmp_path)
    image = photo(9, 11)
    for given, out, text in (
        (image[:, ::2], None, "last dimension of `img` must step by one element"),
        (image, np.empty((8, 9), np.uint16), "reads `img` at 0 to both.shape"),
        (image, image[:7, :9], "overlap in memory"),
        (image, np.empty((7, 18), np.uint16)[:, ::2], "last dimension of `both` must step"),
    ):
        with pytest.raises(ValueError, match=text):
            function(given, out=out)
    with pytest.raises(TypeError, match="format 'i'"):
        function(image.astype(np.int32))
    with pytest.raises(TypeError, match="'img' is of type list, and an array is needed"):
        function(image.tolist())
    assert np.asarray(function(image[:2])).shape == (0, 9)
    assert np.array_equal(np.asarray(function(image[1:, 1:])), sx.compile(blur())(image[1:, 1:]))


@linked
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_calls_a_library_whose_threads_ran(tmp_path: Path) -> None:
    kernel, function = exported(blur(), tmp_path)
    image = photo(300, 400)
    wanted = kernel(image)
    assert np.array_equal(np.asarray(function(image, threads=2)), wanted)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(np.asarray(function(image, threads=2)), wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_without_a_linker_the_object_stays_and_the_error_says_so(tmp_path: Path) -> None:
    files = sx.export(sx.compile(blur()), tmp_path / "blur", library=False)
    with pytest.raises(sx.errors.BackendError, match="no linker here") as error:
        link(files.object_file, tmp_path / "libblur.so", commands=())
    assert "library=False" in str(error.value)
    with pytest.raises(sx.errors.BackendError, match="no linker could"):
        link(files.object_file, tmp_path / "libblur.so", commands=[("/nowhere/ld",)])


@pytest.mark.parametrize("name", ["free", "while", "2d", "a-b", ""])
def test_a_name_that_c_cannot_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(sx.errors.ArgumentError, match="cannot be called"):
        sx.export(sx.compile(blur()), f"{tmp_path}/{name}" if name else "/")


def test_the_header_says_what_is_declared(tmp_path: Path, golden: Any) -> None:
    machine = sx.Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+f16c", 32, 2)
    files = sx.export(sx.compile(blur(), target=machine), tmp_path / "blur", library=False)
    golden(files.header.read_text(), Path(__file__).with_name("blur.h"))


@compiled
def test_the_header_is_cpp_too(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    sx.export(sx.compile(blur()), tmp_path / "blur", library=False)
    code = textwrap.dedent('#include "blur.h"\n#include "blur.h"\nint main() { return blur_message(0)[0] != 110; }')
    (tmp_path / "main.cpp").write_text(code)
    subprocess.run(["c++", "main.cpp", "blur.o", "-o", "main", "-lpthread"], cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path, check=False).returncode == 0


def test_a_func_is_no_kernel_and_the_error_says_what_makes_one(tmp_path) -> None:
    x, f = sx.Var("x"), sx.Func("f")
    f[x] = x
    with pytest.raises(sx.errors.ArgumentError, match="export takes a Kernel, not Func"):
        sx.export(f, tmp_path / "f")  # type: ignore[arg-type]
    with pytest.raises(sx.errors.ArgumentError, match="profile takes a Kernel, not Func"):
        sx.profile(f)  # type: ignore[arg-type]
