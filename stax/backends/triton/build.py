"""Compile printed kernels for an NVIDIA GPU that need not be there: text in, code for its loader out.

Triton's own launchers and drivers are not used: the code is loaded by `runtime.cuda`, so that a warm process, which
finds it in the cache, imports no Triton.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import linecache
import re
import subprocess
import sys
import tempfile
import types
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from stax.backends.triton.source import Source
from stax.errors import BackendError
from stax.target import GPU_SHARED_BYTES


@dataclass(frozen=True, slots=True)
class Binary:
    """The code of one kernel: a cubin, its function, the threads of a program, its shared memory in bytes.

    `hidden` pointers follow the arguments: memory that Triton may ask for, and that no kernel of ours needs.
    """

    name: str
    code: bytes
    threads: int
    shared: int
    hidden: int

    def packed(self) -> bytes:
        """Return it as bytes, for a cache."""
        head = {k: v for k, v in asdict(self).items() if k != "code"}
        return json.dumps(head).encode() + b"\n" + self.code

    @staticmethod
    def unpacked(data: bytes) -> Binary:
        """Return what `packed` gave."""
        head, _, code = data.partition(b"\n")
        return Binary(code=code, **json.loads(head))


def version() -> str:
    """Return Triton's version, which it is not imported for."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        raise BackendError("Triton is not installed", hint="pip install 'stax[gpu]'") from None


def determinants(source: Source, capability: int) -> tuple[str, ...]:
    """Return all that the code of a kernel depends on."""
    arguments = ",".join(f"{a.type}/{a.factor}" for a in source.arguments)
    return (source.text, arguments, str(capability), f"{source.warps}/{source.stages}/{source.fusion}", version())


def build(source: Source, capability: int, folder: Path | None = None) -> Binary:
    """Return the code of `source` for GPUs of `capability`; the text is kept in `folder`, for people and debuggers."""
    done = compiled(source, capability, folder)
    meta = done.metadata
    if getattr(meta, "global_scratch_size", 0) or getattr(meta, "profile_scratch_size", 0):
        raise BackendError(f"Triton wants memory of its own for kernel `{meta.name}`")
    if meta.shared > GPU_SHARED_BYTES:
        raise BackendError(
            f"kernel `{meta.name}` takes {meta.shared} bytes of shared memory, and a GPU has {GPU_SHARED_BYTES}",
            hint="take smaller tiles, or fewer stages",
        )
    entry = re.search(r"\.entry\s+\w+\s*\((.*?)\)", done.asm["ptx"], re.DOTALL)
    hidden = 0 if entry is None else entry[1].count(".param") - len(source.arguments)
    return Binary(meta.name, done.asm["cubin"], 32 * meta.num_warps, meta.shared, hidden)


def compiled(source: Source, capability: int, folder: Path | None = None) -> Any:
    """Return what Triton's compiler gives for `source`."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.errors import TritonError

    function = getattr(load_source(source.text, source.kernel.name, folder), source.kernel.name)
    signature = dict(zip(function.arg_names, (a.type for a in source.arguments), strict=True))
    attrs = {(k,): [["tt.divisibility", a.factor]] for k, a in enumerate(source.arguments) if a.factor > 1}
    options = {"num_warps": source.warps, "num_stages": source.stages, "enable_fp_fusion": source.fusion}
    try:
        done = cast(Any, triton).compile(
            ASTSource(function, signature, {}, attrs), target=GPUTarget("cuda", capability, 32), options=options
        )
    except (TritonError, RuntimeError, ValueError, IndexError) as error:
        raise BackendError(
            f"Triton cannot compile kernel `{source.kernel.name}`", facts=str(error).splitlines()[-8:]
        ) from error
    return done


@dataclass(frozen=True, slots=True)
class Usage:
    """What one kernel uses on the GPU, and its code as PTX."""

    name: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    ptx: str


def usage(source: Source, capability: int = 90) -> Usage:
    """Return what `source` uses when compiled for GPUs of `capability`."""
    import triton

    done = compiled(source, capability)
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(done.asm["cubin"])
        file.flush()
        told = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"(REG|LOCAL|STACK):(\d+)", told.stdout + told.stderr))
    spilled = int(found["LOCAL"]) + int(found["STACK"])
    return Usage(source.kernel.name, int(found["REG"]), spilled, int(done.metadata.shared), str(done.asm["ptx"]))


def load_source(text: str, name: str, folder: Path | None = None) -> types.ModuleType:
    """Return the module made of `text`, from a file in `folder` or, where none can be had, without one."""
    stem = f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path = _written(text, folder / f"{stem}.py") if folder is not None else f"<{stem}>"
    if path in sys.modules:
        return sys.modules[path]
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    module = types.ModuleType(path)
    module.__file__ = path
    sys.modules[path] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def _written(text: str, path: Path) -> str:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text)
    except OSError:
        return f"<{path.stem}>"
    return str(path)
