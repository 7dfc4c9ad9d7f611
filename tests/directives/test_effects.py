"""What each directive does, measured: lanes in the text, threads in the body, bytes allocated, stores counted.

A directive without an entry of `EFFECTS` counts as missing.
"""

from __future__ import annotations

import re
import typing
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import stax as sx
from stax.errors import BoundsError, LegalityError, StaxWarning
from stax.expr import build
from stax.loops import walk
from stax.loops.nodes import Allocate, For, If, LoopKind, Prefetch, Program
from stax.loops.show import show_expr
from stax.lower.passes import lower
from stax.schedule import directives as said
from tests.directives.more import MORE, running
from tests.directives.programs import CASES
from tests.directives.test_directives import hot, scheduled, stores_of, wide
from tests.directives.watched import Seen, watched

ALL = CASES | MORE


def loops(name: str, before: bool = False) -> Program:
    case = ALL[name]
    return lower(sx.check(*scheduled(case, case.before if before else case.after)), debug=True)


def kernel(name: str, before: bool = False) -> sx.Kernel:
    case = ALL[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StaxWarning)
        return sx.compile(*scheduled(case, case.before if before else case.after), strict_native=True)


def ran(name: str, before: bool = False, threads: int = 1) -> Seen:
    """Return what was asked of the runtime in one call."""
    run, seen = watched(kernel(name, before))
    run(**ALL[name].arguments(), threads=threads)
    return seen


def nest(name: str, before: bool = False) -> list[For]:
    return [s for s in walk.statements(loops(name, before).body) if isinstance(s, For)]


def names(name: str, before: bool = False) -> list[str]:
    """Return the names of the loops, outer ones first."""
    return [s.var.name.split("′")[0] for s in nest(name, before)]


def extents(name: str, before: bool = False) -> list[int | None]:
    return [build.integer(s.extent) for s in nest(name, before)]


def scratch(name: str, before: bool = False) -> list[str]:
    return [b.name.split("′")[0] for b in walk.allocated(loops(name, before).body)]


def lanes(name: str) -> set[int]:
    return {a.size for a in loops(name).axes}


def split() -> None:
    assert names("split") == ["f.y", "f.xo", "f.xi"]


def tile() -> None:
    assert names("tile") == ["f.yo", "f.xo", "f.yi", "f.xi"]


def fuse() -> None:
    assert names("fuse", before=True) == ["f.y", "f.x"]
    assert names("fuse") == ["f.t"]


def reorder() -> None:
    assert names("reorder") == ["f.x", "f.y"]


def reverse() -> None:
    assert [s.down for s in nest("reverse")] == [True, False]


def skew() -> None:
    """Let threads run iterations that could not run at once before."""
    f = running()
    s = sx.Schedule(f)
    s["f"].reorder("x", "y").parallel("x")
    with pytest.raises(LegalityError, match="would change"):
        sx.check(f, s)
    assert len(ran("skew", threads=2).threads) == 2


def affine() -> None:
    assert names("affine")[:2] == ["u.to", "u.xo"]


def vectorize() -> None:
    assert lanes("vectorize") == {16, 8}
    assert re.search(r"store <16 x i16>", kernel("vectorize").source("llvm"))
    assert lanes("vectorize_upto") == {96}
    with pytest.raises(BoundsError, match="runs 97 times, and its schedule says vectorize"):
        kernel("vectorize_upto")(np.zeros((2, 97), np.uint16))


def parallel() -> None:
    """Run 45 rows as six runs of eight, which two threads take."""
    seen = ran("parallel", threads=2)
    assert seen.loops == [6]
    assert len(seen.threads) == 2


def unroll() -> None:
    assert next(len(walk.stores(s.body)) for s in nest("unroll") if s.var.name.startswith("f.x")) == 4


def accumulators() -> None:
    (partial,) = [s.buffer for s in walk.statements(loops("accumulators").body) if isinstance(s, Allocate)]
    assert [build.integer(n) for n in partial.shape] == [4, 8]


def partition() -> None:
    """Make the steady part a parallel loop of its own, without a branch; before, each iteration asks."""

    def parallel_loops(before: bool) -> list[For]:
        return [s for s in nest("partition", before) if s.kind is LoopKind.PARALLEL]

    assert len(parallel_loops(True)) == 1
    assert len(parallel_loops(False)) == 2
    assert any(isinstance(s, If) for s in walk.statements(parallel_loops(True)[0]))
    assert not any(isinstance(s, If) for s in walk.statements(parallel_loops(False)[0]))


