"""Golden text: what a test should give, kept beside it and approved with `--update-golden`."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what tests give as what they should give")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Return a function that asserts that a text is the one in a file."""

    def check(text: str, path: Path) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden text {path.name}: approve it with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return check
