"""A stage of a Func under a schedule: the methods that directives are said by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

from stax.errors import ScheduleError, UnsupportedError
from stax.schedule.directives import Line, StageRef
from stax.schedule.nest import closest
from stax.schedule.words import LATER, USAGE, make
from stax.source import Span, here

if TYPE_CHECKING:
    from stax.schedule.schedule import Schedule

Named = Any
"""A Func, Var or RDom variable, or its name."""


def _as_written(stage: type[Stage]) -> type[Stage]:
    """Let each directive say how it is written, where a call does not fit it."""

    def checked(word: str, method: Callable[..., Stage]) -> Callable[..., Stage]:
        @wraps(method)
        def said(*args: Any, **named: Any) -> Stage:
            try:
                return method(*args, **named)
            except TypeError:
                try:
                    signature(method).bind(*args, **named)
                except TypeError:
                    raise ScheduleError(f"{word} is written {USAGE[word]}", [(here(), "here")]) from None
                raise

        return said

    for word in USAGE:
        setattr(stage, word, checked(word, getattr(stage, word)))
    return stage


@_as_written
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
        return Stage(self.schedule, self.schedule.stage(self.at.func, number + 1, span))

    def split(self, v: Named, outer: Named, inner: Named, n: int, *, tail: str = "guard") -> Stage:
        """Make of loop `v` a loop `outer` over a loop `inner` of `n` steps.

        tail: what happens to the iterations that do not fill `n`: "guard" runs those that exist, "shift" repeats some
        of those before, "round_up" runs past the end, into padding of the storage, "predicate" masks lanes, or
        iterations that are written out.
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

    def affine(
        self, matrix: Sequence[Sequence[int]], loops: Sequence[Named], *, new: Sequence[Named] | None = None
    ) -> Stage:
        """Make of `loops` as many that count the rows of `matrix` times them, each where one of them stood.

        The map must be a bijection of whole numbers: its determinant is 1 or -1. new: names, else they keep theirs.
        """
        return self._say("affine", matrix, loops, new=new)

    def vectorize(self, v: Named, n: int | None = None, *, upto: int | None = None) -> Stage:
        """Run the iterations of `v` as lanes in step; with `n`, split `v` by `n` and do so with the inner `v.in`.

        upto: how many there may be, where that is known at the call only; a call with more is refused.
        """
        return self._say("vectorize", v, *(() if n is None else (n,)), upto=upto)

    def parallel(self, v: Named, n: int | None = None) -> Stage:
        """Run the iterations of `v` by independent workers; with `n`, in runs of `n`: the inner loop is `v.in`."""
        return self._say("parallel", v, *(() if n is None else (n,)))

    def unroll(self, v: Named, n: int | None = None) -> Stage:
        """Write out the iterations of `v`; with `n`, split `v` by `n` and do so with the inner `v.in`."""
        return self._say("unroll", v, *(() if n is None else (n,)))

    def partition(self, v: Named) -> Stage:
        """Cut loop `v` where conditions change, so that its steady part has none, whatever that costs in code."""
        return self._say("partition", v)

    def specialize(self, cond: Any) -> Stage:
        """Make a copy of the code of this stage for calls where `cond` holds, simplified by what it says.

        cond: a condition on sizes and Params, such as `a.shape[1] % 16 == 0`, or its text, which may ask for sizes of
        outputs too: `"radius == 1 and out.shape[0] > 8"`.
        """
        return self._say("specialize", self.schedule.condition(cond, here()))

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

    def hoist_storage(self, g: Any, v: Named) -> Stage:
        """Allocate the storage once an iteration of loop `v` of `g`, further out than where the values are kept."""
        return self._say("hoist_storage", g, v)

    def compute_with(self, g: Any, v: Named, *, shift: int = 0) -> Stage:
        """Run this stage in the loops of stage `g` down to `v`, after what `g` does there, `shift` iterations later.

        g: a stage such as `s[g].update(0)`, or a Func for its definition. Both must be computed at the same place. What
        reads `g` may come so many iterations later that the values are there.
        """
        return self._say("compute_with", g, v, shift=shift or None)

    def fold_storage(self, dim: Named, n: int) -> Stage:
        """Keep `n` values of the Func along `dim`: each takes the place of the one `n` before it.

        Refused unless it is proved that nothing reads a value that another has replaced.
        """
        return self._say("fold_storage", dim, n)

    def layout(self, order: Sequence[Named], *, pad: int = 1, align: int | None = None) -> Stage:
        """Keep the values with the dims in `order`, outermost first, the last one's extent a multiple of `pad`.

        align: every row begins at a multiple of so many bytes.
        """
        return self._say("layout", tuple(order), pad=None if pad == 1 else pad, align=align)

    def memory(self, kind: str) -> Stage:
        """Keep the values on the "stack", on the "heap", or in a "register", for what is read at constant positions."""
        return self._say("memory", kind)

    def bound(self, dim: Named, lo: int, n: int) -> Stage:
        """Promise that just the `n` values from `lo` on are needed along `dim`; a call that needs others is refused."""
        return self._say("bound", dim, lo, n)

    def align_bounds(self, dim: Named, n: int) -> Stage:
        """Promise that what is needed along `dim` begins at, and is as long as, a multiple of `n`; calls check it."""
        return self._say("align_bounds", dim, n)

    def overwrite(self, g: Named) -> Stage:
        """Keep the Func in the storage of `g`, a Func or an Input of its type and shape: cell by cell in its place.

        Refused unless it is proved that nothing reads a cell of `g` after this Func has written there. An Input that is
        overwritten must be writeable at the call; where the Func is an output, the array given for it is the result.
        """
        return self._say("overwrite", g)

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

    def prefetch(self, g: Named, v: Named, n: int) -> Stage:
        """In each iteration of loop `v`, fetch into the caches what the one `n` later reads of `g`, a Func or Input."""
        return self._say("prefetch", g, v, n)

    def warps(self, n: int) -> Stage:
        """Give each program `n` warps: a hint for GPUs, ignored on the CPU with a warning."""
        return self._say("warps", n)

    def stages(self, n: int) -> Stage:
        """Load `n` iterations ahead: a hint for GPUs, ignored on the CPU with a warning."""
        return self._say("stages", n)

    def swizzle(self, n: int) -> Stage:
        """Count programs in groups of `n` rows: a hint for GPUs, ignored on the CPU with a warning."""
        return self._say("swizzle", n)

    def matrix_unit(self, i: Named, j: Named, k: Named, *, precision: str | None = None) -> Stage:
        """Multiply matrices over loops `i`, `j` and the reduced `k`: a hint for GPUs, ignored on the CPU."""
        return self._say("matrix_unit", i, j, k, precision=precision)

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
        span = _at_word(here(), word)
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
        if self.schedule.is_input(self.at.func):
            return f"<{self.at}: an Input>"
        loops = ", ".join(f"{loop.name} {loop.kind.value}" for loop in self.schedule.nest(self.at).loops)
        return f"<{self.at}: {loops}>"


def _at_word(span: Span | None, word: str) -> Span | None:
    """Return the part of `span`, a chain of directives on one line, that says the last of them."""
    at = -1 if span is None else span.text.rfind(f".{word}(", span.column, span.end)
    return span if span is None or at < 0 else replace(span, column=at + 1)