def reassociate() -> None:
    assert names("reassociate")[-2:] == ["t.update(0).r.k", "t.update(0).y"]
    assert kernel("reassociate").contract == "reassociates"


def atomic() -> None:
    assert "atomicrmw add ptr" in kernel("atomic").source("llvm")
    assert len(ran("atomic", threads=2).threads) == 2


def stream() -> None:
    assert "!nontemporal" in kernel("stream").source("llvm")
    assert "!nontemporal" not in kernel("stream", before=True).source("llvm")


def specialize() -> None:
    """Have one loop of whole vectors, and no tail, in the copy for widths that are multiples of 16."""
    (branch,) = [s for s in walk.statements(loops("specialize").body) if isinstance(s, If)]
    assert len(walk.stores(branch.then)) == 1 < len(walk.stores(branch.orelse))
    for width in (16, 32, 83):
        a = np.arange(3 * width, dtype=np.uint16).reshape(3, width)
        np.testing.assert_array_equal(kernel("specialize")(a), a * 3 + 1)


def hint(word: str) -> Callable[[], None]:
    def ignored() -> None:
        case = ALL[word]
        f, s = scheduled(case, case.after)
        with pytest.warns(StaxWarning, match=rf"{word}\(.*\) is a hint for GPUs, and ignored here"):
            sx.compile(f, s)
        assert "is a hint for GPUs, and ignored here" in sx.explain(f, s)
        assert names(word) == names(word, before=True)

    return ignored


def inline() -> None:
    assert scratch("inline", before=True) == ["bx"]
    assert scratch("inline") == []


