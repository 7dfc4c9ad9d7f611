"""`import stax` is light, and the rooms keep their order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("islpy", "sympy", "triton", "matplotlib", "llvmlite", "PIL", "typer", "rich", "platformdirs")


def loaded(code: str) -> set[str]:
    """Return the top-level modules that a fresh process has after `code`."""
    code += "\nimport sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout.split()
    )


def test_importing_stax_loads_nothing_heavy():
    found = loaded("import stax")
    assert "stax" in found
    assert not found & set(HEAVY)


def test_defining_a_program_loads_nothing_heavy():
    program = "import stax as sx; x = sx.Var('x'); f = sx.Func('f'); f[x] = sx.sqrt(x + 1.0); s = sx.auto_schedule(f)"
    assert not loaded(program) & set(HEAVY)


def test_a_schedule_that_was_proved_and_compiled_before_loads_no_isl(tmp_path: Path) -> None:
    """What isl said is kept beside the code, so that a second process asks nobody."""
    program = f"""
import numpy as np, stax as sx
t, x = sx.vars("t x")
a = sx.Input("a", sx.float32, 1)
u = sx.Func("u", shape=(9, a.shape[0]))
u[0, x] = a[x]
u[t, x] = sx.select((x >= 1) & (x < a.shape[0] - 1), u[t - 1, x - 1] + u[t - 1, x + 1], u[t - 1, x])
s = sx.Schedule(u)
s[u].skew(x, t, 1).tile((t, x), ("to", "xo"), ("ti", "xi"), (4, 8))
k = sx.compile(u, s, options=sx.Options(cache_dir={str(tmp_path)!r}), strict_native=True)
assert k(np.ones(40, np.float32)).shape == (9, 40)
"""
    assert "islpy" in loaded(program)
    assert "islpy" not in loaded(program)


def test_a_process_that_finds_its_kernel_in_the_cache_imports_no_proof_and_no_lowering(tmp_path: Path) -> None:
    program = f"""
import sys, numpy as np, stax as sx
x, a = sx.Var("x"), sx.Input("a", sx.float32, 1)
f = sx.Func("f")
f[x] = a[x] + a[x + 1]
k = sx.compile(f, options=sx.Options(cache_dir={str(tmp_path)!r}), strict_native=True)
assert (k(np.ones(5, np.float32)) == 2).all()
for name in [m for m in sys.modules if m.startswith("stax.")]:
    sys.modules[name.replace("stax.", "stax_")] = sys.modules[name]
"""
    rooms = {"stax_legality", "stax_lower", "stax_poly", "stax_lowering"}
    assert rooms <= loaded(program)
    assert not rooms & loaded(program)


def test_help_of_the_command_line_loads_no_compiler():
    found = loaded(
        "import sys; sys.argv = ['stax', '--help']\nimport runpy\ntry: import stax.cli.app\nexcept SystemExit: pass"
    )
    assert not found & {"islpy", "sympy", "triton", "matplotlib", "llvmlite", "PIL"}


def test_rooms_import_only_what_stands_below_them():
    """The contract is in pyproject.toml; it is exhaustive, so that a new room must be given its place."""
    pytest.importorskip("importlinter")
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None) == 0
