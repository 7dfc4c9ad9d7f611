"""Conditions on sizes and Params as text, and back: what `specialize` takes. Nothing of a text is executed.

    cond  = and { "or" and }              and = not { "and" not }            not = "not" not | cmp
    cmp   = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
    sum   = term { ("+" | "-") term }     term = leaf { ("*" | "//" | "%") leaf }
    leaf  = NUMBER | PARAM | ARRAY ".shape[" NUMBER "]" | "-" leaf | "(" cond ")"

An ARRAY is an Input or an output. Numbers are counted as positions are, in 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stax.algorithm.nodes import Pipeline
from stax.dtypes import bool_, int64
from stax.errors import ScheduleError
from stax.expr import build
from stax.expr.nodes import COMPARES, INDEX, Binary, BinaryOp, Cast, Const, Expr, Param, Size, Unary, UnaryOp
from stax.expr.walk import children, postorder
from stax.lang.terms import Argument, Extent
from stax.schedule.nest import closest
from stax.source import Span

MOST_TEXT = 500
MOST_DEPTH = 40
_TOKEN = re.compile(r"\s*(?:(\d{1,18})(?![\w.])|([^\W\d][\w.]*)|(\[|\]|==|!=|<=|>=|<|>|\+|-|\*|//|%|\(|\)))")
_COMPARE = {
    "==": BinaryOp.EQ,
    "!=": BinaryOp.NE,
    "<": BinaryOp.LT,
    "<=": BinaryOp.LE,
    ">": BinaryOp.LT,
    ">=": BinaryOp.LE,
}
_SUM = {"+": BinaryOp.ADD, "-": BinaryOp.SUB}
_TERM = {"*": BinaryOp.MUL, "//": BinaryOp.FLOORDIV, "%": BinaryOp.MOD}
_WORD = {BinaryOp.AND: "and", BinaryOp.MUL: "and", BinaryOp.OR: "or", BinaryOp.ADD: "or"}
_TIGHT = {"or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, "+": 5, "-": 5, "*": 6, "//": 6, "%": 6}


def condition(text: str, pipeline: Pipeline, span: Span | None) -> Expr:
    """Return the condition that `text` says of `pipeline`; ScheduleError where it says none."""
    return _Reader(text, pipeline, span).whole()


class _Reader:
    def __init__(self, text: str, pipeline: Pipeline, span: Span | None) -> None:
        self.text, self.pipeline, self.span, self.depth = text, pipeline, span, 0
        if len(text) > MOST_TEXT:
            raise self.refuse(f"it is longer than {MOST_TEXT} characters")
        self.words: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.refuse(f"{text[at:].strip()[:12]!r} is no part of a condition")
            self.words.append(found[1] or found[2] or found[3])
            at = found.end()
        self.words.append("")

    def whole(self) -> Expr:
        found = self.either()
        if self.words[0]:
            raise self.refuse(f"{self.words[0]!r} was not expected")
        return self.flag(found)

    def either(self) -> Expr:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.refuse(f"it is more than {MOST_DEPTH} brackets deep")
        left = self.both()
        while self.takes("or"):
            left = build.binary(BinaryOp.OR, self.flag(left), self.flag(self.both()))
        self.depth -= 1
        return left

    def both(self) -> Expr:
        left = self.negation()
        while self.takes("and"):
            left = build.both(self.flag(left), self.flag(self.negation()))
        return left

    def negation(self) -> Expr:
        inverted = False
        while self.takes("not"):
            inverted = not inverted
        found = self.comparison()
        return build.negate(self.flag(found)) if inverted else found

    def comparison(self) -> Expr:
        left = self.chain(_SUM)
        word = self.words[0]
        if word not in _COMPARE:
            return left
        self.words.pop(0)
        left, right = self.number(left), self.number(self.chain(_SUM))
        if word in (">", ">="):
            left, right = right, left
        return build.binary(_COMPARE[word], left, right)

    def chain(self, words: Mapping[str, BinaryOp]) -> Expr:
        def part() -> Expr:
            return self.chain(_TERM) if words is _SUM else self.leaf()

        left = part()
        while self.words[0] in words:
            op = words[self.words.pop(0)]
            left = build.binary(op, self.number(left), self.number(part()))
        return left

    def leaf(self) -> Expr:
        negative = False
        while self.takes("-"):
            negative = not negative
        found = self.bare()
        return build.sub(build.index(0), self.number(found)) if negative else found

    def bare(self) -> Expr:
        word = self.words.pop(0)
        if word.isdigit():
            return build.index(int(word))
        if word == "(":
            found = self.either()
            self.expect(")")
            return found
        if not word or not (word[0].isalpha() or word[0] == "_"):
            raise self.refuse(f"a size, a Param or a number was expected{f', not {word!r}' if word else ''}")
        if self.words[0] == "[" and word.endswith(".shape"):
            return self.size(word.removesuffix(".shape"))
        scalar = next((s for s in self.pipeline.scalars if s.name == word), None)
        if scalar is None:
            known = [s.name for s in self.pipeline.scalars]
            raise self.refuse(f"there is no Param {word!r}", closest(word, known))
        if scalar.dtype.is_float:
            raise self.refuse(f"Param {word!r} is of type {scalar.dtype}; integers and bools may be asked for")
        return Param(scalar.dtype, scalar.name)

    def size(self, array: str) -> Expr:
        self.expect("[")
        dim = self.words.pop(0)
        self.expect("]")
        ranks = {i.name: len(i.dims) for i in self.pipeline.inputs}
        ranks |= {name: len(self.pipeline.func(name).dims) for name in self.pipeline.outputs}
        if array not in ranks:
            raise self.refuse(f"there is no Input or output {array!r}", closest(array, ranks))
        if not dim.isdigit() or int(dim) >= ranks[array]:
            raise self.refuse(f"{array!r} has {ranks[array]} dims, counted from 0, and none is {dim!r}")
        return Size(INDEX, array, int(dim))

    def number(self, found: Expr) -> Expr:
        if found.dtype.is_bool:
            raise self.refuse("a condition stands where a number is needed")
        return build.cast(found, INDEX)

    def flag(self, found: Expr) -> Expr:
        if not found.dtype.is_bool:
            raise self.refuse("it is a number, not a condition", "compare it")
        return found

    def takes(self, word: str) -> bool:
        if self.words[0] == word:
            self.words.pop(0)
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.takes(word):
            raise self.refuse(f"{word!r} was expected, not {self.words[0] or 'the end'!r}")

    def refuse(self, why: str, hint: str | None = None) -> ScheduleError:
        return ScheduleError(f"{self.text[:80]!r} is no condition: {why}", [(self.span, "here")], hint=hint)


def text_of(root: Expr, names: Mapping[int, str], span: Span | None) -> str:
    """Return a condition of the language as text; `names` are those of Inputs and Params in the program, by id."""
    texts: dict[int, tuple[str, int]] = {}

    def inner(node: Expr, least: int) -> str:
        text, tight = texts[id(node)]
        return f"({text})" if tight < least else text

    for node in postorder((root,)):
        match node:
            case Const(value=value) if node.dtype.is_integer or node.dtype.is_bool:
                texts[id(node)] = (str(int(value)), 9)
            case Extent(owner=owner) if id(owner) in names:
                texts[id(node)] = (f"{names[id(owner)]}.shape[{node.dim}]", 9)
            case Argument(owner=owner) if id(owner) in names and not node.dtype.is_float:
                texts[id(node)] = (names[id(owner)], 9)
            case Cast(value=value) if not value.dtype.is_bool and not node.dtype.is_float and not node.dtype.is_bool:
                texts[id(node)] = texts[id(value)]
            case Unary(op=UnaryOp.NOT, value=value) if node.dtype is bool_:
                texts[id(node)] = (f"not {inner(value, 3)}", 3)
            case Unary(op=UnaryOp.NEG, value=value) if node.dtype.is_integer or node.dtype.is_signed:
                texts[id(node)] = (f"-{inner(value, 8)}", 8)
            case Binary(op=op, left=left, right=right) if not left.dtype.is_float:
                word = _WORD.get(op, "") if left.dtype.is_bool else op.value
                narrow = left.dtype.is_integer and left.dtype.bits < int64.bits  # whose sums may wrap
                if word not in _TIGHT or (narrow and op not in COMPARES):
                    raise _none(span)
                tight = _TIGHT[word]
                texts[id(node)] = (f"{inner(left, tight + (tight == 4))} {word} {inner(right, tight + 1)}", tight)
            case _:
                raise _none(span)
        if not children(node) and id(node) not in texts:
            raise _none(span)
    return texts[id(root)][0]


def _none(span: Span | None) -> ScheduleError:
    return ScheduleError(
        "a condition compares sizes and Params, by + - * // %, and joins such by & and |", [(span, "here")],
        hint="it may be text: specialize('a.shape[1] % 16 == 0')",
    )  # fmt: skip
