"""What each directive makes of the loops, and that values stay: to the bit, or within the bound of a sum."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stax as sx
from stax.compiler import host
from stax.dtypes import int64
from stax.errors import LegalityError
from stax.expr import build
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Load, Size
from stax.expr.number import same
from stax.loops import walk
from stax.loops.interpret import interpret
from stax.loops.nodes import Block, Buffer, If, Program, Role, Store
from stax.loops.show import show
from stax.lower.passes import lower
from tests.directives.more import MORE
from tests.directives.programs import CASES as PLAIN
from tests.directives.programs import Case, Scheduling

CASES = PLAIN | MORE
FOLDER = Path(__file__).parent / "loops"


def scheduled(case: Case, lines: Scheduling) -> tuple[sx.Func, sx.Schedule]:
    f = case.make()
    s = sx.Schedule(f)
    lines(s)
    return f, s


def lowered(name: str, before: bool = False) -> Program:
    case = CASES[name]
    return lower(sx.check(*scheduled(case, case.before if before else case.after)), debug=True)


def kernel(name: str) -> sx.Kernel:
    case = CASES[name]
    f, s = scheduled(case, case.after)
    return sx.compile(f, s, strict_native=True)


@pytest.mark.parametrize("name", CASES)
def test_the_loops_before_and_after(name, golden):
    case = CASES[name]
    texts = [show(lower(sx.check(*scheduled(case, lines)))) for lines in (case.before, case.after)]
    golden(f"before\n\n{texts[0]}\nafter\n\n{texts[1]}", FOLDER / f"{name}.txt")


@pytest.mark.parametrize("name", CASES)
def test_values_stay(name):
    """A sum of n terms is off by at most n - 1 roundings of the sum of their sizes, in whatever order."""
    case, k = CASES[name], kernel(name)
    given = case.arguments()
    expected, found = case.expected(**given), k(**given)
    if case.terms is None:
        assert k.contract == "bitwise"
        np.testing.assert_array_equal(found, expected)
        return
    assert k.contract == "reassociates"
    bound = case.terms * 2.0**-24 * np.abs(given["a"].astype(np.float64)).sum(axis=1)
    assert (np.abs(found - expected) <= bound).all()
    with pytest.raises(LegalityError, match="would be taken in another order"):
        sx.compile(*scheduled(case, case.after), require="bitwise")


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_is_the_same_when_read_back(name):
    f, s = scheduled(CASES[name], CASES[name].after)
    assert sx.Schedule.parse(str(s), f) == s


def hot(asm: str, word: str) -> list[str]:
    """Return the instructions of the shortest loop of `asm` that has `word`."""
    found: list[list[str]] = []
    lines = [line.strip() for line in asm.splitlines()]
    places = {line[:-1]: k for k, line in enumerate(lines) if re.fullmatch(r"\.?L\w+:", line)}
    for k, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\.?L\w+)", line)
        if jump and places.get(jump[1], k) < k:
            body = lines[places[jump[1]] : k + 1]
            if any(word in one for one in body):
                found.append(body)
    return min(found, key=len)


def vectors(name: str, word: str) -> list[str]:
    return [line for line in hot(kernel(name).source("asm"), word) if line.startswith(word)]


def wide() -> bool:
    return host().has("avx2")


@pytest.mark.skipif(not wide(), reason="registers are counted on machines with AVX2")
def test_a_sum_in_lanes_adds_a_vector_an_iteration_and_touches_no_memory_but_its_operand():
    body = hot(kernel("vectorize_a_sum").source("asm"), "vaddps")
    assert sum(line.startswith("vaddps") and "ymm" in line for line in body) == 1
    assert not any("rsp" in line or "rbp" in line for line in body)
    assert not any(line.startswith(("vmovups\t%ymm", "vmovaps\t%ymm")) and "(" in line for line in body)


@pytest.mark.skipif(not wide(), reason="registers are counted on machines with AVX2")
def test_four_accumulators_are_four_registers():
    adds = vectors("accumulators", "vaddps")
    assert len({line.split(",")[-1] for line in adds}) == len(adds) == 4


def test_a_maximum_in_lanes_is_of_vectors():
    text = kernel("vectorize_a_reduced_loop").source("llvm")
    assert "llvm.maximum.v8f32" in text or "fcmp" in text
    assert re.search(r"vector\.reduce\.fmaximum\.v8f32", text)


def test_rfactor_keeps_a_result_for_each_row():
    (part,) = walk.allocated(lowered("rfactor").body)
    assert part.name == "part"
    assert len(part.shape) == 2


def test_atomic_updates_are_one_instruction_each():
    text = kernel("atomic").source("llvm")
    assert "atomicrmw add ptr" in text
    assert "stax_par_for" in text


def stores_of(f: sx.Func, s: sx.Schedule, buffer: str, shape: tuple[int, ...], a: np.ndarray) -> int:
    """Return how many elements of `buffer` are written, by running the loops and counting."""
    program = lower(sx.check(f, s))
    zero = build.index(0)

    def rule(stmt):
        if isinstance(stmt, Store) and stmt.buffer == buffer:
            old = Load(int64, "count", (zero,))
            return Block((stmt, Store("count", (zero,), build.add(old, build.const(1, int64)))))
        return stmt

    counter = Buffer("count", int64, (build.index(1),), Role.OUTPUT)
    program = replace(
        program, buffers=(*program.buffers, counter), body=walk.as_block(walk.rewrite_statements(program.body, rule))
    )
    arrays = {"a": a, "out": np.zeros(shape, np.uint16), "count": np.zeros(1, np.int64)}
    sizes = {(n, d): e for n, v in arrays.items() for d, e in enumerate(v.shape)}
    interpret(program, arrays, {}, sizes)
    return int(arrays["count"][0])


def test_a_window_that_slides_computes_each_row_once_a_strip():
    """16 output rows in strips of 8 need 10 rows a strip; without storage outside the loop, 3 for each row."""
    a = np.zeros((18, 7), np.uint16)
    for outside, rows in ((False, 16 * 3), (True, 2 * 10)):
        f = CASES["store_at"].make()
        s = sx.Schedule(f)
        s["out"].split("y", "yo", "yi", 8)
        s["bx"].compute_at("out", "yi")
        if outside:
            s["bx"].store_at("out", "yo")
        assert stores_of(f, s, "bx", (16, 5), a) == rows * 5


def test_folded_storage_holds_as_many_rows_as_were_asked_for():
    (rows,) = walk.allocated(lowered("fold_storage").body)
    (before,) = walk.allocated(lowered("fold_storage", before=True).body)
    assert build.integer(rows.shape[0]) == 4
    assert build.integer(before.shape[0]) is None


def test_a_shifted_tail_runs_whole_vectors_where_one_fits():
    """The last run starts earlier, so that no loop over single elements is left for widths of 16 and more."""
    program = lowered("tail_shift")
    (branch,) = [s for s in walk.statements(program.body) if isinstance(s, If) and s.orelse.stmts]
    assert all(s.value.axes for s in walk.stores(branch.then))
    assert not all(s.value.axes for s in walk.stores(branch.orelse))


@pytest.mark.parametrize("name", ["tail_shift", "tail_predicate"])
def test_tails_of_every_width(name):
    case, k = CASES[name], kernel(name)
    for width in range(1, 52):
        a = np.arange(3 * width, dtype=np.uint16).reshape(3, width)
        np.testing.assert_array_equal(k(a), case.expected(a))


def test_a_masked_tail_leaves_what_is_beside_alone():
    whole = np.full((5, 40), 7, np.uint16)
    view = whole[1:4, 8:27]
    kernel("tail_predicate")(np.zeros((3, 19), np.uint16), out=view)
    assert (view == 1).all()
    view[:] = 7
    assert (whole == 7).all()
    assert all(s.value.axes for s in walk.stores(lowered("tail_predicate").body))


@pytest.mark.skipif(not wide(), reason="the words are those of x86")
def test_what_is_streamed_goes_past_the_caches_before_others_may_read_it():
    asm = kernel("stream").source("asm")
    assert "vmovntdq" in asm
    assert "sfence" in asm
    assert "movnt" not in kernel("tail_shift").source("asm")


def test_what_is_streamed_may_lie_anywhere():
    case, k = CASES["stream"], kernel("stream")
    given = case.arguments()
    h, w = given["a"].shape
    for offset in (0, 2, 16, 30, 34):
        for stride in (w, w + 1, 96):
            raw = np.zeros(h * stride * 2 + 128, np.uint8)
            start = -raw.ctypes.data % 64 + offset
            out = raw[start : start + h * stride * 2].view(np.uint16).reshape(h, stride)[:, :w]
            k(**given, out=out)
            np.testing.assert_array_equal(out, case.expected(**given))


def scratch(name: str) -> dict[str, tuple[int | None, ...]]:
    """Return the extents of the scratch of a case, None where they depend on sizes."""
    return {b.name: tuple(map(build.integer, b.shape)) for b in walk.allocated(lowered(name).body)}


def test_a_copy_holds_what_its_reader_needs_there():
    """A block of 8 columns; the reader loads the copy, and the copy alone loads the Input."""
    program = lowered("cache_read")
    reading = {s.buffer: walk.buffers_loaded(s) for s in walk.stores(program.body)}
    assert reading["packed"] == {"b"}
    assert reading["c"] <= {"a", "c", "packed"}
    assert scratch("cache_read")["packed"][0] is None


def test_a_layout_turns_and_pads_storage():
    """13 rows of 8 columns are kept as 8 rows of 13, each padded to 16."""
    (before,) = walk.allocated(lowered("layout", before=True).body)
    (after,) = walk.allocated(lowered("layout").body)

    def size(node: Size) -> np.ndarray:
        return np.asarray({("a", 1): 13, ("b", 1): 21}[node.array, node.dim], np.int64)

    assert int(evaluate([before.shape[0]], size)[0]) == 13
    assert int(evaluate([after.shape[1]], size)[0]) == 16
    assert same(before.shape[1], after.shape[0])


def test_a_copy_that_is_not_placed_is_kept_whole():
    """The default schedule would inline what is so cheap, and leave no copy."""
    f = CASES["cache_read"].make()
    s = sx.Schedule(f)
    s["b"].cache_read("packed", "c")
    assert "packed" in [b.name for b in walk.allocated(lower(sx.check(f, s)).body)]


def test_a_clone_is_computed_for_its_readers_alone():
    program = lowered("clone")
    reading = {s.buffer: walk.buffers_loaded(s) for s in walk.stores(program.body)}
    assert reading == {"f": {"a"}, "again": {"a"}, "g": {"again"}, "h": {"g", "f"}}
