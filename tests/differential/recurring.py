"""Kinds of random Funcs that need an order or a domain: triangles, arms that keep, skewed steps, members that lag."""

from __future__ import annotations

from typing import Any, TypeAlias

from tests.differential.generate import Scope, Source, Term

Drawer: TypeAlias = Any
"""What draws a program: `generate` calls these functions with itself."""

DOMAINS = (
    ("{b} <= {a}", "({a} > 0) & ({b} > 0)"),
    ("{b} >= {a}", "{a} > 0"),
    ("({b} <= {a} + 1) & ({b} >= {a} - 2)", "({a} > 0) & ({b} > 0)"),
    ("{a} + {b} <= {top}", None),
    ("({b} <= {a}) & ({b} > 0)", None),
)
SKEWED = (
    ((-1, 2), (1, -3)), ((1, -1), (-1, -1)), ((1, 1), (-1, 1)), ((2, -3), (-3, 5)), ((-1, 1), (1, 0)),
    ((-2, 1), (1, -1)),
)  # fmt: skip


def triangle(d: Drawer) -> str:
    """Return a Func that reads one with a domain, or that one: a triangle or a band, a recurrence now and then."""
    r = d.r
    dims = d._dims(2)
    a, b = dims
    name, dtype = d.fresh("w"), d._dtype()
    shape, ceils = d._declare(2, 2)  # so large that no domain is empty
    scope = d._scope(dims, [0, 0], ceils)
    form, back = r.choice(DOMAINS)
    cond = form.format(a=a, b=b, top=ceils[0])
    value: Term = d.expr(dtype, scope)
    if back is not None and r.random() < 0.5:
        before = Term(dtype, [f"{name}[{a} - 1, {b} - 1]"])
        step = r.choice(d._steps(dtype))
        inner = Term(dtype, [step[0], before, step[1], Term(dtype, ["(", value, ")"]), step[2]])
        value = Term(
            dtype, [f"sx.select({back.format(a=a, b=b)}, ", inner, ", ", d.expr(dtype, Scope(scope.names, 1)), ")"]
        )
        d.word("recurrence in a domain")
    d.say(f'{name} = sx.Func("{name}", dtype=sx.{_type(dtype)}, shape={shape}, where=lambda {a}, {b}: {cond})')
    d.out.declared.add(name)
    d.say(f"{name}[{a}, {b}] = ", value)
    if r.random() < 0.25 and dtype != "bool":
        d.say(f"{name}[{a}, {b}] += ", d.expr(dtype, Scope(scope.names, 1)))
    d.word("Func with a domain")
    d.sources.append(Source(name, (dtype,), [0, 0], ceils, [None] * 2, "closed"))
    if r.random() < 0.3:
        return name
    reader = d.fresh("f")
    d.say(f'{reader} = sx.Func("{reader}", shape={shape})')
    d.out.declared.add(reader)
    read = Term(dtype, [f"{name}[{a}, {b}]"])
    other = d.expr(dtype, Scope(scope.names, 1))
    d.say(f"{reader}[{a}, {b}] = ", Term(dtype, [f"sx.select({cond}, ", read, ", ", other, ")"]))
    d.sources.append(Source(reader, (dtype,), [0, 0], ceils, [None] * 2))
    d.out.words[name] = set(d.current)
    return reader


