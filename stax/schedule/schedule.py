"""The Schedule that people and the compiler write on: names only, each directive checked as far as it can be."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from stax.algorithm.nodes import Pipeline
from stax.errors import ScheduleError, StaxWarning
from stax.lang.freeze import freeze_named
from stax.lang.func import Func
from stax.lang.inputs import Input
from stax.lang.value import Value
from stax.lang.var import RDom
from stax.schedule.conditions import text_of
from stax.schedule.directives import Line, StageRef, spelled_out
from stax.schedule.fingerprint import fingerprint
from stax.schedule.nest import Nest
from stax.schedule.resolve import At as At
from stax.schedule.resolve import Inline as Inline
from stax.schedule.resolve import Placement as Placement
from stax.schedule.resolve import Replay
from stax.schedule.resolve import Resolved as Resolved
from stax.schedule.resolve import Root as Root
from stax.schedule.resolve import resolve as resolve
from stax.schedule.script import Program, read, show
from stax.schedule.stage import Named, Stage
from stax.schedule.words import LATER, USAGE, Plain
from stax.source import Span, here


class Schedule:
    r"""How a program is to be run: what was said of its Funcs, in order.

    Directives are said of stages: `s[f]` for where f is computed and for the loops of its definition, `s[f].update(k)`
    for the loops of its update k. Each returns its stage, so that they chain. Funcs of which nothing is said are left
    to the default schedule. Equal schedules are those that say the same, whatever the reasons in their text.

    outputs: the Func or the tuple of Funcs that the program computes, or its Pipeline.
    check: called as `check(outputs, schedule)` after each directive; when it raises, the directive is taken back.

    >>> import stax as sx
    >>> y, x, a = sx.Var("y"), sx.Var("x"), sx.Input("a", sx.float32, 2)
    >>> f, g = sx.Func("f"), sx.Func("g")
    >>> f[y, x] = a[y, x] * 2
    >>> g[y, x] = f[y, x] + f[y + 1, x]
    >>> s = sx.Schedule(g)
    >>> s[g].split(y, "yo", y, 32).parallel("yo").vectorize(x, 8)
    <g: yo parallel, y serial, x serial, x.in vector>
    >>> s["f"].compute_at(g, y, store="yo")
    <f: y serial, x serial>
    >>> print("\n".join(str(s).splitlines()[2:]))
    s["g"].split("y", "yo", "y", 32).parallel("yo").vectorize("x", 8)
    s["f"].compute_at("g", "y", store="yo")
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, outputs: Any, *, check: Callable[[Any, Schedule], object] | None = None) -> None:
        self.outputs = tuple(outputs) if isinstance(outputs, list) else outputs  # pyright: ignore[reportUnknownArgumentType]
        self.pipeline, self._names = _frozen(self.outputs)
        self.refused: tuple[str, ...] = ()
        self._check = check
        self._replay = Replay(self.pipeline)

    @classmethod
    def of(cls, outputs: Any, lines: Iterable[Line], refused: Iterable[str] = ()) -> Schedule:
        """Return a schedule of `outputs` that says `lines`; `refused` says what was tried and not taken."""
        made = cls(outputs)
        made.refused = tuple(refused)
        for line in lines:
            made.say(line)
        return made

    @classmethod
    def parse(
        cls, text: str, outputs: Any, *, file: str = "<schedule>",
        check: Callable[[Any, Schedule], object] | None = None,
    ) -> Schedule:  # fmt: skip
        """Return the schedule that `text` says, for the program of `outputs`.

        Nothing of the text is executed or dropped. A StaxWarning says where the program differs from that which the
        text was written for; names that are not there are refused with a ScheduleError.
        """
        script = read(text, file)
        made = cls(outputs, check=check)
        for line in script.lines:
            made.say(line)
        if script.program is not None:
            for note in _changes(script.program, _program(made.pipeline)):
                warnings.warn(f"{file}: {note}", StaxWarning, stacklevel=2)
        return made

    @classmethod
    def load(cls, path: Any, outputs: Any, *, check: Callable[[Any, Schedule], object] | None = None) -> Schedule:
        """Return the schedule in the file `path`, for the program of `outputs`; as `parse`."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ScheduleError(f"{path} is not UTF-8 text: byte {error.start} is no part of any character") from None
        return cls.parse(text, outputs, file=str(path), check=check)

    def save(self, path: Any) -> None:
        """Write the text to the file `path`."""
        Path(path).write_text(str(self), encoding="utf-8", newline="\n")

    @property
    def lines(self) -> tuple[Line, ...]:
        """What was said, in order."""
        return tuple(self._replay.lines)

    @property
    def program(self) -> Pipeline:
        """The program with the Funcs that directives made."""
        return self._replay.pipeline

    def resolved(self) -> Resolved:
        """Return what the lines add up to; ScheduleError where they do not fit together."""
        return self._replay.finish(warn=False)

    def nest(self, at: StageRef) -> Nest:
        """Return the loops of a stage as they stand."""
        return self._replay.nests[at]

    def stage(self, func: str, stage: int, span: Span | None) -> StageRef:
        """Return a stage; ScheduleError where the program has none such."""
        return self._replay.stage(func, stage, span)

    def is_input(self, name: str) -> bool:
        """Return whether `name` is that of an Input."""
        return self._replay.array(name) is not None

    def __getattr__(self, word: str) -> Any:
        hint = f"; s[f].{word}(...) says it of a Func" if word in USAGE or word in LATER else ""
        raise AttributeError(f"a Schedule has no {word!r}{hint}")

    def say(self, line: Line) -> None:
        """Take in one directive; a refused one leaves the schedule as it was."""
        before = self.lines
        try:
            for one in spelled_out(line):
                self._replay.step(one)
            if self._check is not None:
                self._check(self.outputs, self)
        except BaseException:
            if self.lines != before:
                self._replay = Replay(self.pipeline)
                for kept in before:
                    self._replay.step(kept)
            raise

    def plain(self, thing: Any, span: Span | None) -> Plain:
        """Return what a directive holds for `thing`; a Func is what it is called in this program."""
        return _plain(thing, self._names, span)

    def condition(self, cond: Any, span: Span | None) -> str:
        """Return the text of a condition on sizes and Params."""
        return text_of(cond.node, self._names, span) if isinstance(cond, Value) else str(cond)

    def __getitem__(self, func: Named) -> Stage:
        span = here()
        name = self.plain(func, span)
        if not isinstance(name, str):
            raise ScheduleError(f"a schedule takes a Func or its name, not {func!r}", [(span, "here")])
        if self.is_input(name):
            return Stage(self, StageRef(name))
        return Stage(self, self.stage(name, 0, span))

    def __str__(self) -> str:
        return show(_program(self.pipeline), self._replay.lines)

    def __repr__(self) -> str:
        return f"<Schedule of {', '.join(self.pipeline.outputs)}: {len(self._replay.lines)} directives>"

    def _repr_html_(self) -> str:
        from stax.schedule.page import page

        return page(_program(self.pipeline), self._replay.lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self.lines == other.lines and _program(self.pipeline) == _program(other.pipeline)


def _frozen(outputs: Any) -> tuple[Pipeline, Mapping[int, str]]:
    return (outputs, {}) if isinstance(outputs, Pipeline) else freeze_named(outputs)


def _program(pipeline: Pipeline) -> Program:
    return Program(fingerprint(pipeline), {f.name: f.dims for f in pipeline.funcs})


def _changes(then: Program, now: Program) -> list[str]:
    """Return what to say of a program that is not the one a schedule was written for."""
    if then == now:
        return []
    notes: list[str] = []
    new = [name for name in now.dims if name not in then.dims]
    gone = [name for name in then.dims if name not in now.dims]
    if new:
        notes.append(f"new since the schedule was written: {', '.join(new)}; the default schedule is used for them")
    if gone:
        notes.append(f"no longer in the program: {', '.join(gone)}")
    for name, dims in then.dims.items():
        if name in now.dims and now.dims[name] != dims:
            notes.append(f"{name} had the dims ({', '.join(dims)}), and has now ({', '.join(now.dims[name])})")
    return notes or ["the program has changed since the schedule was written"]


def _plain(thing: Any, names: Mapping[int, str], span: Span | None) -> Plain:
    """Return what a directive holds for `thing`: names of Funcs, Vars and RDom variables, and numbers."""
    match thing:
        case str() | bool() | int() | float():
            return thing
        case Stage():
            return thing.at
        case tuple() | list():
            return tuple(_plain(t, names, span) for t in thing)  # pyright: ignore[reportUnknownVariableType]
        case RDom():
            variables = [v.name for v in thing.variables.values()]
            if len(variables) > 1:
                hint = " or ".join(variables)
                raise ScheduleError("an RDom of several variables is no loop", [(span, "here")], hint=hint)
            return variables[0]
        case Func() | Input() if names:
            if id(thing) not in names:
                raise ScheduleError(
                    f"{thing!r} is no part of the program",
                    [(thing.span, "made here"), (span, "named here")],
                    hint="a program is its outputs and what they read",
                )
            return names[id(thing)]
        case _ if isinstance(getattr(thing, "name", None), str):
            return thing.name
        case _:
            try:
                return operator.index(thing)
            except TypeError:
                raise ScheduleError(
                    f"a directive takes Funcs, Vars, names and ints, not {thing!r}", [(span, "here")]
                ) from None
