"""What lines say of the storage of Funcs: folds, layouts, kinds of memory, and promises of what is needed of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from stax.algorithm.nodes import Func, Pipeline
from stax.errors import Place, ScheduleError
from stax.schedule import directives as said
from stax.schedule.directives import StageRef
from stax.schedule.nest import MOST, closest
from stax.source import Span

MOST_PAD = 4096
MOST_ALIGN = 4096


@dataclass(slots=True)
class Storage:
    """By Func: the dims that are folded, how the others lie in memory and in which; `bounds` also by dim."""

    folds: dict[str, tuple[said.FoldStorage, ...]] = field(default_factory=dict[str, "tuple[said.FoldStorage, ...]"])
    layouts: dict[str, said.Layout] = field(default_factory=dict[str, said.Layout])
    memories: dict[str, said.Memory] = field(default_factory=dict[str, said.Memory])
    bounds: dict[tuple[str, str], said.Bound | said.AlignBounds] = field(
        default_factory=dict[tuple[str, str], "said.Bound | said.AlignBounds"]
    )

    def copy(self) -> Storage:
        """Return the same, to be kept while more is taken in."""
        return Storage(dict(self.folds), dict(self.layouts), dict(self.memories), dict(self.bounds))

    def take(self, pipeline: Pipeline, at: StageRef, directive: said.StorageDirective, word: str) -> None:
        """Take a line in; ScheduleError where no later line could make it fit."""
        func, span = pipeline.func(at.func), directive.span
        if at.stage:
            raise ScheduleError(f"{word} is said of a Func, not of one of its updates", [(span, "here")])
        match directive:
            case said.FoldStorage(dim=dim, n=n):
                _has_dim(func, dim, "folded", span)
                if not 0 < n <= MOST:
                    raise ScheduleError(f"storage is folded by an int from 1 to 2**31 - 1, not {n}", [(span, "here")])
                others = tuple(f for f in self.folds.get(func.name, ()) if f.dim != dim)
                self.folds[func.name] = (*others, directive)
            case said.Layout():
                _can_be_laid_out(func, directive)
                _is_scratch(pipeline, func, "lay out", span)
                self.layouts[func.name] = directive
            case said.Memory():
                _is_scratch(pipeline, func, "choose memory for", span)
                self.memories[func.name] = directive
            case said.Bound(dim=dim, lo=lo, n=n):
                _has_dim(func, dim, "bounded", span)
                if not (-MOST <= lo <= MOST and 0 <= n <= MOST):
                    raise ScheduleError(
                        f"bound takes ints below 2**31, n from 0 on, not {lo} and {n}", [(span, "here")]
                    )
                self.bounds[func.name, dim] = directive
            case said.AlignBounds(dim=dim, n=n):
                _has_dim(func, dim, "aligned", span)
                if not 0 < n <= MOST:
                    raise ScheduleError(f"bounds are aligned by an int from 1 to 2**31 - 1, not {n}", [(span, "here")])
                self.bounds[func.name, dim] = directive


def _has_dim(func: Func, dim: str, done: str, span: Span | None) -> None:
    if dim not in func.dims:
        raise ScheduleError(
            f"Func {func.name!r} has no dim {dim!r}", [(func.span, "defined here"), (span, f"{done} here")],
            [f"dims of {func.name!r}: {', '.join(func.dims) or 'none'}"], closest(dim, func.dims),
        )  # fmt: skip


def _can_be_laid_out(func: Func, layout: said.Layout) -> None:
    span = layout.span
    if sorted(layout.order) != sorted(func.dims):
        places: list[Place] = [(func.span, "defined here"), (span, "laid out here")]
        raise ScheduleError(
            f"a layout names each dim of {func.name!r} once", places,
            [f"dims of {func.name!r}: {', '.join(func.dims) or 'none'}"],
        )  # fmt: skip
    if not 0 < layout.pad <= MOST_PAD:
        raise ScheduleError(f"a layout is padded by an int from 1 to {MOST_PAD}, not {layout.pad}", [(span, "here")])
    align = layout.align
    if align is not None and not (0 < align <= MOST_ALIGN and align & (align - 1) == 0):
        raise ScheduleError(f"rows are aligned to a power of two up to {MOST_ALIGN}, not {align}", [(span, "here")])


def _is_scratch(pipeline: Pipeline, func: Func, what: str, span: Span | None) -> None:
    if func.name in pipeline.outputs:
        raise ScheduleError(
            f"{func.name!r} is an output, which lies as the caller's array does", [(span, "here")],
            hint=f"{what} a Func that is kept in scratch",
        )  # fmt: skip
