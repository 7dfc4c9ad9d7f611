"""What the README shows is what happens: its programs run, and print the text below them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import stax as sx
from examples.blur import blur_y
from stax.schedule.words import USAGE
from stax.target import Target

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAIRS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def printed(program: str, folder: Path) -> str:
    file = folder / "program.py"
    file.write_text(program)
    command = [sys.executable, file.name]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_a_program_prints_what_stands_below_it(number, tmp_path):
    program, text = PAIRS[number]
    assert printed(program, tmp_path) == text


def test_there_are_programs():
    assert len(PAIRS) == 4
    assert len(PAIRS) == README.count("```python")


def test_files_it_points_at_are_there():
    for name in re.findall(r"\]\(([^):]+)\)", README):
        assert (ROOT / name).exists(), name


def test_commands_it_names_are_those_of_the_command_line():
    from typer.main import get_command

    from stax.cli.app import app

    shown = "\n".join(re.findall(r"```console\n(.*?)```", README, re.DOTALL))
    named = set(re.findall(r"^stax (\w+)", shown, re.MULTILINE)) | set(re.findall(r"`stax (\w+)", README))
    assert named
    assert named <= set(get_command(app).commands)  # type: ignore[attr-defined]


def test_the_schedule_that_is_worked_out_is_what_the_machine_of_the_figures_gets():
    machine = Target("x86_64-unknown-linux-gnu", "znver5", "+avx512f", 64, 2, 48 << 10, 1 << 20, 32 << 20)
    text = str(sx.auto_schedule(blur_y, target=machine))
    assert "# blur_y: strips of" in text
    assert f"```text\n{text}```" in README


def test_every_directive_is_named_in_the_table_of_directives():
    table = README[README.index("| directive,") : README.index("`help(sx.Schedule(f)[f].tile)`")]
    named = set(re.findall(r"`(\w+)\(", table)) | set(re.findall(r"\), `(\w+)\(", table))
    assert named == set(USAGE)
