"""`stax doctor`: what stax needs of this machine, looked at one by one."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape


def examine() -> bool:
    """Print a line for each thing looked at; return whether all is well."""
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("stax", _stax), ("python", _python), ("numpy", _numpy), ("llvm", _llvm), ("isl", _isl),
        ("processor", _processor), ("cores", _cores), ("cache", _cache),
        ("machine code", _kernel), ("threads", _threads),
    )  # fmt: skip
    console, well = Console(highlight=False, soft_wrap=True), True
    for name, check in checks:
        try:
            said, mark = check(), "[green]ok[/]"
        except Exception as error:
            said, mark, well = f"{type(error).__name__}: {error}", "[red]no[/]", False
        console.print(f"{mark}  {name:13} {escape(said)}")
    return well


def _stax() -> str:
    from importlib.metadata import PackageNotFoundError, version

    import stax

    try:
        number = version("stax")
    except PackageNotFoundError:
        number = "not installed, run from source"
    return f"{number} ({Path(stax.__file__).parent})"


def _python() -> str:
    return f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()} {platform.machine()})"


def _numpy() -> str:
    import numpy

    if int(numpy.__version__.split(".")[0]) < 2:
        raise RuntimeError(f"NumPy {numpy.__version__} is too old: 2.0 or newer")
    return numpy.__version__


def _llvm() -> str:
    import importlib
    from importlib.metadata import version

    binding: Any = importlib.import_module("llvmlite.binding")
    return f"{'.'.join(str(n) for n in binding.llvm_version_info)} (llvmlite {version('llvmlite')})"


def _isl() -> str:
    from importlib.metadata import version

    return f"islpy {version('islpy')}"


def _processor() -> str:
    from stax.target import Target

    t = Target.host()
    sizes = f"caches {t.l1_bytes >> 10} kB, {t.l2_bytes >> 10} kB, {t.l3_bytes >> 10} kB"
    return f"{t.cpu}, {t.triple}, vectors of {8 * t.vector_bytes} bits, {sizes}"


def _cores() -> str:
    from stax.compiler import host, threads_of

    given = os.environ.get("STAX_THREADS")
    said = f" (STAX_THREADS={given})" if given else ""
    return f"{threads_of(host())} threads a call{said}, of {os.cpu_count()} processors"


def _cache() -> str:
    from stax.runtime.cache import default_folder

    folder = default_folder()
    if folder is None:
        raise RuntimeError("there is no cache folder: every process compiles anew")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder):
        pass
    files = [f.stat().st_size for f in folder.rglob("*.entry")]
    return f"{folder} ({len(files)} entries, {sum(files) / 1e6:.1f} MB)"


def _kernel() -> str:
    import numpy as np

    import stax as sx

    y, x = sx.vars("y x")
    a, f, g = sx.Input("a", sx.float32, 2), sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] + a[y, x + 1]
    g[y, x] = f[y, x] + f[y + 1, x]
    v = np.arange(37 * 53, dtype=np.float32).reshape(37, 53)
    kernel = sx.compile(g, strict_native=True, options=sx.Options(cache=False))
    rows = v[:, :-1] + v[:, 1:]
    if not np.array_equal(kernel(v), rows[:-1] + rows[1:]):
        raise RuntimeError("a small kernel gave wrong values")
    return "a small kernel was compiled, and gives NumPy's values"


def _threads() -> str:
    import numpy as np

    import stax as sx

    x, a, f = sx.Var("x"), sx.Input("a", sx.int64, 1), sx.Func("f")
    f[x] = a[x] * 3
    s = sx.Schedule(f)
    s[f].parallel(x, 1000)
    v = np.arange(100_000)
    kernel = sx.compile(f, s, strict_native=True, options=sx.Options(cache=False))
    for count in (1, 2, 5):
        if not np.array_equal(kernel(v, threads=count), v * 3):
            raise RuntimeError(f"a kernel on {count} threads gave wrong values")
    return "1, 2 and 5 threads give the same values"
