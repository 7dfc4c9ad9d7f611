"""Random programs, as text of the language: the same seed gives the same text.

A program is drawn so that it means something at every size: each Func says from which index on it can be asked
(`floors`) and up to where (`ceils`), and what reads it keeps to that, by its index alone or by a condition. Inputs
have no upper end: `compare` gives them the extents that the program asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeAlias

INTS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = (*INTS, *FLOATS)
ALL = ("bool", *NUMBERS)
DIMS = ("z", "y", "x")
WHOLE_SUM = "sum of whole numbers"

ONE = (
    "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "erf", "sigmoid",
)  # fmt: skip
TWO = ("atan2", "hypot", "pow", "copysign")
WHOLE = ("floor", "ceil", "trunc", "rint", "sign")
FIXED = ("saturating_add", "saturating_sub", "rounding_average", "mul_high")


@dataclass(eq=False, slots=True)
class Term:
    """A piece of program text with what can be put in its place: terms of the same `dtype`."""

    dtype: str
    parts: list[str | Term]

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def terms(self) -> Iterator[Term]:
        """Yield the terms inside, outermost first, this one included."""
        yield self
        for part in self.parts:
            if isinstance(part, Term):
                yield from part.terms()


Piece: TypeAlias = "str | Term"


@dataclass(frozen=True, slots=True)
class Name:
    """A variable: its text, and the smallest and greatest value it takes, where they are known."""

    text: str
    lo: int | None = 0
    hi: int | None = None


@dataclass(eq=False, slots=True)
class Source:
    """What can be read: `floors` and `ceils` are the first and last index, a dim; None where there is no end."""

    text: str
    dtypes: tuple[str, ...]
    floors: list[int | None]
    ceils: list[int | None]
    sizes: list[str | None]
    kind: str = "func"


@dataclass(eq=False, slots=True)
class Scope:
    """What an expression may use: variables, and how many operations are still to be drawn."""

    names: list[Name]
    depth: int = 3
    reductions: bool = True
    words: list[str] = field(default_factory=list)


Kind = Callable[[], str | None]


@dataclass(eq=False, slots=True)
class InputSpec:
    name: str
    dtype: str
    least: list[int]


@dataclass(eq=False, slots=True)
class ParamSpec:
    name: str
    dtype: str
    value: Any


@dataclass(eq=False, slots=True)
class Drawn:
    """A program: `lines` make the names `outputs`; `shapes` is what to ask for, where nothing is declared."""

    seed: int
    lines: list[Term] = field(default_factory=list)
    inputs: list[InputSpec] = field(default_factory=list)
    params: list[ParamSpec] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    fp: str = "default"
    words: dict[str, set[str]] = field(default_factory=dict)
    recurrences: bool = False
    aim: str = ""

    @property
    def whole(self) -> frozenset[str]:
        """The Funcs that are float sums of whole numbers."""
        return frozenset(name for name, words in self.words.items() if WHOLE_SUM in words)

    def text(self) -> str:
        """Return the program as Python."""
        return "\n".join(map(str, self.lines)) + "\n"


def draw(seed: int) -> Drawn:
    """Return the program of `seed`."""
    return Drawer(seed).program()


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def limits(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Drawer:
    """Draws one program; `kinds` are the Funcs that it may have, with their weights."""

    def __init__(self, seed: int) -> None:
        self.r = Random(f"stax {seed}")
        self.out = Drawn(seed)
        self.sources: list[Source] = []
        self.count = 0
        self.heavy = 3
        self.current: set[str] = set()
        self.seldom: list[str] = []
        self.out.fp = self.r.choice(("default", "default", "strict"))
        self.types = self.r.sample(NUMBERS, 2) + self.r.sample(("bool", "float32", "int32", "uint8"), 1)
        self.extents = [self._extent() for _ in range(3)]

    def _extent(self) -> int:
        return self.r.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17))

    # -------------------------------------------------------------------------------------------------- the program

    def program(self) -> Drawn:
        r = self.r
        for _ in range(r.randint(1, 2)):
            self.input(r.choice(self.types), r.choice((1, 1, 2, 2, 2, 3)))
        if r.random() < 0.5:
            self.param(r.choice(self.types))
        if r.random() < 0.2:
            self.table()
        kinds = self.kinds()
        made: list[str] = []
        for _ in range(r.choice((1, 2, 2, 3, 3, 4, 5))):
            kind = r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
            self.current = set()
            name = kind()
            if name is not None:
                self.out.words[name] = self.current | self.out.words.get(name, set())
                made.append(name)
        self.current = set()
        if not made or r.random() < 0.5:
            name = self.pure()
            self.out.words[name] = self.current
            made.append(name)
        self.outputs(made)
        return self.out

    def kinds(self) -> tuple[tuple[Kind, int], ...]:
        from tests.differential import recurring

        return (
            (self.pure, 10), (self.reduction, 4), (self.pure_update, 2), (self.scatter, 3), (self.recurrence, 3),
            (self.group, 1), (self.tuple_func, 2), (self.lookup, 1), (self.part_update, 1),
            (self.padded, 6), (self.monoid, 1), (self.position, 2), (self.rare, 8), (self.converted, 3),
            (partial(recurring.triangle, self), 2), (partial(recurring.keeping, self), 1),
            (partial(recurring.skewed, self), 1), (partial(recurring.lagging, self), 1), (self.whole_sum, 4),
        )  # fmt: skip

    def outputs(self, made: list[str]) -> None:
        r = self.r
        chosen = [made[-1]]
        others = [m for m in made[:-1] if self._servable(m)]
        if others and r.random() < 0.6:
            chosen += r.sample(others, min(len(others), r.choice((1, 1, 2))))
        chosen += [m for m in self.seldom if m not in chosen and r.random() < 0.8]
        self.out.outputs = chosen
        for name in chosen:
            source = next(s for s in self.sources if s.text == name)
            shape: list[int] = []
            rank = len(source.floors)
            for d in range(rank):
                ceil = source.ceils[d]
                extent = self.extents[(d + 3 - rank) % 3]
                if rank <= 2 and d == rank - 1 and r.random() < 0.15:
                    extent = r.choice((15, 16, 17, 31, 32, 33, 63, 64, 65))
                if rank == 2 and d == 0 and r.random() < 0.1:
                    extent = r.choice((31, 32, 33, 40, 65))
                if rank == 1 and r.random() < 0.04:
                    extent = r.choice((511, 16383, 16385, 17000))
                shape.append(extent if ceil is None else ceil + 1)
            self.out.shapes[name] = tuple(shape)

    def _servable(self, name: str) -> bool:
        source = next(s for s in self.sources if s.text == name)
        return all(f is None or f <= 0 for f in source.floors)

    def say(self, *parts: Piece) -> None:
        self.out.lines.append(Term("line", list(parts)))

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def word(self, *words: str) -> None:
        self.current |= set(words)

    # ------------------------------------------------------------------------------------------- inputs and the like

    def input(self, dtype: str, rank: int) -> Source:
        name = self.fresh("a")
        self.say(f'{name} = sx.Input("{name}", {type_text(dtype)}, {rank})')
        self.out.inputs.append(InputSpec(name, dtype, [0] * rank))
        made = Source(name, (dtype,), [0] * rank, [None] * rank, [f"{name}.shape[{d}]" for d in range(rank)], "input")
        self.sources.append(made)
        return made

    def param(self, dtype: str) -> str:
        name = self.fresh("p")
        value: Any = self.value(dtype)
        self.say(f'{name} = sx.Param("{name}", {type_text(dtype)})')
        self.out.params.append(ParamSpec(name, dtype, value))
        return name

    def size_param(self) -> tuple[str, int]:
        name, value = self.fresh("n"), self.r.randint(1, 12)
        self.say(f'{name} = sx.Param("{name}", sx.int64, low=1, high=64)')
        self.out.params.append(ParamSpec(name, "size", value))
        return name, value

    def table(self) -> None:
        r = self.r
        name, dtype = self.fresh("t"), r.choice(self.types)
        shape = [r.randint(1, 9) for _ in range(r.choice((1, 1, 2)))]
        count = math.prod(shape)
        values = ", ".join(_number(self.value(dtype)) for _ in range(count))
        kind = "bool" if dtype == "bool" else dtype
        self.say(f'{name} = sx.Const("{name}", np.array([{values}], "{kind}").reshape({tuple(shape)}))')
        ceils: list[int | None] = [n - 1 for n in shape]
        self.sources.append(Source(name, (dtype,), [0] * len(shape), ceils, [str(n) for n in shape], "table"))

    def value(self, dtype: str) -> Any:
        """Return a number of a type, as Python has it."""
        r = self.r
        if dtype == "bool":
            return r.random() < 0.5
        if dtype in FLOATS:
            special = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, math.inf, -math.inf, math.nan, 1e-5, 6e4)
            return r.choice(special) if r.random() < 0.3 else round(r.uniform(-8, 8), 3)
        low, high = limits(dtype)
        if r.random() < 0.2:
            return r.choice((low, high, 0))
        return max(low, min(high, r.randint(-9, 9)))

    # --------------------------------------------------------------------------------------------------------- Funcs

    def _dims(self, rank: int | None = None) -> list[str]:
        rank = self.r.choice((0, 1, 1, 2, 2, 2, 2, 3)) if rank is None else rank
        return list(DIMS[3 - rank :])

    def _dtype(self) -> str:
        return self.r.choice(self.types) if self.r.random() < 0.6 else self.r.choice(ALL)

    def _make(self, name: str, extra: str = "") -> None:
        fp = ', fp="strict"' if self.r.random() < 0.1 else ""
        self.say(f'{name} = sx.Func("{name}"{extra}{fp})')

    def _scope(self, dims: list[str], floors: list[int | None], ceils: list[int | None]) -> Scope:
        names = [Name(d, f, c) for d, f, c in zip(dims, floors, ceils, strict=True)]
        return Scope(names, self.r.choice((1, 2, 2, 3, 3, 4)))

    def _declare(self, rank: int, least: int = 1) -> tuple[str, list[int | None]]:
        """Return the text of a declared shape and the greatest index a dim."""
        sizes: list[str] = []
        ceils: list[int | None] = []
        for d in range(rank):
            n = max(least, self.extents[d % 3])
            if self.r.random() < 0.15:
                text, n = self.size_param()
                if n < least:
                    text, n = str(least), least
            else:
                text = str(n)
            sizes.append(text)
            ceils.append(n - 1)
        return f"({', '.join(sizes)}{',' if rank == 1 else ''})", ceils

    def pure(self) -> str:
        r = self.r
        name, dims, dtype = self.fresh("f"), self._dims(), self._dtype()
        floors: list[int | None] = [r.choice((0, 0, 0, 0, -1, -2, None)) for _ in dims]
        ceils: list[int | None] = [None] * len(dims)
        extra = ""
        if dims and r.random() < 0.15:
            shape, ceils = self._declare(len(dims), 0)
            floors = [0] * len(dims)
            extra = f", shape={shape}"
            self.out.declared.add(name)
        if r.random() < 0.15:
            extra += f", dtype={type_text(dtype)}"
        value = self.expr(dtype, self._scope(dims, floors, ceils))
        self._make(name, extra)
        self.say(f"{name}[{index_text(dims)}] = ", value)
        closed = any(c is not None and c < 0 for c in ceils)
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims), "closed" if closed else "func"))
        return name

    def rare(self) -> str:
        """One operation alone, of those that expressions seldom have."""
        r = self.r
        name, dims = self.fresh("f"), self._dims()
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        leaf = self._scope(dims, floors, ceils)
        leaf.depth = 0
        terms = [self._one(leaf) for _ in range(r.choice((1, 2, 3, 4)))]
        value = terms[0]
        kind = r.choice(FLOATS)
        for term in terms[1:]:
            parts: list[Piece] = [
                "(sx.cast(",
                value,
                f", {type_text(kind)}) - sx.cast(",
                term,
                f", {type_text(kind)}))",
            ]
            value = Term(kind, parts)
        self._make(name)
        self.seldom.append(name)
        self.say(f"{name}[{index_text(dims)}] = ", value)
        self.sources.append(Source(name, (value.dtype,), floors, ceils, [None] * len(dims)))
        return name

    def _one(self, leaf: Scope) -> Term:
        r = self.r
        real = r.choice(FLOATS)
        match r.choice(
            (
                "one",
                "one",
                "one",
                "one",
                "one",
                "one",
                "two",
                "whole",
                "whole",
                "test",
                "test",
                "bool",
                "bool",
                "param",
                "param",
                "equal",
            )
        ):
            case "one":
                return self._call(real, r.choice(ONE), self.expr(real, leaf))
            case "two":
                return self._call(real, r.choice(TWO), self.expr(real, leaf), self.expr(real, leaf))
            case "whole":
                return self._call(real, r.choice((*WHOLE, "sqrt")), self.expr(real, leaf))
            case "test":
                return self._call("bool", r.choice(("isnan", "isinf", "isfinite")), self.expr(real, leaf))
            case "equal":
                return Term(
                    "bool", ["(", self.expr(real, leaf), r.choice((" == ", " != ")), self.expr(real, leaf), ")"]
                )
            case "bool":
                op = r.choice(("==", "!=", "^", "~"))
                if op == "~":
                    return Term("bool", ["(~", self.expr("bool", leaf), ")"])
                return Term("bool", ["(", self.expr("bool", leaf), f" {op} ", self.expr("bool", leaf), ")"])
            case _:
                dtype = r.choice(("bool", "bool", "float16", "float32", "float64", r.choice(INTS)))
                given, kind = Term(dtype, [self.param(dtype)]), r.choice(self.types)
                if dtype == "bool":
                    return Term(
                        kind, ["sx.select(", given, ", ", self.expr(kind, leaf), ", ", self.expr(kind, leaf), ")"]
                    )
                return Term(dtype, ["(", self.expr(dtype, leaf), " - ", given, ")"])

    def converted(self) -> str:
        """Convert, and do nothing else: inside an expression, one that goes through a third type is written as that."""
        r = self.r
        kinds = (("bool",), INTS[4:], INTS[:4], ("float16",), ("float32", "float64"))
        taken, made = r.choice(r.choice((kinds[0], *kinds))), r.choice(r.choice((*kinds[1:], kinds[3])))
        name, dims = self.fresh("f"), self._dims()
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        scope = self._scope(dims, floors, ceils)
        scope.depth = r.choice((0, 1))
        self._make(name)
        self.seldom.append(name)
        self.say(f"{name}[{index_text(dims)}] = sx.cast(", self.expr(taken, scope), f", {type_text(made)})")
        self.sources.append(Source(name, (made,), floors, ceils, [None] * len(dims)))
        return name

    def reduction(self) -> str:
        """Start, then an update over an RDom."""
        r = self.r
        name, dims, dtype = self.fresh("s"), self._dims(), self._dtype()
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        scope = self._scope(dims, floors, ceils)
        first = self.expr(dtype, Scope(scope.names, 1))
        inner = self._domain(scope)
        value = self.expr(dtype, Scope(inner, r.choice((1, 2, 2)), r.random() < 0.2))
        again = None
        if r.random() < 0.2:
            inner = self._domain(scope)
            again = self.expr(dtype, Scope(inner, 1, False))
        self._make(name)
        cell = f"{name}[{index_text(dims)}]"
        self.say(f"{cell} = ", first)
        self.word("update over an RDom")
        self._step(cell, dtype, value)
        if again is not None:
            self._step(cell, dtype, again)
            self.word("two updates")
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def whole_sum(self) -> str:
        """Sum small whole numbers, kept as floats: they come to the same to the bit in any order."""
        r = self.r
        name, dims, dtype = self.fresh("z"), self._dims(), r.choice(("float32", "float32", "float64"))
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        inner = self._domain(self._scope(dims, floors, ceils))
        kind = r.choice(("uint8", "int32", "int8"))
        small = Term(kind, ["(", self.expr(kind, Scope(inner, 1, r.random() < 0.2)), f") & {type_text(kind)}(7)"])
        self.say(f'{name} = sx.Func("{name}", fp="default")')
        cell = f"{name}[{index_text(dims)}]"
        self.say(f"{cell} = {type_text(dtype)}({r.choice((0, 0, 1, -3))})")
        self.say(f"{cell} += ", Term(dtype, ["sx.cast(", small, f", {type_text(dtype)})"]))
        self.word("update over an RDom", WHOLE_SUM)
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def _step(self, cell: str, dtype: str, value: Term) -> None:
        form = self.r.choice(self._steps(dtype))
        self.say(f"{cell} = ", Term(dtype, [form[0], Term(dtype, [cell]), form[1], value, form[2]]))

    def _steps(self, dtype: str) -> list[tuple[str, str, str]]:
        if dtype == "bool":
            return [("", " | ", ""), ("", " & ", ""), ("", " ^ ", "")]
        forms = [
            ("", " + ", ""), ("", " + ", ""), ("", " * ", ""), ("", " - ", ""), ("sx.minimum(", ", ", ")"),
            ("sx.maximum(", ", ", ")"),
        ]  # fmt: skip
        if dtype in INTS:
            forms += [("", " ^ ", ""), ("", " & ", ""), ("", " | ", ""), ("sx.saturating_add(", ", ", ")")]
        return forms

    def _domain(self, scope: Scope, sure: bool = False) -> list[Name]:
        """Say an RDom; return the names of `scope` and of its variables. `sure`: never empty, by constants."""
        r = self.r
        name = self.fresh("r")
        variables: list[str] = []
        found: list[Name] = []
        for key in ("j", "k")[: r.choice((1, 1, 2))]:
            low = 0 if r.random() < 0.6 else r.randint(-2, 3)
            outer = [n for n in scope.names if n.lo is not None and n.lo >= 0]
            choice = r.random()
            if not sure and choice < 0.12 and outer:
                at = r.choice(outer)
                end = r.choice((f"{at.text} + 1", f"{at.text}", f"2 - {at.text}"))
                variables.append(f"{key}=({low}, {end})")
                found.append(Name(f"{name}.{key}", low, None))
                self.word("ragged RDom")
            elif not sure and choice < 0.26 and found:
                variables.append(f"{key}=({low}, lambda {name}: {found[0].text} + 1)")
                found.append(Name(f"{name}.{key}", low, None if found[0].hi is None else found[0].hi + 1))
                self.word("RDom range by another variable")
            elif not sure and choice < 0.36:
                text, n = self.size_param()
                variables.append(f"{key}=({low}, {low} + {text})")
                found.append(Name(f"{name}.{key}", low, low + n - 1))
                self.word("RDom range by a Param")
            elif not sure and choice < 0.44:
                source = r.choice([s for s in self.sources if s.kind == "input"])
                size = r.choice(source.sizes)
                variables.append(f"{key}={size}")
                found.append(Name(f"{name}.{key}", 0, None))
                self.word("RDom range by a size")
            else:
                n = r.choice((1, 2, 3, 3, 4, 5, 8) if sure else (0, 1, 2, 3, 3, 4, 5, 8, 9))
                variables.append(f"{key}=({low}, {low + n})")
                found.append(Name(f"{name}.{key}", low, low + n - 1))
        names = [*scope.names, *found]
        where: list[Piece] = []
        if not sure and r.random() < 0.25:
            if r.random() < 0.5:
                where = [f", where=lambda {name}: ", self._affine_condition(names)]
                self.word("RDom where, by positions")
            else:
                where = [f", where=lambda {name}: ", self.expr("bool", Scope(names, 1, False))]
                self.word("RDom where, by data")
        self.say(f'{name} = sx.RDom("{name}", {", ".join(variables)}', *where, ")")
        if len(found) == 2:
            self.word("RDom of two variables")
        return names

    def _affine_condition(self, names: list[Name]) -> Term:
        r = self.r
        a = r.choice(names).text
        b = r.choice(names).text
        text = r.choice((
            f"({a} + {b} <= {r.randint(0, 9)})", f"({a} - {b} >= {r.randint(-2, 2)})", f"({a} < {r.randint(0, 9)})",
            f"(({a} >= 1) & ({b} != {r.randint(0, 3)}))", f"({a} == {r.randint(0, 3)})",
        ))  # fmt: skip
        return Term("bool", [text])

    def pure_update(self) -> str:
        r = self.r
        name, dims, dtype = self.fresh("u"), self._dims(), self._dtype()
        floors: list[int | None] = [r.choice((0, 0, -1)) for _ in dims]
        ceils: list[int | None] = [None] * len(dims)
        scope = self._scope(dims, floors, ceils)
        first = self.expr(dtype, scope)
        values = [self.expr(dtype, Scope(scope.names, 2)) for _ in range(r.choice((1, 1, 2)))]
        self._make(name)
        cell = f"{name}[{index_text(dims)}]"
        self.say(f"{cell} = ", first)
        for value in values:
            self._step(cell, dtype, value)
        self.word("update without an RDom")
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def part_update(self) -> str | None:
        """Update a row or a column of a Func of declared shape."""
        r = self.r
        dims = self._dims(r.choice((1, 2, 2)))
        name, dtype = self.fresh("w"), self._dtype()
        shape, ceils = self._declare(len(dims))
        floors: list[int | None] = [0] * len(dims)
        scope = self._scope(dims, floors, ceils)
        first = self.expr(dtype, scope)
        d = r.randrange(len(dims))
        top = ceils[d]
        assert top is not None
        at = r.randint(0, top)
        rest = Scope([n for k, n in enumerate(scope.names) if k != d], 2)
        value = self.expr(dtype, rest)
        left = [str(at) if k == d else v for k, v in enumerate(dims)]
        read = [str(r.randint(0, top)) if k == d else v for k, v in enumerate(dims)]
        self._make(name, f", shape={shape}")
        self.out.declared.add(name)
        self.say(f"{name}[{index_text(dims)}] = ", first)
        form = r.choice(self._steps(dtype))
        if r.random() < 0.5:
            self.say(f"{name}[{index_text(left)}] = ", value)
        else:
            old = Term(dtype, [f"{name}[{index_text(read)}]"])
            self.say(f"{name}[{index_text(left)}] = ", Term(dtype, [form[0], old, form[1], value, form[2]]))
        self.word("update of a part or by positions")
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def scatter(self) -> str:
        r = self.r
        dims = self._dims(r.choice((1, 1, 2)))
        name, dtype = self.fresh("h"), self._dtype()
        shape, ceils = self._declare(len(dims))
        floors: list[int | None] = [0] * len(dims)
        first = self.expr(dtype, Scope([Name(d, 0, c) for d, c in zip(dims, ceils, strict=True)], 1))
        keep = r.random() < 0.3 and len(dims) == 2
        outer = Scope([Name(dims[0], 0, ceils[0])] if keep else [], 2)
        names = self._domain(outer)
        index: list[Piece] = []
        for d, ceil in enumerate(ceils):
            assert ceil is not None
            if keep and d == 0:
                index.append(dims[0])
            else:
                index.append(self._scattered(names, ceil))
        value = self.expr(dtype, Scope(names, 2, r.random() < 0.15))
        self._make(name, f", shape={shape}")
        self.out.declared.add(name)
        self.say(f"{name}[{index_text(dims)}] = ", first)
        cell: list[Piece] = [f"{name}["]
        for k, i in enumerate(index):
            cell += [", " if k else "", i]
        cell.append("]")
        form = r.choice(self._steps(dtype))
        if r.random() < 0.25:
            self.say(*cell, " = ", value)
        else:
            self.say(*cell, " = ", Term(dtype, [form[0], Term(dtype, cell), form[1], value, form[2]]))
        self.word("scatter by data")
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def _scattered(self, names: list[Name], ceil: int) -> Term:
        """Return an index from 0 to `ceil`, of data or not."""
        r = self.r
        steps = [n for n in names if "." in n.text]
        at = r.choice(steps)
        if r.random() < 0.3:
            if at.lo is not None and at.lo >= 0 and at.hi is not None and at.hi <= ceil:
                return Term("index", [at.text])
            return Term("index", [f"{at.text} % {ceil + 1}"])
        data = self.expr(r.choice([t for t in self.types if t in INTS] or ["int32"]), Scope(names, 1, False))
        form = r.random()
        if form < 0.4:
            return Term("index", ["sx.clip(", data, f", 0, {min(ceil, 127)})"])
        if form < 0.8 and ceil < 127:
            return Term("index", ["(", data, f") % {ceil + 1}"])
        mask = 1
        while 2 * mask + 1 <= min(ceil, 127):
            mask = 2 * mask + 1
        return Term("index", ["(", data, f") & {mask if ceil else 0}"])

    def recurrence(self) -> str:
        r = self.r
        dims = self._dims(r.choice((1, 1, 2, 2, 2, 3)))
        name, dtype = self.fresh("c"), self._dtype()
        shape, ceils = self._declare(len(dims))
        floors: list[int | None] = [0] * len(dims)
        scope = self._scope(dims, floors, ceils)
        scope.depth = min(scope.depth, 2)
        down = r.random() < 0.35
        two = len(dims) >= 2 and not down and r.random() < 0.4
        d = r.randrange(len(dims)) if not two else 0
        top = ceils[d]
        assert top is not None
        first, value = (self.expr(dtype, Scope([n for n in scope.names if n.text != dims[d]], 1)),
                        self.expr(dtype, scope))  # fmt: skip
        start = [str(top if down else 0) if k == d else v for k, v in enumerate(dims)]
        reads: list[list[str]] = [[f"{v} {'+' if down else '-'} 1" if k == d else v for k, v in enumerate(dims)]]
        edges: Term | None = None
        if two:
            other = 1
            edges = self.expr(dtype, Scope([n for k, n in enumerate(scope.names) if k != other], 1))
            reads.append([f"{v} - 1" if k == other else v for k, v in enumerate(dims)])
            if r.random() < 0.5:
                reads.append([f"{v} - 1" if k in (d, other) else v for k, v in enumerate(dims)])
        self._make(name, f", shape={shape}, dtype={type_text(dtype)}")
        self.out.declared.add(name)
        self.say(f"{name}[{index_text(start)}] = ", first)
        if edges is not None:
            self.say(f"{name}[{index_text(['0' if k == 1 else v for k, v in enumerate(dims)])}] = ", edges)
        own = [Term(dtype, [f"{name}[{index_text(i)}]"]) for i in reads]
        if not two and len(dims) > 1 and r.random() < 0.4:
            side = r.choice([k for k in range(len(dims)) if k != d])
            at = ceils[side]
            assert at is not None
            moved = list(reads[0])
            way = r.choice(("-", "+"))
            moved[side] = f"{dims[side]} {way} 1"
            cond = f"{dims[side]} > 0" if way == "-" else f"{dims[side]} < {at}"
            beside = Term(dtype, [f"{name}[{index_text(moved)}]"])
            own.append(Term(dtype, [f"sx.select({cond}, ", beside, ", ", Term(dtype, [str(own[0])]), ")"]))
            self.word("recurrence beside itself")
        whole = own[0]
        for more in own[1:]:
            form = r.choice(self._steps(dtype))
            whole = Term(dtype, [form[0], whole, form[1], more, form[2]] if form[0] else
                         ["(", whole, form[1], more, ")"])  # fmt: skip
        form = r.choice(self._steps(dtype))
        self.say(
            f"{name}[{index_text(dims)}] = ",
            Term(dtype, [form[0], whole, form[1], Term(dtype, ["(", value, ")"]), form[2]]),
        )
        self.word("recurrence in two dims" if two else "recurrence downwards" if down else "recurrence")
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def group(self) -> str:
        """Two Funcs that read each other one step back, or in the same step."""
        r = self.r
        dims = self._dims(r.choice((1, 2, 2)))
        e, h, dtype = self.fresh("e"), self.fresh("m"), r.choice([t for t in self.types if t != "bool"])
        shape, ceils = self._declare(len(dims))
        floors: list[int | None] = [0] * len(dims)
        scope = self._scope(dims, floors, ceils)
        values = [self.expr(dtype, Scope(scope.names[1:], 1, False)) for _ in range(4)]
        for name in (e, h):
            self.say(f'{name} = sx.Func("{name}", dtype={type_text(dtype)}, shape={shape})')
            self.out.declared.add(name)
        t, rest = dims[0], dims[1:]
        self.say(f"{e}[{index_text(['0', *rest])}] = ", values[0])
        self.say(f"{h}[{index_text(['0', *rest])}] = ", values[1])
        back = index_text([f"{t} - 1", *rest])
        now = index_text([t, *rest])
        self.say(f"{e}[{now}] = {e}[{back}] - {h}[{back}] * ", Term(dtype, ["(", values[2], ")"]))
        read = Term(dtype, [f"{e}[{now}]"])
        if rest and r.random() < 0.6:
            top = ceils[1]
            read = Term(
                dtype,
                [f"sx.select({rest[0]} < {top}, {e}[{index_text([t, f'{rest[0]} + 1', *rest[1:]])}], {e}[{now}])"],
            )
        self.say(f"{h}[{now}] = {h}[{back}] + ", read, " + ", Term(dtype, ["(", values[3], ")"]))
        self.word("group")
        for name in (e, h):
            self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        self.out.words[e] = set(self.current)
        return h

    def tuple_func(self) -> str:
        r = self.r
        name, dims = self.fresh("q"), self._dims()
        types = (self._dtype(), self._dtype())
        floors: list[int | None] = [r.choice((0, 0, -1)) for _ in dims]
        ceils: list[int | None] = [None] * len(dims)
        scope = self._scope(dims, floors, ceils)
        values = [self.expr(t, Scope(scope.names, 2)) for t in types]
        update = r.random() < 0.5
        steps: list[Term] = []
        if update:
            names = self._domain(scope)
            steps = [self.expr(t, Scope(names, 1, False)) for t in types]
        self._make(name)
        cell = f"{name}[{index_text(dims)}]"
        self.say(f"{cell} = (", values[0], ", ", values[1], ")")
        self.word("Func of a tuple")
        if update:
            a, b = Term(types[0], [f"{cell}[0]"]), Term(types[1], [f"{cell}[1]"])
            swapped: list[Term] = [a, b]
            if types[0] == types[1] and r.random() < 0.7:
                swapped = [b, a]
            better = self._compare(Term(types[0], [f"{cell}[0]"]), steps[0], types[0])
            self.say(f"{cell} = (", Term(types[0], ["sx.select(", better, ", ", swapped[0], ", ", steps[0], ")"]), ", ",
                     Term(types[1], ["sx.select(", better, ", ", swapped[1], ", ", steps[1], ")"]), ")")  # fmt: skip
            self.word("update of a tuple")
        self.sources.append(Source(name, types, floors, ceils, [None] * len(dims)))
        return name

    def lookup(self) -> str:
        """Make a Func of its index alone, and one that reads it at bytes."""
        r = self.r
        lut, name, dtype = self.fresh("l"), self.fresh("f"), self._dtype()
        byte = next((s for s in self.sources if s.dtypes[0] == "uint8" and s.kind != "closed"), None)
        if byte is None:
            byte = self.input("uint8", r.choice((1, 2)))
        entry = self.expr(dtype, Scope([Name("i", None, None)], 2, False))
        self._make(lut)
        self.say(f"{lut}[i] = ", entry)
        self.sources.append(Source(lut, (dtype,), [None], [None], [None]))
        dims = self._dims(r.choice((1, 2)))
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        at = self.read(byte, "uint8", self._scope(dims, floors, ceils))
        self._make(name)
        self.say(f"{name}[{index_text(dims)}] = {lut}[", at, "]")
        self.word("lookup in a Func")
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def padded(self) -> str | None:
        r = self.r
        able = [s for s in self.sources if s.kind == "input" and len(s.floors) >= 1]
        if not able:
            return None
        source = r.choice(able)
        mode = r.choice(("constant", "edge", "reflect", "symmetric", "wrap"))
        rank = len(source.floors)
        axes = sorted(r.sample(range(rank), r.randint(1, rank))) if r.random() < 0.3 else list(range(rank))
        spec = next(i for i in self.out.inputs if i.name == source.text)
        for d in axes:
            spec.least[d] = max(spec.least[d], 1 if r.random() < 0.3 else 2)
        pad, name = self.fresh("b"), self.fresh("f")
        text = f'{pad} = sx.pad({source.text}, "{mode}"'
        if len(axes) < rank:
            text += f", axes={tuple(axes)}"
        if mode == "constant" and r.random() < 0.5:
            text += f", value={_number(self.value(source.dtypes[0]))}"
        self.say(text + ")")
        floors: list[int | None] = [None if d in axes else 0 for d in range(rank)]
        self.sources.append(Source(pad, source.dtypes, floors, [None] * rank, [None] * rank))
        dims = self._dims(rank)
        own: list[int | None] = [0] * rank
        none: list[int | None] = [None] * rank
        reads = [
            self.read(self.sources[-1], source.dtypes[0], self._scope(dims, own, none)) for _ in range(r.choice((1, 2)))
        ]
        value: Term = reads[0]
        if len(reads) > 1:
            form = r.choice(self._steps(source.dtypes[0]))
            value = Term(value.dtype, [form[0], reads[0], form[1], reads[1], form[2]])
        self._make(name)
        self.say(f"{name}[{index_text(dims)}] = ", value)
        self.word(f"pad {mode}")
        self.sources.append(Source(name, source.dtypes, own, none, [None] * rank))
        return name

    def monoid(self) -> str:
        r = self.r
        m, name, dims = self.fresh("o"), self.fresh("f"), self._dims(r.choice((0, 1, 2)))
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        scope = self._scope(dims, floors, ceils)
        names = self._domain(scope)
        inner = Scope(names, 2, False)
        if r.random() < 0.5:
            t = r.choice(("uint8", "uint16", "uint32", "int32", "int64"))
            a, b = self.expr(t, inner), self.expr(t, inner)
            self.say(
                f'{m} = sx.Monoid("{m}", lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), '
                f"({type_text(t)}(1), {type_text(t)}(0)), commutes=False)"
            )
            types: tuple[str, ...] = (t, t)
            call: list[Piece] = [f"{m}((", a, ", ", b, f"), over={names[-1].text.split('.')[0]})"]
        else:
            t = r.choice(("uint8", "int16", "int32", "uint64"))
            a = self.expr(t, inner)
            op = r.choice(("sx.maximum(p, q)", "p ^ q", "p + q"))
            zero = limits(t)[0] if op[0] == "s" else 0
            self.say(f'{m} = sx.Monoid("{m}", lambda p, q: {op}, {type_text(t)}({zero}), commutes=True)')
            types = (t,)
            call = [f"{m}(", a, f", over={names[-1].text.split('.')[0]})"]
        self._make(name)
        self.say(f"{name}[{index_text(dims)}] = ", *call)
        self.word("Monoid")
        self.sources.append(Source(name, types, floors, ceils, [None] * len(dims)))
        return name

    def position(self) -> str:
        r = self.r
        name, dims = self.fresh("f"), self._dims(r.choice((0, 1, 1, 2)))
        floors: list[int | None] = [0] * len(dims)
        ceils: list[int | None] = [None] * len(dims)
        scope = self._scope(dims, floors, ceils)
        names = self._domain(scope, sure=True)
        domain = names[-1].text.split(".")[0]
        word = r.choice(("argmin", "argmax"))
        value = self.expr(r.choice([t for t in self.types if t != "bool"]), Scope(names, 2, False))
        self._make(name)
        self.say(f"{name}[{index_text(dims)}] = sx.{word}(", value, f", over={domain})")
        self.word(word)
        count = len(names) - len(scope.names)
        self.sources.append(Source(name, ("int64",) * count, floors, ceils, [None] * len(dims)))
        return name

    # --------------------------------------------------------------------------------------------------- expressions

    def expr(self, dtype: str, scope: Scope) -> Term:
        """Return a value of `dtype`."""
        r = self.r
        if scope.depth <= 0 or r.random() < 0.1:
            return self.leaf(dtype, scope)
        less = Scope(scope.names, scope.depth - 1, scope.reductions)
        if r.random() < 0.1:
            return self._select(dtype, less)
        if r.random() < 0.06:
            return self._guarded(dtype, less)
        if r.random() < 0.12 and scope.reductions and scope.names:
            return self._reduced(dtype, less)
        if dtype == "bool":
            return self._bool(less)
        if r.random() < 0.1:
            other = r.choice(ALL)
            if other != dtype:
                return Term(dtype, ["sx.cast(", self.expr(other, less), f", {type_text(dtype)})"])
        if r.random() < 0.06:
            return self._mixed(dtype, less)
        return self._float(dtype, less) if dtype in FLOATS else self._int(dtype, less)

    def _binary(self, dtype: str, op: str, scope: Scope) -> Term:
        left = self.expr(dtype, scope)
        right = self._literal(dtype) if self.r.random() < 0.15 else self.expr(dtype, scope)
        return Term(dtype, ["(", left, f" {op} ", right, ")"])

    def _call(self, dtype: str, word: str, *args: Term) -> Term:
        parts: list[Piece] = [f"sx.{word}("]
        for k, a in enumerate(args):
            parts += [", " if k else "", a]
        return Term(dtype, [*parts, ")"])

    def _literal(self, dtype: str) -> Term:
        """Return a Python number, which takes the type that it meets."""
        r = self.r
        if dtype == "bool":
            return Term(dtype, [str(r.random() < 0.5)])
        if dtype in FLOATS:
            return Term(dtype, [f"({r.choice((0.5, 2.0, -1.5, 3, 0.1, 10))})"])
        low, high = limits(dtype)
        return Term(dtype, [f"({max(low, min(high, r.randint(-7, 9)))})"])

    def _int(self, dtype: str, scope: Scope) -> Term:
        r = self.r
        pick = r.random()
        if pick < 0.4:
            return self._binary(dtype, r.choice(("+", "-", "*", "+")), scope)
        if pick < 0.52:
            return self._binary(dtype, r.choice(("//", "%")), scope)
        if pick < 0.62:
            return self._binary(dtype, r.choice(("&", "|", "^")), scope)
        if pick < 0.69:
            op = r.choice(("<<", ">>"))
            by = Term(dtype, [f"({r.randint(0, 9)})"]) if r.random() < 0.6 else self.expr(dtype, scope)
            return Term(dtype, ["(", self.expr(dtype, scope), f" {op} ", by, ")"])
        if pick < 0.79:
            return self._call(dtype, r.choice(("minimum", "maximum")), self.expr(dtype, scope), self.expr(dtype, scope))
        if pick < 0.85:
            form = r.choice((("-", ""), ("~", ""), ("abs(", ")")))
            return Term(dtype, ["(", form[0], Term(dtype, ["(", self.expr(dtype, scope), ")"]), form[1], ")"])
        if pick < 0.94:
            word = r.choice((*FIXED, "absd", "widening_mul", "saturating_cast"))
            if word == "saturating_cast":
                other = r.choice([t for t in NUMBERS if t != dtype])
                return Term(dtype, ["sx.saturating_cast(", self.expr(other, scope), f", {type_text(dtype)})"])
            a, b = self.expr(dtype, scope), self.expr(dtype, scope)
            if word in FIXED:
                return self._call(dtype, word, a, b)
            if word == "widening_mul" and "64" in dtype:
                word = "mul_high"
            return Term(dtype, [f"sx.cast(sx.{word}(", a, ", ", b, f"), {type_text(dtype)})"])
        if pick < 0.97:
            return self._call(dtype, r.choice(("popcount", "clz")), self.expr(dtype, scope))
        return self._call(dtype, "sign", self.expr(dtype, scope))

    def _float(self, dtype: str, scope: Scope) -> Term:
        r = self.r
        pick = r.random()
        if pick < 0.48:
            return self._binary(dtype, r.choice(("+", "-", "*", "*", "+", "/")), scope)
        if pick < 0.53:
            return self._binary(dtype, r.choice(("//", "%")), scope)
        if pick < 0.6:
            return self._call(dtype, r.choice(("minimum", "maximum")), self.expr(dtype, scope), self.expr(dtype, scope))
        if pick < 0.65:
            form = r.choice((("-", ""), ("abs(", ")")))
            return Term(dtype, ["(", form[0], Term(dtype, ["(", self.expr(dtype, scope), ")"]), form[1], ")"])
        if pick < 0.69 or self.heavy <= 0:
            return self._call(dtype, r.choice((*WHOLE, "sqrt")), self.expr(dtype, scope))
        self.heavy -= 1
        if r.random() < 0.25:
            return self._call(dtype, r.choice(TWO), self.expr(dtype, scope), self.expr(dtype, scope))
        return self._call(dtype, r.choice(ONE), self.expr(dtype, scope))

    def _bool(self, scope: Scope) -> Term:
        r = self.r
        pick = r.random()
        if pick < 0.55:
            dtype = r.choice(self.types) if r.random() < 0.7 else r.choice(NUMBERS)
            if dtype == "bool":
                dtype = "int32"
            return self._compare(self.expr(dtype, scope), self.expr(dtype, scope), dtype)
        if pick < 0.85:
            return self._binary("bool", r.choice(("&", "|", "^", "+", "*", "==", "!=")), scope)
        if pick < 0.93:
            return Term("bool", ["(~", Term("bool", ["(", self.expr("bool", scope), ")"]), ")"])
        dtype = r.choice(FLOATS)
        return self._call("bool", r.choice(("isnan", "isinf", "isfinite")), self.expr(dtype, scope))

    def _compare(self, a: Term, b: Term, dtype: str) -> Term:
        op = self.r.choice(("<", "<=", ">", ">=", "==", "!="))
        if dtype == "bool":
            op = self.r.choice(("==", "!="))
        return Term("bool", ["(", a, f" {op} ", b, ")"])

    def _mixed(self, dtype: str, scope: Scope) -> Term:
        """Two types that meet, and what comes of it converted."""
        r = self.r
        a, b = r.choice(NUMBERS), r.choice(NUMBERS)
        op = r.choice(("+", "*", "-", "/"))
        return Term(dtype, ["sx.cast(", self.expr(a, scope), f" {op} ", self.expr(b, scope), f", {type_text(dtype)})"])

    def _select(self, dtype: str, scope: Scope) -> Term:
        r = self.r
        cond = self._affine_condition(scope.names) if scope.names and r.random() < 0.5 else self.expr("bool", scope)
        other = self._literal(dtype) if r.random() < 0.2 else self.expr(dtype, scope)
        if r.random() < 0.2:
            more = self.expr("bool", scope)
            return Term(dtype, ["sx.select(", cond, ", ", self.expr(dtype, scope), ", ", more, ", ",
                                self.expr(dtype, scope), ", ", other, ")"])  # fmt: skip
        if r.random() < 0.1:
            at = self.expr("int32", scope)
            return Term(dtype, ["sx.choose(", at, ", [", self.expr(dtype, scope), ", ", other, ", ",
                                self.expr(dtype, scope), "])"])  # fmt: skip
        word = r.choice(("select", "where"))
        return Term(dtype, [f"sx.{word}(", cond, ", ", self.expr(dtype, scope), ", ", other, ")"])

    def _guarded(self, dtype: str, scope: Scope) -> Term:
        """Read an input beyond its ends, where a condition keeps the index inside."""
        r = self.r
        able = [s for s in self.sources if s.kind == "input" and dtype in s.dtypes and s.floors]
        plain = [n for n in scope.names]
        if not able or not plain:
            return self.leaf(dtype, scope)
        source = r.choice(able)
        d = r.randrange(len(source.floors))
        name = r.choice(plain)
        at = f"{name.text} + {r.randint(0, 3)}" if r.random() < 0.5 else f"{name.text} - {r.randint(1, 3)}"
        size = source.sizes[d]
        index: list[Piece] = [
            Term("index", [at]) if k == d else self.index(source, k, scope) for k in range(len(source.floors))
        ]
        parts: list[Piece] = [f"{source.text}["]
        for k, i in enumerate(index):
            parts += [", " if k else "", i]
        read = Term(dtype, [*parts, "]"])
        cond = f"({at} >= 0) & ({at} < {size})"
        self.word("read under a mask")
        return Term(dtype, [f"sx.select({cond}, ", read, ", ", self.expr(dtype, scope), ")"])

    def _reduced(self, dtype: str, scope: Scope) -> Term:
        r = self.r
        outer = Scope(scope.names, 2)
        word = r.choice(("sum", "sum", "prod", "min", "max", "any", "all", "mean", "var"))
        names = self._domain(outer)
        domain = names[-1].text.split(".")[0]
        inner = Scope(names, min(1, scope.depth), False)
        self.word(f"inline {word}")
        if word in ("any", "all"):
            made: list[Piece] = [f"sx.{word}(", self.expr("bool", inner), f", over={domain})"]
            return Term(dtype, made) if dtype == "bool" else Term(dtype, ["sx.cast(", *made, f", {type_text(dtype)})"])
        kind = r.choice([t for t in self.types if t != "bool"])
        if word == "var":
            kind = r.choice(("float32", "float64", "uint8"))
        extra = ""
        if word in ("min", "max"):
            extra = f", initial={self._literal(kind)}"
        elif word == "sum" and r.random() < 0.2:
            extra = f", dtype={type_text(kind)}"
        return Term(
            dtype, [f"sx.cast(sx.{word}(", self.expr(kind, inner), f", over={domain}{extra}), {type_text(dtype)})"]
        )

    # --------------------------------------------------------------------------------------------------------- leaves

    def leaf(self, dtype: str, scope: Scope) -> Term:
        r = self.r
        pick = r.random()
        same = [s for s in self.sources if dtype in s.dtypes and s.kind != "closed"]
        recent = same[-3:]
        if pick < 0.75:
            if same:
                return self.read(r.choice(recent if r.random() < 0.7 else same), dtype, scope)
            if len(self.out.inputs) < 4 and r.random() < 0.6:
                rank = len([n for n in scope.names if "." not in n.text]) or 1
                return self.read(self.input(dtype, min(rank, 3)), dtype, scope)
            source = r.choice([s for s in self.sources if s.kind != "closed"])
            other = source.dtypes[0]
            return Term(dtype, ["sx.cast(", self.read(source, other, scope), f", {type_text(dtype)})"])
        if pick < 0.82 and scope.names:
            return Term(dtype, [f"sx.cast({r.choice(scope.names).text}, {type_text(dtype)})"])
        if pick < 0.92:
            found = [p.name for p in self.out.params if p.dtype == dtype]
            if found:
                return Term(dtype, [r.choice(found)])
        return Term(dtype, [f"{type_text(dtype)}({_number(self.value(dtype))})"])

    def read(self, source: Source, dtype: str, scope: Scope) -> Term:
        """Return a read of `source` at an index that it has."""
        index = [self.index(source, d, scope) for d in range(len(source.floors))]
        parts: list[Piece] = [f"{source.text}["]
        for k, i in enumerate(index):
            parts += [", " if k else "", i]
        if not index:
            parts.append("()")
        parts.append("]")
        if len(source.dtypes) > 1:
            able = [k for k, t in enumerate(source.dtypes) if t == dtype]
            parts.append(f"[{self.r.choice(able)}]")
        return Term(dtype, parts)

    def index(self, source: Source, d: int, scope: Scope) -> Term:
        """Return an index of dim `d`, inside what `source` serves."""
        r = self.r
        floor, ceil = source.floors[d], source.ceils[d]
        names = scope.names
        if names:
            rank = len(source.floors)
            plain = [n for n in names if "." not in n.text]
            at = r.choice(names)
            if plain and r.random() < 0.65:
                at = plain[max(0, min(len(plain) - 1, len(plain) - rank + d))]
            for _ in range(4):
                found = self._index(at, floor, ceil, source, d, scope)
                if found is not None:
                    return found
                at = r.choice(names)
        low = floor if floor is not None else -2
        return Term("index", [str(r.randint(low, min(low + 3, ceil if ceil is not None else low + 3)))])

    def _index(
        self, at: Name, floor: int | None, ceil: int | None, source: Source, d: int, scope: Scope
    ) -> Term | None:
        r = self.r
        pick = r.random()
        v = at.text
        if pick < 0.62:
            low = -2 if floor is None else None if at.lo is None else floor - at.lo
            if low is None:
                return None
            high = low + 3
            if ceil is not None:
                if at.hi is None:
                    return None if r.random() < 0.3 else self._clamped(v, floor, ceil, source, d)
                high = min(high, ceil - at.hi)
            if low > high:
                return self._clamped(v, floor, ceil, source, d)
            c = 0 if low <= 0 <= high and r.random() < 0.5 else r.randint(low, high)
            return Term("index", [_moved(v, c)])
        if pick < 0.67:
            k, low = r.choice((2, 3)), 0 if at.lo is None else at.lo
            if at.lo is None and floor is not None:
                return None
            c = 0 if floor is None else max(0, floor - k * low)
            if ceil is not None and (at.hi is None or k * at.hi + c > ceil):
                return None
            return Term("index", [_moved(f"{k} * {v}", c)])
        if pick < 0.73:
            k = r.choice((2, 3, 4))
            if at.lo is None and floor is not None:
                return None
            low = 0 if at.lo is None else at.lo // k
            c = 0 if floor is None else max(0, floor - low)
            if ceil is not None and (at.hi is None or at.hi // k + c > ceil):
                return None
            return Term("index", [_moved(f"{v} // {k}", c)])
        if pick < 0.79:
            low = -2 if floor is None else floor
            most = 5 if ceil is None else ceil - low + 1
            if most < 1:
                return None
            return Term("index", [_moved(f"{v} % {r.randint(1, min(most, 9))}", low)])
        if pick < 0.83 and at.hi is not None and at.lo is not None:
            low = 0 if floor is None else floor
            if ceil is not None and at.hi - at.lo + low > ceil:
                return None
            return Term("index", [f"{at.hi + low} - {v}"])
        if pick < 0.87 and len(scope.names) > 1:
            other = r.choice([n for n in scope.names if n is not at])
            if floor is not None and (at.lo is None or other.lo is None):
                return None
            low = 0 if floor is None else max(0, floor - (at.lo or 0) - (other.lo or 0))
            if ceil is not None and (at.hi is None or other.hi is None or at.hi + other.hi + low > ceil):
                return None
            return Term("index", [_moved(f"{v} + {other.text}", low)])
        if pick < 0.95:
            return self._clamped(v, floor, ceil, source, d)
        return self._data_index(floor, ceil, scope, source, d)

    def _clamped(self, v: str, floor: int | None, ceil: int | None, source: Source, d: int) -> Term:
        r = self.r
        low = r.randint(-2, 0) if floor is None else floor
        shifted = _moved(v, r.randint(-3, 3))
        if ceil is None and source.sizes[d] is not None:
            spec = next(i for i in self.out.inputs if i.name == source.text)
            spec.least[d] = max(spec.least[d], 1)
            if r.random() < 0.3:
                return Term("index", [f"({shifted}) % {source.sizes[d]}"])
            return Term("index", [f"sx.clip({shifted}, 0, {source.sizes[d]} - 1)"])
        high = low + r.randint(0, 6) if ceil is None else ceil
        return Term("index", [f"sx.clip({shifted}, {low}, {high})"])

    def _data_index(self, floor: int | None, ceil: int | None, scope: Scope, source: Source, d: int) -> Term | None:
        r = self.r
        able = [s for s in self.sources if s.dtypes[0] in INTS and s is not source and s.kind != "closed"]
        if not able or scope.depth < 0:
            return None
        data = r.choice(able)
        inner = Scope(scope.names, -1)
        value = self.read(data, data.dtypes[0], inner)
        low = -1 if floor is None else floor
        high = low + r.randint(0, 6) if ceil is None else ceil
        self.word("index by data")
        if r.random() < 0.5 and low >= 0 and high <= 127:
            return Term("index", ["sx.clip(", value, f", {low}, {high})"])
        span = min(high - low + 1, 127)
        if r.random() < 0.5:
            return Term("index", ["sx.cast(", value, f" % {span}, sx.int64) + {low}"])
        mask = 1
        while 2 * mask + 1 < span:
            mask = 2 * mask + 1
        return Term("index", ["sx.cast(", value, f" & {mask if span > 1 else 0}, sx.int64) + {low}"])


def type_text(dtype: str) -> str:
    """Return the word for a type."""
    return "sx.bool_" if dtype == "bool" else f"sx.{dtype}"


def index_text(entries: list[str]) -> str:
    """Return positions as they stand between brackets."""
    return ", ".join(entries) if entries else "()"


def _moved(text: str, by: int) -> str:
    return f"{text} + {by}" if by > 0 else f"{text} - {-by}" if by < 0 else text
