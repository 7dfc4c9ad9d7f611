"""A Pipeline as text that can be read, compared and digested.

    input a: uint16[d0, d1]

    bx[y, x]: uint16
        bx[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) // 3u16

    output bx(a)

Equal programs give equal text. It is linear in the size of the program: `$1 = ...` names an expression that is used
again, or is long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from stax.algorithm.nodes import Func, Input, Pipeline, Scalar, Table, Update
from stax.expr.nodes import Expr
from stax.expr.show import Shower, constant

_INDENT = "    "


def show(pipeline: Pipeline) -> str:
    """Return `pipeline` as text, ending with a newline."""
    lines = [_input(a) for a in pipeline.inputs]
    lines += [_scalar(s) for s in pipeline.scalars]
    lines += [_table(t) for t in pipeline.tables]
    for f in pipeline.funcs:
        lines += ["", *_func(f)]
    lines.append("")
    lines += [f"group {', '.join(g)}" for g in pipeline.groups]
    lines.append(f"output {', '.join(pipeline.outputs)}({', '.join(pipeline.arguments)})")
    for name, shape in zip(pipeline.outputs, pipeline.shapes, strict=False):
        if shape is not None:
            lines.append(f"{name}.shape = ({', '.join(_plain(shape, lines))})")
    return "\n".join(lines).lstrip("\n") + "\n"


def _func(f: Func) -> list[str]:
    head = f"{f.name}[{', '.join(f.dims)}]: {', '.join(t.name for t in f.dtypes)}"
    lines: list[str] = []
    if any(e is not None for e in f.shape):
        head += f" shape ({', '.join('None' if e is None else _plain([e], lines)[0] for e in f.shape)})"
    if f.backwards:
        head += f" backwards {', '.join(d for d in f.dims if d in f.backwards)}"
    if f.where is not None:
        head += f" where {_plain([f.where], lines)[0]}"
    if f.fp != "default":
        head += f" fp {f.fp}"
    shower = Shower()
    values = shower.texts(f.values, lines)
    lines.append(f"{f.name}[{', '.join(f.dims)}] = {_values(values)}")
    out = [*lines]
    for u in f.updates:
        out += _update(f, u, shower)
    return [head, *(_INDENT + line for line in out)]


def _update(f: Func, u: Update, shower: Shower) -> list[str]:
    lines: list[str] = []
    bounds = [e for r in u.domain for e in (r.lo, r.hi)]
    roots = [*bounds, *([] if u.where is None else [u.where]), *u.index, *u.values]
    texts = iter(shower.texts(roots, lines))
    ranges = [f"{r.name} in {next(texts)} .. {next(texts)}" for r in u.domain]
    where = "" if u.where is None else f" where {next(texts)}"
    index = [next(texts) for _ in u.index]
    loops = f" for {', '.join(ranges)}" if ranges else ""
    return [*lines, f"{f.name}[{', '.join(index)}] = {_values(list(texts))}{loops}{where}"]


def _values(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _input(a: Input) -> str:
    dims = [d if e is None else f"{d} = {_plain([e], [])[0]}" for d, e in zip(a.dims, a.sizes, strict=True)]
    return f"input {a.name}: {a.dtype.name}[{', '.join(dims)}]"


def _scalar(s: Scalar) -> str:
    facts = [f" {word} {constant(v, s.dtype, typed=False)}" for word, v in
             (("default", s.default), ("low", s.low), ("high", s.high)) if v is not None]  # fmt: skip
    return f"param {s.name}: {s.dtype.name}{''.join(facts)}"


def _table(t: Table) -> str:
    digest = hashlib.sha256(t.array.tobytes()).hexdigest()[:16]
    return f"table {t.name}: {t.dtype.name}{list(t.array.shape)} {digest}"


def _plain(exprs: Sequence[Expr], lines: list[str]) -> list[str]:
    return Shower().texts(exprs, lines)
