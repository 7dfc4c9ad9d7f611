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