def compute_root() -> None:
    """Rows that two strips need are computed once, and not once a strip."""
    a = np.zeros((18, 7), np.uint16)
    counts = []
    for lines in (ALL["compute_root"].before, ALL["compute_root"].after):
        counts.append(stores_of(*scheduled(ALL["compute_root"], lines), "bx", (16, 5), a) // 5)
    assert counts == [20, 18]


def compute_at() -> None:
    assert names("compute_at") == ["out.yo", "bx.y", "bx.x", "out.yi", "out.x"]


def store_at() -> None:
    """Compute each row once a strip of 8 rows: 16 rows need 10 a strip, else 3 each."""
    a = np.zeros((18, 7), np.uint16)
    for outside, rows in ((False, 16 * 3), (True, 2 * 10)):
        f = ALL["store_at"].make()
        s = sx.Schedule(f)
        s["out"].split("y", "yo", "yi", 8)
        s["bx"].compute_at("out", "yi")
        if outside:
            s["bx"].store_at("out", "yo")
        assert stores_of(f, s, "bx", (16, 5), a) == rows * 5


def store_root() -> None:
    """Storage outlives the strips, so that a strip computes what the one before has not."""
    a = np.zeros((18, 7), np.uint16)
    assert stores_of(*scheduled(ALL["store_root"], ALL["store_root"].after), "bx", (16, 5), a) == 18 * 5
    assert isinstance(loops("store_root").body.stmts[0], Allocate)


def hoist_storage() -> None:
    """Allocate in the loop over strips, outside the one over rows."""

    def around(before: bool) -> list[str]:
        return [
            s.var.name for s in nest("hoist_storage", before)
            if any(isinstance(t, Allocate) for t in walk.statements(s.body))
        ]  # fmt: skip

    assert around(before=True) == ["out.yo", "out.yi"]
    assert around(before=False) == ["out.yo"]


def compute_with() -> None:
    assert names("compute_with", before=True)[:4] == ["f.y", "f.x", "g.y", "g.x"]
    assert names("compute_with") == ["f.y", "f.x", "h.y", "h.x"]
    assert sum(n == "bx.y" for n in names("compute_with_shift")) == 2


def fold_storage() -> None:
    (rows,) = walk.allocated(loops("fold_storage").body)
    assert build.integer(rows.shape[0]) == 4


def layout() -> None:
    """Let rows of 81 elements of two bytes begin at multiples of 128 bytes; turn and pad those of the copy."""
    (rows,) = walk.allocated(loops("layout_align").body)
    assert show_expr(rows.shape[1]) == "(out.shape[1] + 63) // 64 * 64"
    assert ran("layout_align").bytes == [45 * 256 + 128]
    assert rows.align == 128
    (turned,) = walk.allocated(loops("layout").body)
    assert show_expr(turned.shape[1]) == "(a.shape[1] + 3) // 4 * 4"


def memory() -> None:
    assert ran("memory_stack", before=True).bytes != []
    assert ran("memory_stack").bytes == []
    assert ran("memory_heap", before=True).bytes == []
    assert ran("memory_heap").bytes != []
    if wide():
        body = hot(kernel("memory_register").source("asm"), "vfmadd")
        assert not any("rsp" in line or "rbp" in line for line in body)


def bound() -> None:
    assert 5 in extents("bound")
    with pytest.raises(BoundsError, match=r"needed at 0 to 83 along `x`, and its schedule promises bound"):
        kernel("bound")(np.zeros((2, 84), np.uint16))


def align_bounds() -> None:
    """No row is left over, so there is one copy of the code."""
    assert len(walk.stores(loops("align_bounds").body)) == 5 < len(walk.stores(loops("align_bounds", True).body))
    with pytest.raises(BoundsError, match="its schedule promises align_bounds"):
        kernel("align_bounds")(np.zeros((44, 8), np.uint16))


def overwrite() -> None:
    assert scratch("overwrite") == []


def cache_read() -> None:
    assert "packed" in scratch("cache_read")


def clone() -> None:
    assert "again" in scratch("clone")


def rfactor() -> None:
    assert scratch("rfactor") == ["part"]


def split_reduction() -> None:
    assert ran("split_reduction", threads=2).loops == [3]


def prefetch() -> None:
    found = [s for s in walk.statements(loops("prefetch").body) if isinstance(s, Prefetch)]
    assert [s.buffer for s in found] == ["a"]
    asm = kernel("prefetch").source("asm")
    assert "prefetch" in asm
    assert "prefetch" not in kernel("prefetch", before=True).source("asm")


def tails() -> None:
    """Leave no loop over single elements, and make rows 96 long for 81."""
    program = loops("tail_round_up")
    assert all(s.value.axes for s in walk.stores(program.body) if s.buffer == "bx")
    assert ran("tail_round_up").bytes == [45 * 96 * 2]


EFFECTS: dict[type, Callable[[], None]] = {
    said.Split: split, said.Tile: tile, said.Fuse: fuse, said.Reorder: reorder, said.Reverse: reverse, said.Skew: skew,
    said.Affine: affine, said.Vectorize: vectorize, said.Parallel: parallel, said.Unroll: unroll,
    said.Accumulators: accumulators, said.Partition: partition, said.Reassociate: reassociate, said.Atomic: atomic,
    said.Stream: stream, said.Specialize: specialize, said.Warps: hint("warps"), said.Stages: hint("stages"),
    said.Swizzle: hint("swizzle"), said.MatrixUnit: hint("matrix_unit"), said.Inline: inline,
    said.ComputeRoot: compute_root, said.ComputeAt: compute_at, said.StoreAt: store_at, said.StoreRoot: store_root,
    said.HoistStorage: hoist_storage, said.ComputeWith: compute_with, said.FoldStorage: fold_storage,
    said.Layout: layout, said.Memory: memory, said.Bound: bound, said.AlignBounds: align_bounds,
    said.Overwrite: overwrite, said.CacheRead: cache_read, said.Clone: clone, said.Rfactor: rfactor,
    said.SplitReduction: split_reduction, said.Prefetch: prefetch,
}  # fmt: skip


@pytest.mark.parametrize("directive", EFFECTS, ids=lambda d: d.__name__)
def test_a_directive_has_the_effect_that_it_says(directive: type) -> None:
    EFFECTS[directive]()


def test_rounding_up_pads_storage_and_leaves_no_single_elements() -> None:
    tails()


def test_no_directive_lacks_an_effect() -> None:
    assert set(typing.get_args(said.Directive)) == set(EFFECTS)


def test_no_directive_lacks_loops_before_and_after() -> None:
    """Golden texts are of cases: each directive is said in one that it was added to."""
    used = set()
    for case in ALL.values():
        f, s = scheduled(case, case.after)
        used |= {type(line.directive) for line in s.lines}
        del f
    assert set(typing.get_args(said.Directive)) - used == {said.SplitReduction}
