"""Every exception of stax, and how one is shown.

A message is one sentence; then the user's own lines, underlined, cause first; then facts that can be checked by hand;
then one hint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stax.source import Span

Place = tuple[Span | None, str]


class StaxError(Exception):
    """What all errors of stax are. `places` are spans with a word on each; `facts` and `hint` are lines of text."""

    def __init__(
        self, message: str, places: Sequence[Place] = (), facts: Sequence[str] = (), hint: str | None = None
    ) -> None:
        self.message, self.places, self.facts, self.hint = message, tuple(places), tuple(facts), hint
        super().__init__(message)

    def __str__(self) -> str:
        lines = [_clipped(self.message)]
        for span, word in self.places:
            if span is not None:
                lines += _shown(span, word)
        lines += [f"  {_clipped(fact)}" for fact in self.facts]
        if self.hint is not None:
            lines.append(f"  hint: {_clipped(self.hint)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from stax.notebook import block, line, text

        first, _, rest = str(self).partition("\n")
        return block(line(type(self).__name__, first), text(rest) if rest else "")

    def __reduce__(self) -> tuple[type[StaxError], tuple[str, tuple[Place, ...], tuple[str, ...], str | None]]:
        return type(self), (self.message, self.places, self.facts, self.hint)


class UserError(StaxError):
    """The program or its schedule is at fault."""

    @property
    def _render_traceback_(self) -> Callable[[], list[str]]:
        """What IPython shows instead of a traceback through stax: the message, where it says the user's own line."""
        if all(span is None for span, _ in self.places):
            raise AttributeError("this error does not say where it comes from: a traceback does")
        return lambda: [f"{type(self).__name__}: {self}"]


class DefinitionError(UserError):
    """An algorithm is not well formed."""


class SymbolicValueError(DefinitionError, TypeError):
    """A value of the program was used where Python needs a plain one, such as in `if`."""


class BoundsError(UserError):
    """A region cannot be inferred, or an access lies outside what it reads or writes."""


class UnsupportedError(UserError):
    """stax has no way to do this, or not yet."""


class ScheduleError(UserError):
    """A schedule is not well formed, or names what is not there."""


class LegalityError(ScheduleError):
    """A schedule would change a value, or could not be proved not to.

    `witness`, where there is one, has as data what the facts say in words: see `stax.legality.witness.Witness`.
    """

    witness: object | None = None


class RunError(StaxError):
    """Compiling or running failed."""


class ArgumentError(RunError):
    """An array or scalar given to a kernel is not what it takes."""


class BackendError(RunError):
    """A compiler or the loader failed."""


class DeviceError(RunError):
    """A device or its memory failed."""


class InternalError(StaxError):
    """A fault of stax: please report it."""


class StaxWarning(UserWarning):
    """Something legal that is probably not meant."""


_LONGEST, _WIDEST = 600, 160


def _clipped(text: str) -> str:
    """Return `text` without the middle of what nobody reads to its end."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _shown(span: Span, word: str) -> list[str]:
    text = span.text
    lines = [f"  {span.place}"]
    if text:
        number = f"{span.line:>6} | "
        end = span.end if span.end > span.column else len(text)
        start = span.column if span.end else len(text) - len(text.lstrip())
        if len(text) > _WIDEST:
            cut = max(0, start - _WIDEST // 2)
            text, start, end = text[cut : cut + _WIDEST], start - cut, min(end - cut, _WIDEST)
        lines.append(number + text)
        lines.append(" " * (len(number) - 2) + "| " + " " * start + "^" * max(1, end - start) + f" {word}")
    else:
        lines[-1] += f": {word}"
    return lines
