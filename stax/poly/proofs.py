"""What isl was asked and said, by the text of the questions, and a journal of what was proved and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from time import perf_counter
from typing import Protocol, TypeVar

from stax.poly.clash import Clash, Problem, TooHard, clash, replaced
from stax.poly.covered import Escape, Uncovered, uncovered
from stax.poly.meet import Met, Question, meet

Lost = tuple[tuple[int, ...], ...]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was proved of `who`, with how many questions to isl, and of how many the answer was known."""

    what: str
    who: str
    questions: int
    known: int
    time_s: float


class Kept(Protocol):
    """Bytes by key that outlive the process, such as `runtime.cache.Store`."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`, or None."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, if that can be done."""
        ...


class Proofs:
    """Answers by the text of their questions, so that editing a directive asks again only what it touches.

    Of the questions that `kept` has an answer to, none reaches isl: kept is that there is nothing to be found, as then
    the program is legal.
    """

    def __init__(self, kept: Kept | None = None) -> None:
        self._kept = kept
        self._clashes: dict[Problem, Clash | TooHard | None] = {}
        self._lost: dict[tuple[Problem, Problem], Lost | TooHard | None] = {}
        self._met: dict[Question, Met | TooHard | None] = {}
        self._escaped: dict[Escape, Uncovered | TooHard | None] = {}
        self.asked, self.known = 0, 0
        self.journal: list[Entry] = []

    def clash(self, asked: Problem) -> Clash | None:
        """Return what `clash` says of `asked`."""
        return self._answer(self._clashes, asked, clash)

    def replaced(self, asked: Problem, folded: Problem) -> Lost | None:
        """Return what `replaced` says of the two."""
        return self._answer(self._lost, (asked, folded), lambda both: replaced(*both))

    def meet(self, asked: Question) -> Met | None:
        """Return what `meet` says of `asked`."""
        return self._answer(self._met, asked, meet)

    def uncovered(self, asked: Escape) -> Uncovered | None:
        """Return what `uncovered` says of `asked`."""
        return self._answer(self._escaped, asked, uncovered)

    @contextmanager
    def noted(self, what: str, who: str) -> Generator[None]:
        """Write into the journal what is proved inside."""
        asked, known, begin = self.asked, self.known, perf_counter()
        yield
        time_s = perf_counter() - begin
        self.journal.append(Entry(what, who, self.asked - asked, self.known - known, time_s))

    def _answer(
        self, answers: dict[_Asked, Answer | TooHard | None], asked: _Asked, ask: Callable[[_Asked], Answer | None]
    ) -> Answer | None:  # fmt: skip
        self.asked += 1
        if asked in answers:
            self.known += 1
        else:
            answers[asked] = self._found(asked, ask)
        answer = answers[asked]
        if isinstance(answer, TooHard):
            raise answer
        return answer

    def _found(self, asked: _Asked, ask: Callable[[_Asked], Answer | None]) -> Answer | TooHard | None:
        key = "" if self._kept is None else sha256(f"{_FORMAT} {asked!r}".encode()).hexdigest()
        if self._kept is not None and self._kept.get(key) == _NOTHING:
            return None
        try:
            found = ask(asked)
        except TooHard as error:
            return error
        if self._kept is not None and found is None:
            self._kept.put(key, _NOTHING)
        return found


_FORMAT = "stax proof 1"
"""Part of the key of what is kept: another number where the same question is answered in another way."""

_NOTHING = b"nothing"
_Asked = TypeVar("_Asked")