def keeping(d: Drawer) -> str:
    """Return the last step of a recurrence of which an arm keeps the value of the step before."""
    r = d.r
    t, x = d._dims(2)
    name, dtype = d.fresh("k"), d._dtype()
    shape, ceils = d._declare(2)
    last, top = ceils
    scope = d._scope([t, x], [0, 0], ceils)
    runs = r.choice((f"{x} >= {t}", f"{x} < {t}", f"{x} > 0", f"({x} > 0) & ({x} < {top})", f"{x} + {t} <= {top}"))
    kept = f"{name}[{t} - 1, {x}]"
    d.say(f'{name} = sx.Func("{name}", dtype=sx.{_type(dtype)}, shape={shape})')
    d.out.declared.add(name)
    d.say(f"{name}[0, {x}] = ", d.expr(dtype, Scope(scope.names[1:], 1)))
    moved: Term = Term(dtype, [kept])
    if r.random() < 0.6:
        beside, inside = r.choice(((f"{x} + 1", f"{x} < {top}"), (f"{x} - 1", f"{x} > 0")))
        step = r.choice(d._steps(dtype))
        read = Term(dtype, [f"sx.select({inside}, {name}[{t} - 1, {beside}], {kept})"])
        moved = Term(dtype, [step[0] or "(", moved, step[1], read, step[2] or ")"])
    step = r.choice(d._steps(dtype))
    new = Term(dtype, [step[0], moved, step[1], Term(dtype, ["(", d.expr(dtype, Scope(scope.names, 1)), ")"]), step[2]])
    d.say(f"{name}[{t}, {x}] = sx.select({runs}, ", new, f", {kept})")
    d.word("recurrence that keeps")
    d.sources.append(Source(name, (dtype,), [0, 0], ceils, [None] * 2))
    d.out.words[name] = set(d.current)
    reader = d.fresh("f")
    d.say(f'{reader} = sx.Func("{reader}", shape=({top} + 1,))')
    d.out.declared.add(reader)
    d.say(f"{reader}[{x}] = {name}[{last}, {x}]")
    d.sources.append(Source(reader, (dtype,), [0], [top], [None]))
    return reader


def skewed(d: Drawer) -> str:
    """Return a recurrence whose dims have no order one by one, or only another one than theirs."""
    r = d.r
    dims = d._dims(2)
    name, dtype = d.fresh("c"), d._dtype()
    shape, ceils = d._declare(2)
    scope = d._scope(dims, [0, 0], ceils)
    value = d.expr(dtype, Scope(scope.names, 2))
    for way in r.choice(SKEWED):
        inside = " & ".join(f"({v} + {s} >= 0) & ({v} + {s} <= {c})" for v, s, c in zip(dims, way, ceils, strict=True))
        read = f"{name}[{', '.join(f'{v} + {s}' for v, s in zip(dims, way, strict=True))}]"
        own = Term(dtype, [f"sx.select({inside}, {read}, ", d.expr(dtype, Scope(scope.names, 1)), ")"])
        step = r.choice(d._steps(dtype))
        value = Term(dtype, [step[0] or "(", Term(dtype, ["(", value, ")"]), step[1], own, step[2] or ")"])
    d.say(f'{name} = sx.Func("{name}", dtype=sx.{_type(dtype)}, shape={shape})')
    d.out.declared.add(name)
    d.say(f"{name}[{', '.join(dims)}] = ", value)
    d.word("recurrence in an order of its own")
    d.sources.append(Source(name, (dtype,), [0, 0], ceils, [None] * 2))
    return name


def lagging(d: Drawer) -> str:
    """Return the second of two Funcs that read each other, of which it lags behind the first."""
    r = d.r
    t, *rest = d._dims(r.choice((1, 2)))
    u, v, dtype = d.fresh("u"), d.fresh("v"), d._dtype()
    shape, ceils = d._declare(1 + len(rest))
    top = ceils[0]
    scope = d._scope([t, *rest], [0] * (1 + len(rest)), ceils)
    ahead = r.choice((1, 2, -1, -2))
    behind = -ahead + r.choice((-1, -2) if ahead > 0 else (1, 2))
    for name in (u, v):
        d.say(f'{name} = sx.Func("{name}", dtype=sx.{_type(dtype)}, shape={shape})')
        d.out.declared.add(name)
    for name, other, way in ((u, v, behind), (v, u, ahead)):
        inside = f"({t} + {way} >= 0) & ({t} + {way} <= {top})"
        read = f"{other}[{', '.join([f'{t} + {way}', *rest])}]"
        own = Term(dtype, [f"sx.select({inside}, {read}, ", d.expr(dtype, Scope(scope.names, 1, False)), ")"])
        step = r.choice(d._steps(dtype))
        more = d.expr(dtype, Scope(scope.names, 1, False))
        value = Term(dtype, [step[0], own, step[1], Term(dtype, ["(", more, ")"]), step[2]])
        d.say(f"{name}[{', '.join([t, *rest])}] = ", value)
    d.word("group with a lag")
    none: list[Any] = [None] * (1 + len(rest))
    for name in (u, v):
        d.sources.append(Source(name, (dtype,), [0] * (1 + len(rest)), ceils, none))
    d.out.words[u] = set(d.current)
    return v


def _type(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype
