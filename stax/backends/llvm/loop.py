"""Serial loops: tested once before, then at the end of each iteration; carried values are phis."""

from __future__ import annotations

from stax.backends.llvm import stmt, types
from stax.backends.llvm.expr import concrete, emit
from stax.backends.llvm.lanes import Part, scalar
from stax.backends.llvm.state import Bound, State
from stax.expr.nodes import INDEX
from stax.loops import walk
from stax.loops.nodes import For, LoopKind

_BUDGET = 20_000


def emit_for(s: State, node: For) -> None:
    """Append a loop; one of kind UNROLL and constant extent as copies of its body, within a budget of nodes."""
    start, extent = emit(s, node.start)[0], emit(s, node.extent)[0]
    count = extent.offset if extent.text == "0" else types.known(extent.text)
    if count is not None and count <= 0:
        _keep(s, node, [emit(s, c.init) for c in node.carries])
    elif count == 1 or (count is not None and node.kind is LoopKind.UNROLL and count * _weight(node) <= _BUDGET):
        _copies(s, node, start, count)
    else:
        _loop(s, node, start, extent, count)


def _weight(node: For) -> int:
    return len(walk.nodes(node.body)) + 1


def _keep(s: State, node: For, values: list[list[Part]]) -> None:
    """Bind carries for what follows the loop."""
    for c, parts in zip(node.carries, values, strict=True):
        s.scopes[-1].names[c.name.name] = Bound(c.name.dtype, c.name.axes, parts)


def _copies(s: State, node: For, start: Part, count: int) -> None:
    carried = [emit(s, c.init) for c in node.carries]
    for k in range(count):
        step = count - 1 - k if node.down else k
        with s.scope() as scope:
            scope.names[node.var.name] = Bound(INDEX, (), [Part(start.text, 0, start.offset + step)])
            _keep(s, node, carried)
            stmt.emit_block(s, node.body)
            carried = [emit(s, c.next) for c in node.carries]
    _keep(s, node, carried)


def _loop(s: State, node: For, start: Part, extent: Part, count: int | None) -> None:
    f = s.f
    low, n = scalar(f, start, INDEX), scalar(f, extent, INDEX)
    axes = [c.name.axes for c in node.carries]
    inits = [concrete(s, emit(s, c.init), c.name.dtype, c.name.axes) for c in node.carries]
    end = f.add(low, n)
    first, last = (f.add(end, "-1"), low) if node.down else (low, f.add(end, "-1"))
    body, done = f.label("loop"), f.label("done")
    before = f.block
    if count is None:
        some = f.put(f"icmp sgt i64 {n}, 0")
        f.act(f"br i1 {some}, label %{body}, label %{done}")
    else:
        f.act(f"br label %{body}")
    f.begin(body)
    at = len(f.lines)
    var = f.name()
    phis = [[f.name() for _ in parts] for parts in inits]
    kinds = [
        [types.value(c.name.dtype, run.width) for run in s.context.layout.widths(c.name.axes)] for c in node.carries
    ]
    slopes = [[None if run.width else 0 for run in s.context.layout.widths(a)] for a in axes]

    def named(names: list[list[str]]) -> list[list[Part]]:
        return [[Part(p, k) for p, k in zip(ps, ks, strict=True)] for ps, ks in zip(names, slopes, strict=True)]

    with f.part(repeated=True), s.scope() as scope:
        scope.names[node.var.name] = Bound(INDEX, (), [Part(var)])
        _keep(s, node, named(phis))
        s.loops += 1
        stmt.emit_block(s, node.body)
        s.loops -= 1
        nexts = [concrete(s, emit(s, c.next), c.name.dtype, c.name.axes) for c in node.carries]
        after = f.name()
        f.act(f"{after} = add nsw i64 {var}, {-1 if node.down else 1}")
        more = f.name()
        f.act(f"{more} = icmp ne i64 {var}, {last}")
        latch = f.block
        f.act(f"br i1 {more}, label %{body}, label %{done}, !llvm.loop {f.module.loop()}")
    heads = [f"  {var} = phi i64 [ {first}, %{before} ], [ {after}, %{latch} ]"]
    ends: list[str] = []
    results: list[list[str]] = []
    for kind, names, old, new in zip(kinds, phis, inits, nexts, strict=True):
        results.append([])
        for k, p, a, b in zip(kind, names, old, new, strict=True):
            heads.append(f"  {p} = phi {k} [ {a.text}, %{before} ], [ {b.text}, %{latch} ]")
            if count is None:
                results[-1].append(f.name())
                ends.append(f"{results[-1][-1]} = phi {k} [ {a.text}, %{before} ], [ {b.text}, %{latch} ]")
            else:
                results[-1].append(b.text)
    f.lines[at:at] = heads
    f.begin(done)
    for line in ends:
        f.act(line)
    _keep(s, node, named(results))
