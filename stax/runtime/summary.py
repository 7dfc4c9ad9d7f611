"""What a call must know of a compilation, kept by the key of the program, so that it is not compiled again.

The key is the hash of the frozen program, the lines of its schedule, the options, the target, and of the compiler's own
files. Under it lies what proof and lowering found out that a kernel needs before it needs code; under the key and the
facts of a version, which object code that is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from stax.algorithm.nodes import Pipeline
from stax.backends.artifact import Artifact, Facts, Slot, SlotKind
from stax.digest import flatten, restore
from stax.expr import nodes
from stax.expr.nodes import Expr
from stax.runtime.cache import Store, digest, llvm_version, sources
from stax.runtime.signature import Check, CheckKind, Output, Signature
from stax.source import Span
from stax.target import Target

_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (*nodes.Expr.__args__, nodes.Axis, nodes.UnaryOp, nodes.BinaryOp, nodes.Fn, CheckKind, Check, Output)
}


@dataclass(frozen=True, slots=True)
class Summary:
    """`outputs`, `checks`, `overwritten` and `positions` are those of the signature; `notes` are warnings to repeat."""

    outputs: tuple[Output, ...]
    checks: tuple[Check, ...]
    overwritten: tuple[tuple[str, str], ...]
    positions: frozenset[str]
    contract: str
    pixels: frozenset[str]
    packed: frozenset[tuple[str, int]]
    roundings: tuple[tuple[str, Expr | None], ...]
    notes: tuple[str, ...] = ()

    def signature(self, pipeline: Pipeline) -> Signature:
        """Return what a kernel of `pipeline` takes and gives."""
        return Signature(
            pipeline.inputs, pipeline.scalars, pipeline.tables, self.outputs, pipeline.arguments, self.checks,
            pipeline.outputs[0], self.overwritten, self.positions,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a program, and the places in the user's files in the order in which the program has them."""

    text: str
    places: tuple[Span | None, ...]


def program_key(pipeline: Pipeline, lines: Sequence[object], options: Sequence[object], target: Target) -> Key | None:
    """Return the key of a program; None for one that is no plain data."""
    try:
        rows, places = flatten((pipeline, tuple(lines), tuple(options)))
    except TypeError:
        return None
    machine = (target.triple, target.cpu, target.features, target.vector_bytes)
    sizes = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    rest = repr((machine, sizes, llvm_version(), sources()))
    return Key(digest("program", json.dumps(rows), rest), tuple(places))


def read_summary(store: Store, key: Key) -> Summary | None:
    """Return what is kept of a program, or None."""
    data = store.get(key.text)
    if data is None:
        return None
    try:
        return Summary(*restore(json.loads(data), _CLASSES, key.places))
    except (LookupError, TypeError, ValueError):
        return None


def write_summary(store: Store, key: Key, summary: Summary) -> None:
    """Keep what is known of a program, if that can be done."""
    if store.folder is None:
        return
    fields = tuple(getattr(summary, name) for name in Summary.__dataclass_fields__)
    try:
        rows, _ = flatten(fields, key.places)
    except TypeError:
        return
    store.put(key.text, json.dumps(rows).encode(), "program")


def artifact_key(key: Key, facts: Facts) -> str:
    """Return the key of a version."""
    said = (sorted(facts.dense), sorted(facts.aligned), sorted(facts.packed))
    return digest("artifact", key.text, repr(said))


def read_artifact(store: Store, key: Key, facts: Facts) -> Artifact | None:
    """Return a version, without its text, if its object code is there too."""
    data = store.get(artifact_key(key, facts))
    if data is None:
        return None
    try:
        entry, slots, object_ = json.loads(data)
        made = tuple(Slot(SlotKind(kind), name, dim) for kind, name, dim in slots)
    except ValueError:
        return None
    code = store.get(object_)
    return None if code is None else Artifact("", code, entry, made, facts)


def write_artifact(store: Store, key: Key, artifact: Artifact, object_: str) -> None:
    """Keep which object code a version has."""
    slots = [(s.kind.value, s.name, s.dim) for s in artifact.slots]
    data = json.dumps([artifact.entry, slots, object_]).encode()
    store.put(artifact_key(key, artifact.facts), data, "artifact")
