"""The Schedule that people and the compiler write on: names only, each directive checked as far as it can be."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stax.algorithm.nodes import Pipeline
from stax.errors import ScheduleError, StaxWarning, UnsupportedError
from stax.lang.freeze import freeze_named
from stax.lang.func import Func
from stax.lang.inputs import Input
from stax.lang.var import RDom
from stax.schedule.directives import Line, StageRef, spelled_out
from stax.schedule.fingerprint import fingerprint
from stax.schedule.nest import Nest, closest
from stax.schedule.resolve import At as At
from stax.schedule.resolve import Inline as Inline
from stax.schedule.resolve import Placement as Placement
from stax.schedule.resolve import Replay
from stax.schedule.resolve import Resolved as Resolved
from stax.schedule.resolve import Root as Root
from stax.schedule.resolve import resolve as resolve
from stax.schedule.script import Program, read, show
from stax.schedule.words import LATER, USAGE, Plain, make
from stax.source import Span, here

Named = Any
"""A Func, Var or RDom variable, or its name."""


class Schedule:
    r"""How a program is to be run: what was said of its Funcs, in order.

    Directives are said of stages: `s[f]` for where f is computed and for the loops of its definition, `s[f].update(k)`
    for the loops of its update k. Each returns its stage, so that they chain. Funcs of which nothing is said are left
    to the default schedule. Equal schedules are those of equal text.

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
        self._check = check
        self._replay = Replay(self.pipeline)

    @classmethod
    def of(cls, outputs: Any, lines: Iterable[Line]) -> Schedule:
        """Return a schedule of `outputs` that says `lines`."""
        made = cls(outputs)
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

    def __getitem__(self, func: Named) -> Stage:
        span = here()
        name = self.plain(func, span)
        if not isinstance(name, str):
            raise ScheduleError(f"a schedule takes a Func or its name, not {func!r}", [(span, "here")])
        if self._replay.array(name) is not None:
            return Stage(self, StageRef(name))
        return Stage(self, self._replay.stage(name, 0, span))

    def __str__(self) -> str:
        return show(_program(self.pipeline), self._replay.lines)

    def __repr__(self) -> str:
        return f"<Schedule of {', '.join(self.pipeline.outputs)}: {len(self._replay.lines)} directives>"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Schedule) else NotImplemented


