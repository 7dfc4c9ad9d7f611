r"""A schedule as text that is also Python, and back: one statement a line, read by a fixed grammar, never executed.

    # stax schedule 1
    # 1f3a... out(y, x) gray(y, x)
    s["out"].split("y", "yo", "yi", 64).parallel("yo")
    s["hist"].update(0).unroll("r.x", 4)

The first line says the version, the second what program it was written for. A line is

    line  = stage { "." NAME "(" [ arg { "," arg } [ "," ] ] ")" }
    stage = "s" "[" STRING "]"
    arg   = [ NAME "=" ] value
    value = STRING | NUMBER | stage [ ".update(" NUMBER ")" ] | "(" [ value { "," value } [ "," ] ] ")"

where `.update(NUMBER)` may stand among the directives, with blanks between words and a comment at the end. A STRING is
Python's, on one line, without a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from stax.errors import ScheduleError, StaxError
from stax.schedule import directives as said
from stax.schedule.directives import Directive, Line, StageRef, Tail
from stax.schedule.words import Plain, make
from stax.source import Span

FIRST = "# stax schedule 1"


@dataclass(frozen=True, slots=True)
class Program:
    """What a schedule was written for: a digest, and the dims of each Func."""

    digest: str
    dims: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Script:
    """A text that was read; `program` is None where it does not say what it was written for."""

    program: Program | None
    lines: tuple[Line, ...]


def show(program: Program, lines: Iterable[Line]) -> str:
    """Return `lines` as text; directives of one stage that follow each other are one statement, reasons before it."""
    funcs = [f" {_bare(name)}({', '.join(map(_bare, dims))})" for name, dims in program.dims.items()]
    text = [FIRST, f"# {program.digest}{''.join(funcs)}"]
    for at, group in groupby(lines, key=lambda line: line.at):
        run = list(group)
        text += [f"# {at}: {line.why}" for line in run if line.why]
        text.append(show_stage(at) + "".join(f".{show_directive(line.directive)}" for line in run))
    return "\n".join(text) + "\n"


def show_directive(directive: Directive) -> str:
    """Return a directive as it is written.

    >>> show_directive(said.Split("y", "yo", "yi", 64))
    'split("y", "yo", "yi", 64)'
    """
    match directive:
        case said.Split(var=var, outer=outer, inner=inner, factor=factor, tail=tail):
            return f"split({quote(var)}, {quote(outer)}, {quote(inner)}, {factor}{_tail(tail)})"
        case said.Tile(vars=names, outers=outers, inners=inners, sizes=sizes, tail=tail):
            lists = [_tuple(map(quote, names)), _tuple(map(quote, outers)), _tuple(map(quote, inners))]
            return f"tile({', '.join(lists)}, {_tuple(map(str, sizes))}{_tail(tail)})"
        case said.Fuse(outer=outer, inner=inner, fused=fused):
            return f"fuse({quote(outer)}, {quote(inner)}, {quote(fused)})"
        case said.Reorder(vars=names):
            return f"reorder({', '.join(map(quote, names))})"
        case said.Reverse(var=var):
            return f"reverse({quote(var)})"
        case said.Skew(var=var, along=along, factor=factor, new=new):
            name = "" if new is None else f", new={quote(new)}"
            return f"skew({quote(var)}, {quote(along)}, {factor}{name})"
        case said.Affine(matrix=matrix, vars=names, new=new):
            name = "" if new is None else f", new={_tuple(map(quote, new))}"
            return f"affine({_tuple(_tuple(map(str, row)) for row in matrix)}, {_tuple(map(quote, names))}{name})"
        case said.Vectorize(var=var, n=n, upto=upto):
            return f"vectorize({quote(var)}{_number(n)}{'' if upto is None else f', upto={upto}'})"
        case said.Partition(var=var):
            return f"partition({quote(var)})"
        case said.Parallel(var=var, n=n):
            return f"parallel({quote(var)}{_number(n)})"
        case said.Unroll(var=var, n=n):
            return f"unroll({quote(var)}{_number(n)})"
        case said.Inline():
            return "inline()"
        case said.ComputeRoot():
            return "compute_root()"
        case said.ComputeAt(consumer=consumer, stage=stage, loop=loop, store=store):
            kept = "" if store is None else f", store={quote(store)}"
            return f"compute_at({_consumer(consumer, stage)}, {quote(loop)}{kept})"
        case said.StoreAt(consumer=consumer, stage=stage, loop=loop):
            return f"store_at({_consumer(consumer, stage)}, {quote(loop)})"
        case said.StoreRoot():
            return "store_root()"
        case said.FoldStorage(dim=dim, n=n):
            return f"fold_storage({quote(dim)}, {n})"
        case said.Overwrite(target=target):
            return f"overwrite({quote(target)})"
        case said.Layout(order=order, pad=pad, align=align):
            more = ("" if pad == 1 else f", pad={pad}") + ("" if align is None else f", align={align}")
            return f"layout({_tuple(map(quote, order))}{more})"
        case said.Memory(kind=kind):
            return f"memory({quote(kind.value)})"
        case said.Bound(dim=dim, lo=lo, n=n):
            return f"bound({quote(dim)}, {lo}, {n})"
        case said.AlignBounds(dim=dim, n=n):
            return f"align_bounds({quote(dim)}, {n})"
        case said.HoistStorage(consumer=consumer, stage=stage, loop=loop):
            return f"hoist_storage({_consumer(consumer, stage)}, {quote(loop)})"
        case said.ComputeWith(consumer=consumer, stage=stage, loop=loop, shift=shift):
            later = f", shift={shift}" if shift else ""
            return f"compute_with({_consumer(consumer, stage or None)}, {quote(loop)}{later})"
        case said.CacheRead(name=name, readers=readers):
            return f"cache_read({', '.join(map(quote, (name, *readers)))})"
        case said.Clone(name=name, readers=readers):
            return f"clone({', '.join(map(quote, (name, *readers)))})"
        case said.Reassociate():
            return "reassociate()"
        case said.Atomic():
            return "atomic()"
        case said.Stream():
            return "stream()"
        case said.Specialize(cond=cond):
            return f"specialize({quote(cond)})"
        case said.Prefetch(source=source, loop=loop, ahead=ahead):
            return f"prefetch({quote(source)}, {quote(loop)}, {ahead})"
        case said.Warps(n=n):
            return f"warps({n})"
        case said.Stages(n=n):
            return f"stages({n})"
        case said.Swizzle(n=n):
            return f"swizzle({n})"
        case said.MatrixUnit(i=i, j=j, k=k, precision=precision):
            how = "" if precision is None else f", precision={quote(precision)}"
            return f"matrix_unit({quote(i)}, {quote(j)}, {quote(k)}{how})"
        case said.Accumulators(var=var, n=n):
            return f"accumulators({quote(var)}, {n})"
        case said.Rfactor(var=var, new=new, name=name):
            return f"rfactor({quote(var)}, {quote(new)}, {quote(name)})"
        case said.SplitReduction(var=var, n=n, new=new, name=name):
            return f"split_reduction({quote(var)}, {n}, {quote(new)}, {quote(name)})"
        case _:
            assert_never(directive)


def quote(name: str) -> str:
    r"""Return `name` as a Python string literal in double quotes, printable and on one line.

    >>> print(quote('a "b"\n'))
    "a \"b\"\x0a"
    """
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in name) + '"'


def read(text: str, file: str = "<schedule>") -> Script:
    """Return the lines of `text`; `file` is what errors call it.

    Raises ScheduleError, with line and column, for anything but the grammar, and for directives that are not well
    formed. Whether the names are there is for the program to say that the lines are applied to.
    """
    rows = [row.removesuffix("\r") for row in text.removeprefix("\ufeff").split("\n")]
    if rows[0].rstrip() != FIRST:
        later = re.fullmatch(r"# stax schedule ([0-9]+)\s*", rows[0])
        message = f"this is a schedule of version {later[1]}" if later else "a schedule begins with its version"
        raise ScheduleError(
            f"{file}, line 1, column 1: {message}", [(Span(file, 1), "here")], [f"the first line must be: {FIRST}"]
        )
    lines: list[Line] = []
    for k, row in enumerate(rows[1:], start=2):
        lines += _Row(file, k, row).statement()
    return Script(_program(rows[1]) if len(rows) > 1 else None, tuple(lines))


_TOKEN = re.compile(
    r"""[ \t]*(?: (?P<string> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
        | (?P<number> -?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)? ) (?![\w.])
        | (?P<name> [A-Za-z_][A-Za-z_0-9]* ) (?!["'])
        | (?P<mark> [][().,=] )
        | (?P<end> \#.* | $ ) )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"""\\(?:(["'\\nrt])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))""")
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}
_LONGEST_NUMBER = 18
_BARE = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*")


class _Row:
    """One line of text, read from left to right."""

    def __init__(self, file: str, line: int, text: str) -> None:
        self.file, self.line, self.text = file, line, text
        self.kind, self.word, self.start, self.end, self.last = "", "", 0, 0, 0
        self.advance()

    def advance(self) -> None:
        found = _TOKEN.match(self.text, self.end)
        if found is None or found.lastgroup is None:
            rest = self.text[self.end :]
            self.start = self.end + len(rest) - len(rest.lstrip(" \t"))
            self.kind, self.word, self.end = "odd", self.text[self.start : self.start + 1], self.start + 1
            return
        self.kind, self.word = found.lastgroup, found[found.lastgroup]
        self.start, self.end = found.start(found.lastgroup), found.end()

    def statement(self) -> list[Line]:
        if self.kind == "end":
            return []
        at = self.stage()
        lines: list[Line] = []
        first = True
        while self.kind != "end":
            begin = self.start + 1
            self.take(".")
            name = self.take_kind("name", "the name of a directive")
            args, named = self.arguments()
            if name == "update":
                at = StageRef(at.func, self.updated(args, named, begin))
            else:
                lines.append(Line(at, self.directive(name, args, named, begin)))
            first = False
        if first:
            raise self.refuse("'.' and a directive")
        return lines

    def directive(self, name: str, args: list[Plain], named: dict[str, Plain], begin: int) -> Directive:
        try:
            return make(name, args, named, Span(self.file, self.line, begin, self.last))
        except StaxError as error:
            message = f"{self.file}, line {self.line}, column {begin + 1}: {error.message}"
            raise type(error)(message, error.places, error.facts, error.hint) from None

    def stage(self) -> StageRef:
        if not self.sees("name", "s"):
            raise self.refuse('s["..."]')
        self.advance()
        self.take("[")
        func = self.string()
        self.take("]")
        return StageRef(func)

    def arguments(self) -> tuple[list[Plain], dict[str, Plain]]:
        args: list[Plain] = []
        named: dict[str, Plain] = {}
        self.take("(")
        while not self.sees("mark", ")"):
            if self.kind == "name" and not self.sees("name", "s"):
                key = self.take_kind("name", "an argument")
                self.take("=")
                if key in named:
                    raise self.refuse(f"{key} only once")
                named[key] = self.value(0)
            elif named:
                raise self.refuse("a named argument")
            else:
                args.append(self.value(0))
            if not self.sees("mark", ")"):
                self.take(",", "',' or ')'")
        self.last = self.end
        self.take(")")
        return args, named

    def value(self, depth: int) -> Plain:
        match self.kind, self.word:
            case "string", _:
                return self.string()
            case "number", _:
                return self.number()
            case "name", "s":
                at = self.stage()
                if self.sees("mark", "."):
                    begin = self.end
                    self.advance()
                    if not self.sees("name", "update"):
                        raise self.refuse("'update'")
                    self.advance()
                    at = StageRef(at.func, self.updated(*self.arguments(), begin))
                return at
            case "mark", "(" if depth < 2:
                self.advance()
                values: list[Plain] = []
                while not self.sees("mark", ")"):
                    values.append(self.value(depth + 1))
                    if len(values) == 1 and self.sees("mark", ")"):
                        raise self.refuse("','")
                    if not self.sees("mark", ")"):
                        self.take(",", "',' or ')'")
                self.advance()
                return tuple(values)
            case _:
                raise self.refuse("a string or a number")

    def updated(self, args: list[Plain], named: dict[str, Plain], begin: int) -> int:
        match args:
            case [int(k)] if k >= 0 and not named:
                return k + 1
            case _:
                raise self.refuse("update(k) with k from 0", begin, self.last)

    def number(self) -> int | float:
        word = self.word
        if len(word.lstrip("-")) > _LONGEST_NUMBER:
            raise self.refuse("a shorter number")
        self.advance()
        return int(word) if re.fullmatch(r"-?[0-9]+", word) else float(word)

    def string(self) -> str:
        if self.kind != "string":
            raise self.refuse("a string")
        start = self.start

        def decode(found: re.Match[str]) -> str:
            short, two, four, eight, other = found.groups()
            code = int(two or four or eight or "0", 16)
            if other is not None or code > 0x10FFFF:
                raise self.refuse("an escape that a schedule may hold", start + 1 + found.start())
            return _SHORT.get(short, short) if short is not None else chr(code)

        value = _ESCAPE.sub(decode, self.word[1:-1])
        self.advance()
        return value

    def sees(self, kind: str, word: str) -> bool:
        return self.kind == kind and self.word == word

    def take(self, mark: str, wanted: str | None = None) -> None:
        if not self.sees("mark", mark):
            raise self.refuse(wanted or repr(mark))
        self.advance()

    def take_kind(self, kind: str, wanted: str) -> str:
        if self.kind != kind:
            raise self.refuse(wanted)
        word = self.word
        self.advance()
        return word

    def refuse(self, wanted: str, start: int | None = None, end: int | None = None) -> ScheduleError:
        start, end = self.start if start is None else start, self.end if end is None else end
        found = repr(self.text[start:end]) if self.text[start:end] else "the end of the line"
        return ScheduleError(
            f"{self.file}, line {self.line}, column {start + 1}: expected {wanted}, found {found}",
            [(Span(self.file, self.line, start, max(start + 1, end)), "here")],
            hint="a schedule holds directives, strings and numbers only, one statement a line",
        )


def _program(row: str) -> Program | None:
    """Return what the second line says, or None where it is a comment like another."""
    begin = re.match(r"# ([0-9a-f]{16})(?= |$)", row)
    if begin is None:
        return None
    dims: dict[str, tuple[str, ...]] = {}
    name = rf"(?:{_BARE.pattern}|\"(?:[^\"\\]|\\.)*\")"
    at = begin.end()
    for found in re.finditer(rf" ({name})\(((?:{name}(?:, {name})*)?)\)", row):
        if found.start() != at:
            return None
        at = found.end()
        dims[_unbare(found[1])] = tuple(_unbare(d) for d in re.findall(name, found[2]))
    return Program(begin[1], dims) if at == len(row.rstrip()) else None


def _bare(name: str) -> str:
    return name if _BARE.fullmatch(name) else quote(name)


def _unbare(word: str) -> str:
    return _Row("", 0, word).string() if word.startswith('"') else word


def _escape(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show_stage(at: StageRef) -> str:
    """Return a stage as it is written."""
    return f"s[{quote(at.func)}]" + (f".update({at.stage - 1})" if at.stage else "")


def _consumer(func: str, stage: int | None) -> str:
    return quote(func) if stage is None else show_stage(StageRef(func, stage))


def _tuple(words: Iterable[str]) -> str:
    found = list(words)
    return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"


def _number(n: int | None) -> str:
    return "" if n is None else f", {n}"


def _tail(tail: Tail) -> str:
    return "" if tail is Tail.GUARD else f", tail={quote(tail.value)}"
