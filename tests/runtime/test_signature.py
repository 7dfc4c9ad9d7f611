"""A signature is one line of text, and names its dimensions and buffers."""

import stax as sx
from stax import dtypes
from stax.algorithm.nodes import Input, Scalar
from stax.expr import build
from stax.expr.nodes import Expr
from stax.runtime.signature import Output, Signature, size_text
from tests.runtime.artifacts import number, param, size


def test_it_prints_what_goes_in_and_out() -> None:
    img = Input("img", dtypes.uint16, ("y", "x"), (None, number(3)))
    rows = build.floordiv(build.sub(size("img", 0), number(2)), number(2))
    outputs = (
        Output("f", (dtypes.uint16,), (rows, None)),
        Output("g", (dtypes.int32, dtypes.float32), (build.minimum(param("n"), size("img", 1)),)),
    )
    scalars = (Scalar("n", dtypes.int64, low=1), Scalar("on", dtypes.bool_, True))
    assert str(Signature((img,), scalars, (), outputs, ("n", "img", "on"), (), "blur")) == (
        "blur(n: int64 in 1.., img: uint16[y, x=3], on: bool = True) -> "
        "f: uint16[(img.shape[0] - 2) // 2, ?], "
        "g: (int32[min(n, img.shape[1])], float32[min(n, img.shape[1])])"
    )


def test_buffers_of_parts_are_numbered() -> None:
    assert Output("f", (dtypes.int8,), ()).buffers == ("f",)
    assert Output("f", (dtypes.int8, dtypes.int8), ()).buffers == ("f′0", "f′1")


def test_dimensions_are_named_where_the_user_named_them() -> None:
    img = Input("img", dtypes.uint16, ("d0", "x"), (None, None))
    one = Signature((img,), (), (), (Output("f", (dtypes.int8,), (None,), ("y",)),), ("img",))
    words = [one.dim(*at) for at in (("img", 0), ("img", 1), ("f", 0), ("other", 2))]
    assert words == ["dimension 0", "dimension 1 (x)", "dimension 0 (y)", "dimension 2"]


def test_a_huge_size_is_cut() -> None:
    """Shared sixty times over it would print 2**60 names."""
    shared: Expr = size("a")
    for _ in range(60):
        shared = build.add(shared, shared)
    assert len(size_text(shared)) < 2000


def test_a_signature_at_a_prompt_is_one_line() -> None:
    x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
    f[x] = a[x] * 2
    assert repr(sx.compile(f).signature) == "f(a: int32[d0]) -> f: int32[a.shape[0]]"
