"""The arguments of a call: what is taken as it is, and what is refused, in which words."""

from __future__ import annotations

import array as arrays
import math
from typing import Any

import numpy as np
import pytest

from stax import dtypes
from stax.algorithm.nodes import Input, Scalar, Table
from stax.backends.artifact import Facts
from stax.errors import ArgumentError, BoundsError, DeviceError, StaxError
from stax.expr import build
from stax.runtime.arguments import Arguments, facts_of
from stax.runtime.signature import Check, CheckKind, Output, Signature
from stax.source import Span
from tests.runtime.artifacts import array, number, param, size

F32 = dtypes.float32


def signature(*inputs: Input, **changes: Any) -> Signature:
    """By default one output `f` as large as the first input."""
    first = inputs[0] if inputs else None
    shape = tuple(size(first.name, k) for k in range(len(first.dims))) if first else ()
    made: dict[str, Any] = {
        "scalars": (),
        "tables": (),
        "outputs": (Output("f", (first.dtype if first else F32,), shape),),
        "name": "f",
    } | changes
    made["arguments"] = (*(i.name for i in inputs), *(s.name for s in made["scalars"]))
    return Signature(inputs=inputs, **made)


def message(error: pytest.ExceptionInfo[StaxError]) -> str:
    return str(error.value)


ONE = Arguments(signature(array("a", F32, 1)))
TWO = Arguments(signature(array("a", F32, 2)))
FLAT = np.arange(12, dtype=np.float32)


def test_an_output_is_allocated_in_the_inferred_shape() -> None:
    bound = TWO.bind([FLAT.reshape(3, 4)], {})
    assert (bound.results.shape, bound.results.dtype) == ((3, 4), np.float32)
    assert bound.sizes["a"] == bound.sizes["f"] == (3, 4)


@pytest.mark.parametrize(
    "view",
    [FLAT[::-1], FLAT[::3], np.broadcast_to(np.float32(2), (5,)), FLAT[:0], FLAT[3:4], FLAT.view(np.matrix).A1],
    ids=["negative", "strided", "zero", "empty", "one", "matrix"],
)
def test_any_strides_are_taken_without_a_copy(view: np.ndarray[Any, Any]) -> None:
    assert ONE.bind([view], {}).arrays["a"] is view


def test_fortran_order_and_read_only_inputs_are_taken() -> None:
    fortran = np.asfortranarray(FLAT.reshape(3, 4))
    fortran.flags.writeable = False
    assert TWO.bind([fortran], {}).arrays["a"] is fortran


def test_misaligned_arrays_are_taken() -> None:
    raw = np.zeros(41, np.uint8)[1:].view(np.float32)
    assert not raw.flags.aligned
    assert ONE.bind([raw], {}).arrays["a"] is raw
    assert ONE.bind([FLAT[:10]], {}, out=raw).results is raw


class Interface:
    def __init__(self, of: np.ndarray[Any, Any]) -> None:
        self.kept, self.__array_interface__ = of, of.__array_interface__


class Capsule:
    """DLPack on the CPU, and nothing else."""

    def __init__(self, of: np.ndarray[Any, Any]) -> None:
        self.kept = of

    def __dlpack__(self, **options: Any) -> Any:
        return self.kept.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize(
    "given",
    [
        arrays.array("f", [1, 2, 3]),
        memoryview(FLAT),
        bytearray(12),
        Interface(FLAT),
        Capsule(FLAT.copy()),
        np.memmap,
    ],
    ids=["array", "memoryview", "bytearray", "interface", "dlpack", "memmap"],
)
def test_other_arrays_are_viewed_and_not_copied(given: Any, tmp_path: Any) -> None:
    one = ONE
    if given is np.memmap:
        given = np.memmap(tmp_path / "m", np.float32, "w+", shape=(4,))
    if isinstance(given, bytearray):
        one = Arguments(signature(array("a", dtypes.uint8)))
    found = one.bind([given], {}).arrays["a"]
    whole = given.kept if hasattr(given, "kept") else np.asarray(given)
    assert type(found) is np.ndarray
    assert np.shares_memory(found, whole)


def test_other_arrays_may_be_written_and_are_returned() -> None:
    for out in (arrays.array("f", [0] * 12), memoryview(bytearray(48)).cast("f"), Interface(FLAT.copy())):
        assert ONE.bind([FLAT], {}, out=out).results is out


