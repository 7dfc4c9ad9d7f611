"""The notebooks run, and what stands in them is what they give.

Cells tagged `varies` show times, pictures, or what depends on the machine: of those only that they show something.
`--update-golden` stores what a run gives.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
PLOT = ROOT / "notebooks" / "times.jpg"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path, folder: Path):
    """Return the notebook with the outputs of a run in `folder`, without what differs from run to run."""
    book = nbformat.read(path, as_version=4)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder), "STAX_CACHE_DIR": str(folder)}
    client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    for cell in code(book):
        cell.metadata.pop("execution", None)
    return book


def pictures(book) -> list[bytes]:
    """Return the pictures that a notebook shows."""
    found = [output.get("data", {}).get("image/jpeg") for cell in code(book) for output in cell.outputs]
    return [base64.b64decode(picture) for picture in found if picture]


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def shown(cell) -> list[object]:
    """Return what a cell shows at first sight, as far as it is the same in each run."""
    if "varies" in cell.metadata.get("tags", ()):
        return [output.output_type for output in cell.outputs]
    return [
        (
            output.output_type,
            output.get("text"),
            output.get("ename"),
            output.get("evalue"),
            [FOLDED.sub("", text) for kind, text in sorted(output.get("data", {}).items()) if kind.startswith("text/")],
        )
        for output in cell.outputs
    ]


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["first_pipeline", "schedules"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_stands_in_it(path, tmp_path, request):
    book = executed(path, tmp_path)
    if request.config.getoption("--update-golden"):
        nbformat.write(book, path)
        if path.stem == "schedules":
            PLOT.write_bytes(pictures(book)[-1])
    stored = nbformat.read(path, as_version=4)
    assert len(code(stored)) == len(code(book)) > 5
    for before, after in zip(code(stored), code(book), strict=True):
        assert shown(before) == shown(after), before.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_names_nothing_of_the_machine_that_ran_it(path):
    text = path.read_text(encoding="utf-8")
    assert "/tmp/" not in text
    assert str(ROOT) not in text
    assert len(text) < 400_000


def test_the_plot_of_the_readme_is_that_of_the_notebook():
    assert PLOT.read_bytes() == pictures(nbformat.read(ROOT / "notebooks" / "schedules.ipynb", as_version=4))[-1]
