"""A Kernel -> an object, a C header, a shared library and a loader."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stax.aot import loader
from stax.aot.header import header
from stax.aot.interface import Array, Interface, interface
from stax.aot.link import link
from stax.aot.wrapper import uses_pool, wrapper
from stax.backends.artifact import Facts
from stax.backends.llvm.optimize import compile_linked
from stax.errors import ArgumentError, UnsupportedError
from stax.runtime.kernel import Kernel, refuse_other
from stax.runtime.pool import pool_text
from stax.runtime.signature import Signature


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that were written; `library` and `loader` are None where only the object and header were asked for."""

    object_file: Path
    header: Path
    library: Path | None
    loader: Path | None


def export(kernel: Kernel, path: str | Path, *, library: bool = True) -> Exported:
    """Write `kernel` as files that need nothing of stax, and return which they are.

    The last part of `path` names the exported function: "build/blur" gives build/blur.o, blur.h, libblur.so and a
    loader blur.py, which has a function blur() and imports ctypes alone. library: also link the library and write the
    loader; that takes a linker. The code is for the target that the kernel was compiled for.

    Raises ArgumentError where a name or a folder cannot be, BackendError where nothing here can link.

    >>> import tempfile, stax as sx
    >>> x, a, f = sx.Var("x"), sx.Input("a", sx.float32, 1), sx.Func("f")
    >>> f[x] = a[x] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = sx.export(sx.compile(f), f"{folder}/twice", library=False)
    ...     "int32_t twice(" in files.header.read_text()
    True
    """
    refuse_other(kernel, "export")
    target = kernel.build.target
    if target is None or kernel.provenance["backend"] != "llvm":
        raise UnsupportedError("a kernel that is interpreted has no machine code to export")
    place = Path(path)
    signature, facts = kernel.signature, kernel.usual_facts()
    face = interface(place.name, signature)
    artifact = kernel.build.respecialise(facts)
    if not artifact.text and kernel.build.printed is not None:  # the cache knew the code alone
        artifact = replace(artifact, text=kernel.build.printed(facts))
    printed, messages = wrapper(face, signature, artifact, target)
    texts = [artifact.text, printed]
    if uses_pool(artifact.text):
        texts.append(pool_text().replace("\ndefine i32 @stax_", "\ndefine weak_odr i32 @stax_")
                     .replace("\ndefine ptr @stax_", "\ndefine weak_odr ptr @stax_")
                     .replace("\ndefine void @stax_", "\ndefine weak_odr void @stax_"))  # fmt: skip
    code = compile_linked(texts, target, internal=(artifact.entry,))
    files = Exported(
        place.with_name(f"{face.name}.o"),
        place.with_name(f"{face.name}.h"),
        place.with_name(f"lib{face.name}.so") if library else None,
        place.with_name(f"{face.name}.py") if library else None,
    )
    _write(files.object_file, code)
    _write(files.header, header(face, signature, facts, target, messages.texts).encode())
    if files.library is not None and files.loader is not None:
        link(files.object_file, files.library)
        _write(files.loader, loader_text(face, signature, facts).encode())
    return files


def loader_text(face: Interface, signature: Signature, facts: Facts) -> str:
    """Return the Python file that loads the library beside it."""
    lines = ['    "name": ' + repr(face.name) + ",", f'    "signature": {str(signature)!r},', '    "arguments": [']
    over = {name: buffer for name, buffer in signature.overwritten}
    for one in face.arguments:
        if isinstance(one, Array):
            if one.input:
                kind = "written" if one.written else "array"
                lines.append(f"        ({kind!r}, {one.name!r}, {one.dtype.name!r}, {one.rank}, {one.input!r}, None),")
        else:
            lines.append(f"        ('number', {one.name!r}, {one.dtype.name!r}, 0, {one.param!r}, {one.default!r}),")
    lines += ["    ],", '    "outputs": [']
    held = {buffer: next(a.name for a in face.arrays if a.input == name) for name, buffer in over.items()}
    for out in signature.outputs:
        known = tuple(e is not None for e in out.shape)
        for buffer, dtype in zip(out.buffers, out.dtypes, strict=True):
            mine = held.get(buffer)
            lines.append(f"        ({out.name!r}, {buffer!r}, {dtype.name!r}, {len(out.shape)}, {known!r}, {mine!r}),")
    lines += ["    ],"]
    end = ["_INTERFACE = {", *lines, "}", f"{face.name} = Library("]
    end += [f'    os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib{face.name}.so"), _INTERFACE', ")"]
    return "\n".join([inspect.getsource(loader).rstrip(), "", "", *end]) + "\n"


def _write(file: Path, data: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise ArgumentError(f"cannot write {file}: {error.strerror}") from None


def files_of(exported: Exported) -> list[Any]:
    """Return the files that there are."""
    return [f for f in (exported.object_file, exported.header, exported.library, exported.loader) if f is not None]