def test_scalar_inputs_of_no_dimension() -> None:
    zero = Arguments(signature(array("a", F32, 0)))
    assert zero.bind([np.float32(3)], {}).arrays["a"].shape == ()
    assert zero.bind([np.array(3, np.float32)], {}).results.shape == ()


def test_a_wrong_type_is_refused_with_the_remedy() -> None:
    span = Span("blur.py", 3)
    one = Arguments(signature(Input("img", F32, ("y", "x"), (None, None), span)))
    with pytest.raises(ArgumentError) as error:
        one.bind([np.zeros((3, 4))], {})
    assert message(error) == (
        "`img` has type float64, and the kernel takes float32\n"
        "  blur.py:3: declared here\n"
        "  hint: convert it with .astype(np.float32)"
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (FLAT.astype(">f4"), "not in this machine's byte order"),
        (FLAT.reshape(3, 4), "`a` has 2 dimensions, and the kernel takes 1 dimension"),
        (np.float32(1), "`a` has 0 dimensions"),
        ([1.0, 2.0], "`a` is of type list, and an array is needed"),
        (3.0, "`a` is of type float, and an array is needed"),
        (None, "`a` is of type NoneType"),
        (np.zeros(3, "f4,f4"), "has type"),
        (np.zeros(3, object), "has type object"),
        (np.zeros(3, "M8[s]"), "has type datetime64"),
        (np.zeros(3, np.complex64), "has type complex64"),
        (b"abc", "has type uint8"),
        ("abc", "`a` is of type str"),
        (np.ma.masked_array(FLAT, FLAT > 3), "masked"),
    ],
    ids=str,
)
def test_what_is_no_such_array_is_refused(given: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as error:
        ONE.bind([given], {})
    assert words in message(error)


class OnGpu:
    __cuda_array_interface__ = ()


class DlpackOnGpu:
    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("must not be asked")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


@pytest.mark.parametrize("given", [OnGpu(), DlpackOnGpu()])
def test_arrays_on_a_gpu_are_refused(given: object) -> None:
    with pytest.raises(ArgumentError, match=r"`a` lies on another device"):
        ONE.bind([given], {})
    with pytest.raises(ArgumentError, match=r"output `f` lies on another device"):
        ONE.bind([FLAT], {}, out=given)


def test_memory_that_cannot_be_viewed_is_refused() -> None:
    broken = Interface(FLAT)
    broken.__array_interface__ = {"version": 3, "shape": "?", "typestr": "<f4"}
    released = memoryview(FLAT)
    released.release()
    for given in (broken, released):
        with pytest.raises(ArgumentError, match="could not be viewed"):
            ONE.bind([given], {})


class TestNames:
    one = Arguments(
        signature(array("a", F32), array("b", F32), scalars=(Scalar("k", dtypes.int32), Scalar("m", F32, 0.5)))
    )

    def test_positions_and_names_are_the_same(self) -> None:
        for args, named in [
            ((FLAT, FLAT, 1), {}),
            ((FLAT,), {"b": FLAT, "k": 1}),
            ((), {"b": FLAT, "a": FLAT, "k": 1}),
        ]:
            assert self.one.bind(args, named).scalars == {"k": 1, "m": 0.5}

    @pytest.mark.parametrize(
        ("args", "named", "words"),
        [
            ((FLAT,), {"k": 1}, "input `b` was not given"),
            ((FLAT, FLAT), {}, "Param `k` was not given and has no default"),
            ((FLAT, FLAT, 1, 2, 3), {}, "5 positional arguments were given, and the kernel takes 4"),
            ((FLAT, FLAT, 1), {"a": FLAT}, "`a` was given twice"),
            ((FLAT, FLAT, 1), {"kk": 1}, "no argument `kk`"),
        ],
    )
    def test_a_call_that_does_not_match_shows_the_signature(self, args: Any, named: Any, words: str) -> None:
        with pytest.raises(ArgumentError) as error:
            self.one.bind(args, named)
        assert words in message(error)
        assert "f(a: float32[d0], b: float32[d0], k: int32, m: float32 = 0.5) -> f: float32[a.shape[0]]" in message(
            error
        )

    def test_a_misspelt_name_is_guessed(self) -> None:
        with pytest.raises(ArgumentError, match="did you mean `k`"):
            self.one.bind((FLAT, FLAT), {"kk": 1})


def scalar(dtype: dtypes.DType, value: Any, **limits: Any) -> Any:
    return Arguments(signature(scalars=(Scalar("k", dtype, **limits),))).bind([value], {}).scalars["k"]


@pytest.mark.parametrize(
    ("dtype", "given", "found"),
    [
        (dtypes.int8, -128, -128),
        (dtypes.uint64, 2**64 - 1, 2**64 - 1),
        (dtypes.int32, np.int64(7), 7),
        (dtypes.int32, np.array(7), 7),
        (F32, 0.1, float(np.float32(0.1))),
        (F32, 3, 3.0),
        (F32, np.float64(0.5), 0.5),
        (F32, math.inf, math.inf),
        (dtypes.float16, 65504, 65504.0),
        (dtypes.bool_, True, True),
        (dtypes.bool_, np.bool_(False), False),
    ],
)
def test_scalars_that_fit_are_taken(dtype: dtypes.DType, given: Any, found: Any) -> None:
    assert scalar(dtype, given) == found
    assert type(scalar(dtype, given)) is type(found)


def test_nan_is_a_float() -> None:
    assert math.isnan(scalar(F32, math.nan))


@pytest.mark.parametrize(
    ("dtype", "given", "words"),
    [
        (dtypes.int8, 128, "is 128, which does not fit into int8"),
        (dtypes.uint8, -1, "does not fit into uint8"),
        (dtypes.uint64, 2**64, "does not fit into uint64"),
        (dtypes.int32, 1.0, "is of type float, and the kernel takes int32"),
        (dtypes.int32, np.float32(1), "is of type float32"),
        (dtypes.int32, True, "is of type bool"),
        (dtypes.int32, "1", "is of type str"),
        (dtypes.int32, None, "is of type NoneType"),
        (dtypes.int32, np.zeros(2, np.int32), "is of type ndarray"),
        (dtypes.bool_, 1, "is of type int, and the kernel takes bool"),
        (F32, 1e39, "does not fit into float32"),
        (F32, 10**400, "does not fit into float32"),
        (F32, 1j, "is of type complex"),
        (F32, True, "is of type bool"),
        (dtypes.float16, 70000, "does not fit into float16"),
    ],
)
def test_scalars_that_do_not_fit_are_refused(dtype: dtypes.DType, given: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as error:
        scalar(dtype, given)
    assert words in message(error)


def test_limits_of_a_param_hold() -> None:
    assert scalar(F32, 1, low=0, high=1) == 1
    for bad in (-0.5, 1.5, math.nan):
        with pytest.raises(ArgumentError, match=r"outside its limits 0\.\.1"):
            scalar(F32, bad, low=0, high=1)
    with pytest.raises(ArgumentError, match=r"is 0, outside its limits 1\.\."):
        scalar(dtypes.int32, 0, low=1)


def test_declared_extents_hold() -> None:
    same = array("b", F32, 2, (size("a", 0), build.add(size("a", 1), number(1))))
    one = Arguments(signature(array("a", F32, 2), same))
    one.bind([np.zeros((3, 4), np.float32), np.zeros((3, 5), np.float32)], {})
    with pytest.raises(ArgumentError, match=r"`b` has extent 4 in dimension 1, and is declared to have 5"):
        one.bind([np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)], {})


def test_an_empty_box_where_the_inputs_serve_nothing() -> None:
    shape = (build.sub(size("a"), number(2)),)
    one = Arguments(signature(array("a", F32), outputs=(Output("f", (F32,), shape),)))
    assert [one.bind([FLAT[:n]], {}).results.shape for n in range(5)] == [(0,), (0,), (0,), (1,), (2,)]


class TestShape:
    free = Arguments(signature(array("a", F32), outputs=(Output("f", (F32,), (size("a"), None), ("y", "x")),)))

    def test_what_nothing_bounds_must_be_given(self) -> None:
        with pytest.raises(ArgumentError) as error:
            self.free.bind([FLAT], {})
        assert "nothing says how far `f` extends in dimension 1 (x)" in message(error)
        assert "give shape= or out= at the call" in message(error)

    def test_shape_or_out_gives_it(self) -> None:
        assert self.free.bind([FLAT], {}, shape=(None, 3)).results.shape == (12, 3)
        assert self.free.bind([FLAT], {}, shape=(2, 3)).results.shape == (2, 3)
        assert self.free.bind([FLAT], {}, out=np.zeros((4, 5), np.float32)).sizes["f"] == (4, 5)

    @pytest.mark.parametrize(
        ("shape", "words"),
        [
            ((2,), "shape= has 1 entries, and `f` has 2 dimensions"),
            ((2, -1), "extent -1 of `f`, which is negative"),
            ((2, 1.5), "not an integer"),
            ("ab", "shape= has 1 entries"),
        ],
    )
    def test_a_wrong_shape_is_refused(self, shape: Any, words: str) -> None:
        with pytest.raises(ArgumentError) as error:
            self.free.bind([FLAT], {}, shape=shape)
        assert words in message(error)

    def test_shape_and_out_must_agree(self) -> None:
        with pytest.raises(ArgumentError, match=r"has shape \(4, 5\), and \(4, 6\) is needed"):
            self.free.bind([FLAT], {}, shape=(4, 6), out=np.zeros((4, 5), np.float32))

    def test_a_single_number_is_a_shape_of_one_dimension(self) -> None:
        assert ONE.bind([FLAT], {}, shape=5).results.shape == (5,)

    def test_more_than_there_is_memory_for(self) -> None:
        with pytest.raises(DeviceError, match="no memory for output `f`"):
            self.free.bind([FLAT], {}, shape=(2**40, 2**20))
        with pytest.raises(DeviceError, match="no memory for output `f`"):
            self.free.bind([FLAT], {}, shape=(2**70, 0))


class TestOutputs:
    several = Arguments(
        signature(
            array("a", F32),
            outputs=(Output("f", (F32,), (size("a"),)), Output("g", (F32, dtypes.int64), (number(3),))),
        )
    )

    def test_tuples_come_out(self) -> None:
        f, (g0, g1) = self.several.bind([FLAT], {}).results
        assert [(x.shape, x.dtype.name) for x in (f, g0, g1)] == [
            ((12,), "float32"), ((3,), "float32"), ((3,), "int64"),
        ]  # fmt: skip

    def test_the_parts_are_buffers_of_one_size(self) -> None:
        bound = self.several.bind([FLAT], {})
        assert set(bound.arrays) == {"a", "f", "g′0", "g′1"}
        assert bound.sizes["g"] == bound.sizes["g′1"] == (3,)

    def test_tuples_go_in_and_none_is_allocated(self) -> None:
        f, g1 = np.zeros(12, np.float32), np.zeros(3, np.int64)
        result = self.several.bind([FLAT], {}, out=(f, (None, g1))).results
        assert result[0] is f
        assert result[1][1] is g1
        assert result[1][0].shape == (3,)

    def test_shapes_are_for_each_or_for_all(self) -> None:
        assert self.several.bind([FLAT], {}, shape=((5,), None)).sizes["f"] == (5,)
        assert self.several.bind([FLAT], {}, shape=(2,)).sizes["g"] == (2,)

    @pytest.mark.parametrize(
        ("out", "words"),
        [
            (FLAT, "a tuple of 2 is needed, one for each of the 2 outputs"),
            ((FLAT,), "a tuple of 2 is needed"),
            ((None, FLAT), "one for each of the 2 parts of `g`"),
            (
                (None, (np.zeros(3, np.float32), np.zeros(4, np.int64))),
                "output `g′1` has shape (4,), and (3,) is needed",
            ),
            ((None, (None, np.zeros(3, np.int32))), "output `g′1` has type int32, and the kernel gives int64"),
            ((np.zeros((3, 4), np.float32), None), "output `f` has 2 dimensions, and `f` has 1 dimension"),
        ],
    )
    def test_what_does_not_match_is_refused(self, out: Any, words: str) -> None:
        with pytest.raises(ArgumentError) as error:
            self.several.bind([FLAT], {}, out=out)
        assert words in message(error)

    def test_a_read_only_output_is_refused(self) -> None:
        fixed = np.zeros(12, np.float32)
        fixed.flags.writeable = False
        for out in (fixed, bytes(48), np.broadcast_to(np.float32(0), (12,))):
            with pytest.raises(ArgumentError, match=r"read-only|has type uint8"):
                ONE.bind([FLAT], {}, out=out)

    @pytest.mark.parametrize(
        ("shape", "strides", "refused"),
        [
            ((4,), (0,), True), ((1,), (0,), False), ((0,), (0,), False), ((4,), (2,), True), ((4,), (-4,), False),
            ((3, 4), (4, 4), True), ((3, 4), (16, 4), False), ((3, 4), (4, 12), False), ((3, 4), (12, 4), True),
            ((2, 2), (8, 12), False), ((1024, 2048), (4, 8), True),
        ],
    )  # fmt: skip
    def test_an_output_that_overlaps_itself_is_refused(self, shape: Any, strides: Any, refused: bool) -> None:
        memory = np.zeros(1 << 15, np.float32)
        out = np.lib.stride_tricks.as_strided(memory[64:], shape, strides)
        one = ONE if len(shape) == 1 else TWO
        given = np.zeros(shape, np.float32)
        if refused:
            with pytest.raises(ArgumentError, match="elements that share memory"):
                one.bind([given], {}, out=out)
        else:
            assert one.bind([given], {}, out=out).results is out


class TestOverlap:
    pair = Arguments(signature(array("a", F32), outputs=(Output("f", (F32, F32), (number(4),)),)))

    def test_an_output_that_shares_memory_with_an_input_is_refused(self) -> None:
        memory = FLAT.copy()
        for out in (memory, memory[::-1]):
            with pytest.raises(ArgumentError, match="output `f` shares memory with input `a`"):
                ONE.bind([memory], {}, out=out)
        with pytest.raises(ArgumentError, match="shares memory"):
            ONE.bind([memory[1:]], {}, out=memory[:-1])

    def test_interleaved_arrays_do_not_overlap(self) -> None:
        memory = FLAT.copy()
        assert ONE.bind([memory[::2]], {}, out=memory[1::2]).results.base is memory

    def test_a_copy_is_made_where_asked(self) -> None:
        memory = FLAT.copy()
        bound = ONE.bind([memory], {}, out=memory, overlap="copy")
        assert bound.results is memory
        assert not np.shares_memory(bound.arrays["a"], memory)
        assert (bound.arrays["a"] == FLAT).all()

    def test_outputs_that_overlap_each_other_are_refused_even_so(self) -> None:
        memory = np.zeros(6, np.float32)
        with pytest.raises(ArgumentError, match=r"outputs `f′0` and `f′1` share memory"):
            self.pair.bind([FLAT], {}, out=(memory[:4], memory[2:]), overlap="copy")

    def test_the_word_is_checked(self) -> None:
        with pytest.raises(ArgumentError, match="overlap is 'copied'"):
            ONE.bind([FLAT], {}, overlap="copied")


def check(kind: CheckKind, lo: int, hi: int, span: Span | None = None) -> Check:
    inside = build.both(build.less_equal(number(0), number(lo)), build.less(number(hi), size("a")))
    return Check(inside, kind, "a", 0, number(lo), number(hi), size("a"), "blur_x", span)


class TestChecks:
    @pytest.mark.parametrize(
        ("lo", "hi", "n", "words"),
        [
            (0, 12, 12, "`blur_x` reads `a` outside its dimension 0: it needs 0 to 12, there is 0 to 11"),
            (-1, 3, 12, "`blur_x` reads `a` outside its dimension 0: it needs -1 to 3, there is 0 to 11"),
            (0, 0, 0, "`blur_x` reads `a` outside its dimension 0: it needs 0 to 0, there is nothing"),
        ],
    )
    def test_a_read_outside_says_all(self, lo: int, hi: int, n: int, words: str) -> None:
        one = Arguments(signature(array("a", F32), checks=(check(CheckKind.READ, lo, hi, Span("blur.py", 7)),)))
        with pytest.raises(BoundsError) as error:
            one.bind([FLAT[:n]], {}, shape=(12,))
        assert message(error).splitlines()[0] == words
        assert "blur.py:7: this read" in message(error)
        assert "sx.pad(a, ...)" in message(error)

    def test_an_empty_output_reads_nothing(self) -> None:
        """The region of a stencil's producer is not empty where that of the stencil is."""
        one = Arguments(signature(array("a", F32), checks=(check(CheckKind.READ, 0, 1),)))
        bound = one.bind([FLAT[:0]], {})
        assert bound.empty
        assert bound.results.shape == (0,)

    def test_a_read_inside_passes(self) -> None:
        one = Arguments(signature(array("a", F32), checks=(check(CheckKind.READ, 0, 11),)))
        one.bind([FLAT], {})

    def test_the_first_failing_check_is_told(self) -> None:
        checks = (check(CheckKind.READ, 0, 3), check(CheckKind.READ, 0, 30), check(CheckKind.READ, 0, 40))
        with pytest.raises(BoundsError, match="0 to 30"):
            Arguments(signature(array("a", F32), checks=checks)).bind([FLAT], {})

    def test_the_other_kinds(self) -> None:
        for kind, words in [
            (CheckKind.WRITE, "`blur_x` may write `a` outside its dimension 0: it reaches 0 to 30, there is 0 to 11"),
            (CheckKind.EXTENT, "`a` has extent 12 in dimension 0, and 0 to 30 is needed"),
        ]:
            with pytest.raises(BoundsError) as error:
                Arguments(signature(array("a", F32), checks=(check(kind, 0, 30),))).bind([FLAT], {})
            assert message(error).splitlines()[0] == words

    def test_inputs_must_agree_on_an_extent_only_where_the_call_does_not_say_it(self) -> None:
        one = Check(
            build.binary(build.Op.EQ, number(0), number(30)),
            CheckKind.AGREE,
            "a",
            0,
            number(0),
            number(30),
            size("f"),
            "f",
        )
        made = Arguments(signature(array("a", F32), checks=(one,)))
        with pytest.raises(BoundsError, match=r"serve `f` to different extents in dimension 0.*: 0, and 30 by `a`"):
            made.bind([FLAT], {})
        made.bind([FLAT], {}, shape=12)
        made.bind([FLAT], {}, out=np.zeros(12, np.float32))

    def test_checks_see_the_shape_of_the_output_and_params(self) -> None:
        last = build.add(size("f"), param("k"))
        one = Check(build.less_equal(last, size("a")), CheckKind.READ, "a", 0, number(0), last, size("a"), "f")
        made = Arguments(signature(array("a", F32), scalars=(Scalar("k", dtypes.int64, 0),), checks=(one,)))
        made.bind([FLAT], {})
        made.bind([FLAT, 2], {}, shape=10)
        for args, options in [((FLAT, 1), {}), ((FLAT,), {"shape": 13}), ((FLAT, 2**63 - 1), {})]:
            with pytest.raises(BoundsError):
                made.bind(args, {}, **options)


class TestOrigin:
    moved = Arguments(
        signature(array("a", F32), outputs=(Output("f", (F32,), (size("a"),), ("x",), origin=("f.origin.0",)),))
    )

    def test_it_is_a_scalar_named_by_the_compiler(self) -> None:
        assert self.moved.bind([FLAT], {}).scalars == {"f.origin.0": 0}
        assert self.moved.bind([FLAT], {}, origin=(-3,)).scalars == {"f.origin.0": -3}
        assert self.moved.bind([FLAT], {}, origin=5).scalars == {"f.origin.0": 5}

    def test_it_is_refused_where_it_is_fixed(self) -> None:
        with pytest.raises(ArgumentError, match="the origin of `f` is fixed at index 0"):
            ONE.bind([FLAT], {}, origin=(1,))


def test_nothing_is_written_by_a_refused_call() -> None:
    one = Arguments(signature(array("a", F32), checks=(check(CheckKind.READ, 0, 30),)))
    out = np.full(12, 7, np.float32)
    with pytest.raises(BoundsError):
        one.bind([FLAT], {}, out=out)
    assert (out == 7).all()


def test_tables_are_arrays_too() -> None:
    table = np.arange(3, dtype=np.int8)
    bound = Arguments(signature(array("a", F32), tables=(Table("t", dtypes.int8, table),))).bind([FLAT], {})
    assert bound.arrays["t"] is table
    assert bound.sizes["t"] == (3,)


def test_facts_of_layouts() -> None:
    raw = np.zeros(49, np.uint8)
    seen = {
        "plain": FLAT, "rows": FLAT.reshape(3, 4)[::-1], "stepped": FLAT[::2], "turned": FLAT.reshape(3, 4).T,
        "odd": raw[1:].view(np.float32), "column": FLAT.reshape(3, 4)[:, :1], "none": FLAT[:0],
        "point": FLAT[0:1].reshape(()),
        "fields": np.zeros(5, "u1,f4")["f1"],
    }  # fmt: skip
    facts = facts_of(seen.items())
    assert facts == Facts(
        frozenset({"plain", "rows", "odd", "column", "none", "point"}),
        frozenset({"plain", "rows", "stepped", "turned", "column", "none", "point"}),
    )
