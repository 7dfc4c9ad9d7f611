"""The schedules of `schedules/cpu`: each is legal, fits its program, and gives what the NumPy code gives."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stax as sx
from examples.apps import algebra, stax_suite
from stax.target import Target

import apps  # isort: skip  # on the path once stax_suite is imported

BY_HAND = [(app, name) for app in stax_suite.PROGRAMS for name in stax_suite.by_hand(app)]
WIDE = Target(
    "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx2,+fma,+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512cd", 64, 2
)
NARROW = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+f16c", 32, 2)


def max_plus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a[:, :, None] + b[None]).max(axis=1, initial=-np.inf)


PRODUCTS: dict[str, tuple[Callable[[], sx.Func], Callable[..., Any]]] = {
    "sgemm": (algebra.sgemm, lambda a, b: a @ b),
    "sgemm_avx2": (algebra.sgemm, lambda a, b: a @ b),
    "transposed_sgemm": (algebra.transposed_sgemm, lambda a, b: a.T @ b),
    "max_plus": (algebra.max_plus, max_plus),
}


def path(name: str) -> Path:
    return stax_suite.SCHEDULES / f"{name}.stax"


@pytest.mark.parametrize(("app", "name"), BY_HAND)
def test_a_schedule_by_hand_is_legal_and_right(app: str, name: str) -> None:
    """At the small size, whose extents are no multiples of anything, on one thread and several."""
    one = apps.APPS[app]
    params = one.params("small")
    inputs = one.make(params)
    wanted = one.ref(inputs, params)
    for threads in (1, 3):
        got = stax_suite.build(app, inputs, params, name, threads=threads)()
        assert one.check(got, wanted) is None


@pytest.mark.parametrize("app", stax_suite.PROGRAMS)
def test_an_automatic_schedule_is_legal_and_right(app: str) -> None:
    """At the small size, though it was written for the full one."""
    one = apps.APPS[app]
    params = one.params("small")
    inputs = one.make(params)
    assert one.check(stax_suite.build(app, inputs, params, "auto")(), one.ref(inputs, params)) is None


@pytest.mark.parametrize("file", sorted(p.name for p in stax_suite.SCHEDULES.glob("*.stax") if ".auto" not in p.name))
def test_a_schedule_by_hand_fits_its_program(file: str) -> None:
    """Nothing to warn of, and the file is what is printed; a product of matrices needs no more than 25 lines of it."""
    programs = {
        p.name: stax_suite.PROGRAMS[app] for app in stax_suite.PROGRAMS for p in stax_suite.by_hand(app).values()
    }
    programs |= {f"{name}.stax": make for name, make in stax_suite.MORE.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = sx.Schedule.load(stax_suite.SCHEDULES / file, programs[file]())
    text = (stax_suite.SCHEDULES / file).read_text(encoding="utf-8")
    assert str(s) == text
    assert len(text.splitlines()) <= 25 or file.removesuffix(".stax") not in PRODUCTS


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shape", [(37, 37, 37), (1, 1, 1), (6, 3, 64), (13, 50, 131), (70, 1, 5), (3, 0, 9)])
def test_products_of_any_size(name: str, shape: tuple[int, int, int]) -> None:
    """Whole tiles, partial ones, none at all, and nothing to add up."""
    make, numpy = PRODUCTS[name]
    m, k, n = shape
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-5, 6, s).astype(np.float32) for s in ((k, m) if "transposed" in name else (m, k), (k, n)))
    program = make()
    for threads in (1, 3):
        got = sx.compile(program, sx.Schedule.load(path(name), program), strict_native=True)(a, b, threads=threads)
        np.testing.assert_array_equal(got, numpy(a, b))


def inner_loops(asm: str) -> Iterator[list[str]]:
    """Yield the instructions of each loop of `asm` that has no other inside."""
    lines = [line.strip() for line in asm.splitlines()]
    at = {line[:-1]: k for k, line in enumerate(lines) if line.endswith(":")}
    for k, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\.LBB\w+)$", line)
        start = at.get(jump[1], k) if jump else k
        if start < k and not any(x.startswith(".LBB") for x in lines[start + 1 : k]):
            yield lines[start + 1 : k]


@pytest.mark.parametrize(
    ("name", "target", "word", "register", "accumulators"),
    [
        ("sgemm", WIDE, "vfmadd", "%zmm", 24),
        ("transposed_sgemm", WIDE, "vfmadd", "%zmm", 24),
        ("max_plus", WIDE, "vmaxps", "%zmm", 24),
        ("sgemm_avx2", NARROW, "vfmadd", "%ymm", 12),
    ],
)
def test_accumulators_stay_in_registers(name: str, target: Target, word: str, register: str, accumulators: int) -> None:
    """The steady loop over k: as many vector operations as the tile has vectors, nothing stored, no stack touched."""
    program = PRODUCTS[name][0]()
    kernel = sx.compile(program, sx.Schedule.load(path(name), program), target=target)
    steady = [
        loop for loop in inner_loops(kernel.source("asm"))
        if sum(word in x and register in x for x in loop) == accumulators
    ]  # fmt: skip
    assert any(not any("(%rsp" in x or re.search(r"vmov\w+\s+%[xyz]mm\d+, .*\(", x) for x in loop) for loop in steady)
    if name == "sgemm":
        assert min(map(len, steady)) <= accumulators + 22


def test_every_file_belongs_to_a_program() -> None:
    used = {p for app in stax_suite.PROGRAMS for p in stax_suite.by_hand(app).values()}
    used |= {stax_suite.by_machine(app) for app in stax_suite.PROGRAMS}
    assert used | {path(name) for name in stax_suite.MORE} == set(stax_suite.SCHEDULES.glob("*.stax"))
