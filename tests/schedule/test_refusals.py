"""Schedules that are refused, a file each, with the whole text of the error beside it.

They are of the program in `conftest.py`: bx(y, x), by(y, x), hist(c, i) with two updates, "a b"(y, for), out(y, x).
"""

from pathlib import Path

import pytest

from stax.errors import UserError
from stax.schedule.schedule import Schedule

FOLDER = Path(__file__).parent / "refusals"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.schedule")), ids=lambda path: path.stem)
def test_a_wrong_schedule_is_refused_in_these_words(path, program, golden, monkeypatch):
    monkeypatch.chdir(FOLDER)
    with pytest.raises(UserError) as error:
        Schedule.load(path.name, program).resolved()
    golden(f"{type(error.value).__name__}: {error.value}\n", path.with_suffix(".txt"))


def test_there_are_refusals():
    assert len(list(FOLDER.glob("*.schedule"))) >= 25
