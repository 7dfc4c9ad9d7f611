"""The C header of an exported library."""

from __future__ import annotations

from collections.abc import Sequence

from stax.aot.interface import Array, Interface, Number, c_type
from stax.backends.artifact import Facts
from stax.runtime.signature import Signature
from stax.target import Target


def header(face: Interface, signature: Signature, facts: Facts, target: Target, messages: Sequence[str]) -> str:
    """Return the header: what is declared, what is asked of arrays, and what the codes mean."""
    guard = f"STAX_{face.name.upper()}_H"
    about = [
        f"/* {_plain(str(signature))}",
        "",
        f"   Made by stax for {target.cpu} ({target.triple}); it needs nothing of stax.",
        "",
        "   Extents are in elements, strides in bytes; null strides are those of a dense array in C order. Strides",
        "   may be any, but for the last dimension, which steps by one element, and for those of what is written,",
        "   which are in C order. Arrays are aligned to their elements, and what is written overlaps nothing else.",
        "   All this is checked: the result is 0, or a code. `threads`: how many may run, the caller being one.",
    ]
    pixels = sorted(facts.packed)
    about += [f"   `{name}` has {n} channels, the last dimension, side by side." for name, n in pixels]
    about += ["", "   Codes:", "      1  out of memory"]
    about += [f"   {-k:4}  {_plain(text)}" for k, text in enumerate(messages, 1)]
    about[-1] += " */"
    lines = [f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", "", *about, ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [_declared(f"int32_t {face.name}", [*(_argument(a) for a in face.arguments), "int32_t threads"])]
    if face.shapes:
        lines += ["", "/* Fills the shapes that the inputs serve; an extent that nothing says is left as it is. */"]
        taken = [_asked(a) for a in face.arguments if isinstance(a, Number) or (a.input and a.rank)]
        taken += [f"int64_t {s.name}[{len(s.known)}]" for s in face.shapes]
        lines += [_declared(f"int32_t {face.name}_shape", taken)]
    lines += [
        "",
        "/* What a code means; the text is never freed. */",
        f"const char *{face.name}_message(int32_t code);",
    ]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "#endif"]
    return "\n".join(lines) + "\n"


def _declared(head: str, arguments: Sequence[str]) -> str:
    return f"{head}(\n    " + ",\n    ".join(arguments) + ");"


def _argument(one: Array | Number) -> str:
    if isinstance(one, Number):
        return f"{c_type(one.dtype)} {one.name}"
    pointer = f"{'' if one.written else 'const '}{c_type(one.dtype)} *{one.name}"
    if not one.rank:
        return pointer
    return f"{pointer}, const int64_t {one.name}_shape[{one.rank}], const int64_t {one.name}_strides[{one.rank}]"


def _asked(one: Array | Number) -> str:
    if isinstance(one, Number):
        return f"{c_type(one.dtype)} {one.name}"
    return f"const int64_t {one.name}_shape[{one.rank}]"


def _plain(text: str) -> str:
    """Return `text` as part of a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")