class Stage:
    """A stage of a Func under a schedule: what directives are said of. `v`, `outer`, ... are Vars or names.

    >>> import stax as sx
    >>> i, a = sx.Var("i"), sx.Input("a", sx.uint8, 1)
    >>> r, h = sx.RDom("r", k=a.shape[0]), sx.Func("h", shape=(256,))
    >>> h[i] = 0
    >>> h[a[r]] += 1
    >>> sx.Schedule(h)[h].vectorize(i, 8).update(0).unroll(r, 4)
    <h.update(0): r.k serial, r.k.in unroll>
    """

    __slots__ = ("at", "schedule")

    def __init__(self, schedule: Schedule, at: StageRef) -> None:
        self.schedule, self.at = schedule, at

    def update(self, k: int) -> Stage:
        """Return update `k` of the same Func, counted from 0."""
        span = here()
        number = self.schedule.plain(k, span)
        if type(number) is not int or number < 0:
            raise ScheduleError(f"updates are counted from 0, not {k!r}", [(span, "here")])
        return Stage(self.schedule, self.schedule._replay.stage(self.at.func, number + 1, span))  # pyright: ignore[reportPrivateUsage]

    def split(self, v: Named, outer: Named, inner: Named, n: int, *, tail: str = "guard") -> Stage:
        """Make of loop `v` a loop `outer` over a loop `inner` of `n` steps.

        tail: what happens to the iterations that do not fill `n`: "guard" runs those that exist, "shift" repeats some
        of those before, "predicate" masks lanes.
        """
        return self._say("split", v, outer, inner, n, tail=tail)

    def tile(
        self, vars: Sequence[Named], outers: Sequence[Named], inners: Sequence[Named], sizes: Sequence[int], *,
        tail: str = "guard",
    ) -> Stage:  # fmt: skip
        """Split each of `vars` by its size, and put all outer loops outside all inner ones."""
        return self._say("tile", vars, outers, inners, sizes, tail=tail)

    def fuse(self, outer: Named, inner: Named, fused: Named) -> Stage:
        """Make one loop of `outer` and the loop `inner` directly inside it."""
        return self._say("fuse", outer, inner, fused)

    def reorder(self, *loops: Named) -> Stage:
        """Let `loops`, outermost first, take among them the places that they hold."""
        return self._say("reorder", *loops)

    def reverse(self, v: Named) -> Stage:
        """Run the iterations of `v` from the last to the first."""
        return self._say("reverse", v)

    def skew(self, v: Named, w: Named, factor: int, new: Named | None = None) -> Stage:
        """Make of loop `v` a loop that counts `v + factor * w`, called `new`, or `v` as before.

        What `v` reads an iteration of `w` earlier and up to `factor` further on then comes first, so that the two may
        be tiled or interchanged.
        """
        return self._say("skew", v, w, factor, new=new)

    def vectorize(self, v: Named, n: int | None = None, *, upto: int | None = None) -> Stage:
        """Run the iterations of `v` as lanes in step; with `n`, split `v` by `n` and do so with the inner `v.in`."""
        return self._say("vectorize", v, *(() if n is None else (n,)), upto=upto)

    def parallel(self, v: Named, n: int | None = None) -> Stage:
        """Run the iterations of `v` by independent workers; with `n`, in runs of `n`: the inner loop is `v.in`."""
        return self._say("parallel", v, *(() if n is None else (n,)))

    def unroll(self, v: Named, n: int | None = None) -> Stage:
        """Write out the iterations of `v`; with `n`, split `v` by `n` and do so with the inner `v.in`."""
        return self._say("unroll", v, *(() if n is None else (n,)))

    def inline(self) -> Stage:
        """Compute the Func wherever it is read."""
        return self._say("inline")

    def compute_root(self) -> Stage:
        """Compute the Func whole, before its readers."""
        return self._say("compute_root")

    def compute_at(self, g: Any, v: Named, *, store: Named | None = None) -> Stage:
        """Compute the Func in each iteration of loop `v` of `g`, and keep it from loop `store` of `g` on.

        g: a Func or its name, for the stage of it that reads this one, or a stage such as `s[g].update(0)`.
        """
        return self._say("compute_at", g, v, store=store)

    def store_at(self, g: Any, v: Named) -> Stage:
        """Keep the values for as long as an iteration of loop `v` of `g` lasts."""
        return self._say("store_at", g, v)

    def store_root(self) -> Stage:
        """Keep the values for as long as the kernel runs."""
        return self._say("store_root")

    def fold_storage(self, dim: Named, n: int) -> Stage:
        """Keep `n` values of the Func along `dim`: each takes the place of the one `n` before it.

        Refused unless it is proved that nothing reads a value that another has replaced.
        """
        return self._say("fold_storage", dim, n)

    def layout(self, order: Sequence[Named], *, pad: int = 1) -> Stage:
        """Keep the values with the dims in `order`, outermost first, the last one's extent a multiple of `pad`."""
        return self._say("layout", tuple(order), pad=None if pad == 1 else pad)

    def cache_read(self, name: str, *readers: Named) -> Stage:
        """Let `readers`, or all who read it, read a new Func `name` instead, a copy; also said of an Input."""
        return self._say("cache_read", name, *readers)

    def clone(self, name: str, *readers: Named) -> Stage:
        """Let `readers` read a new Func `name` instead, which is computed as this one is."""
        return self._say("clone", name, *readers)

    def reassociate(self) -> Stage:
        """Let sums of floats of this stage be taken in another order: values may differ in their last bits."""
        return self._say("reassociate")

    def atomic(self) -> Stage:
        """Let iterations of this update meet in a cell: each combines into it, in whatever order they come."""
        return self._say("atomic")

    def stream(self) -> Stage:
        """Store past the caches: for values that are not read again soon, where they lie in whole aligned vectors."""
        return self._say("stream")

    def accumulators(self, v: Named, n: int) -> Stage:
        """Split the reduced loop `v` by `n`, and give each step of its inner part `v.acc` an accumulator of its own."""
        return self._say("accumulators", v, n)

    def rfactor(self, r: Named, u: Named, name: str) -> Stage:
        """Put the results for each value of the reduced loop `r` into a new Func `name`, along its first dim `u`.

        The update then combines them over `u`. `r` is a variable of the RDom, or a part of one that was split.
        """
        return self._say("rfactor", r, u, name)

    def split_reduction(self, r: Named, n: int, u: Named, name: str) -> Stage:
        """Reduce runs of `n` iterations of `r` in parallel: `split`, `rfactor` and `parallel`, in this order."""
        return self._say("split_reduction", r, n, u, name)

    def _say(self, word: str, *args: Any, **named: Any) -> Stage:
        span = here()
        plain = [self.schedule.plain(a, span) for a in args]
        given = {k: self.schedule.plain(v, span) for k, v in named.items() if v is not None}
        self.schedule.say(Line(self.at, make(word, plain, given, span)))
        return self

    def __getattr__(self, word: str) -> Any:
        if word in LATER:
            raise UnsupportedError(f"directive {word!r} comes with a later version", [(here(), "here")])
        hint = None if word.startswith("_") else closest(word, (*USAGE, *LATER))
        raise AttributeError(f"there is no directive {word!r}{'; ' + hint if hint else ''}")

    def __repr__(self) -> str:
        if self.schedule._replay.array(self.at.func) is not None:  # pyright: ignore[reportPrivateUsage]
            return f"<{self.at}: an Input>"
        loops = ", ".join(f"{loop.name} {loop.kind.value}" for loop in self.schedule.nest(self.at).loops)
        return f"<{self.at}: {loops}>"


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
