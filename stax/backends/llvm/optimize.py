"""LLVM text -> object code. llvmlite is loaded when first used."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import cache
from typing import Any

from stax.errors import BackendError
from stax.target import Target

SHORT = "; a few passes are enough"
_REDUCTIONS = (
    "add", "and", "fadd", "fmaximum", "fminimum", "fmul", "mul", "or", "smax", "smin", "umax", "umin", "xor",
)  # fmt: skip
_INTRINSICS = frozenset({
    "abs", "ceil", "copysign", "ctlz", "ctpop", "fabs", "floor", "fma", "fptosi.sat", "fptoui.sat", "masked.load",
    "masked.store", "maximum", "minimum", "prefetch", "rint", "sadd.sat", "smax", "smin", "smul.with.overflow", "sqrt",
    "memset", "readcyclecounter", "sadd.with.overflow", "ssub.sat", "ssub.with.overflow", "trunc", "uadd.sat", "umax",
    "umin", "usub.sat",
    "x86.sse.sfence",
    *(f"vector.reduce.{name}" for name in _REDUCTIONS),
})  # fmt: skip
_CALLED = re.compile(r"@llvm\.([\w.]+?)(?:\.(?:v\d+)?(?:i|f|p)\d+)*\(")


def compile_text(text: str, target: Target, quick: bool = False) -> bytes:
    """Return the object code of the module `text`: position independent, the same bytes in every process.

    quick: with a few passes, and less thought about each instruction.

    Raises BackendError, in LLVM's words, where the text is not what LLVM takes.
    """
    return compile_linked((text,), target, quick=quick)


def compile_linked(texts: Sequence[str], target: Target, internal: Sequence[str] = (), quick: bool = False) -> bytes:
    """Return one object of several modules; the functions `internal` are seen by no other object.

    The first says how it is optimised.
    """
    for text in texts:
        _look(text)
    from llvmlite import binding

    machine = _machine(target, 1 if quick else 2)
    with ExitStack() as opened:
        # Modules have a context of their own, so that threads may compile at a time; they go before it does.
        context = opened.enter_context(closing(binding.create_context()))
        try:
            module = opened.enter_context(closing(binding.parse_assembly(texts[0], context)))
            for text in texts[1:]:
                module.link_in(opened.enter_context(closing(binding.parse_assembly(text, context))))
            for name in internal:
                module.get_function(name).linkage = "internal"
            module.triple, module.data_layout = target.triple, str(machine.target_data)
            module.verify()
            _run_passes(binding, module, machine, SHORT if quick else texts[0])
            return _emitted(machine, module)
        except RuntimeError as error:
            words = str(error)
    raise BackendError("LLVM does not take the text that was printed for it", facts=[words])


def _look(text: str) -> None:
    """Refuse what LLVM aborts the process on, where it cannot lower it."""
    unknown = sorted(set(_CALLED.findall(text)) - _INTRINSICS)
    if unknown or "vscale" in text:
        raise BackendError(f"no text for LLVM may use {f'llvm.{unknown[0]}' if unknown else 'vectors of unknown size'}")


def _run_passes(binding: Any, module: Any, machine: Any, text: str) -> None:
    tuning = binding.create_pipeline_tuning_options(speed_level=1)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    tuning.loop_unrolling = tuning.loop_interleaving = False
    builder = binding.create_pass_builder(machine, tuning)
    if text.startswith(SHORT):
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    _free("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def _emitted(machine: Any, module: Any) -> bytes:
    """Return the object code of a module, as `machine.emit_object` does."""
    from llvmlite.binding import ffi

    lib: Any = ffi.lib
    with ffi.OutputString() as words:
        buffer = _free("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, words)
        if not buffer:
            raise RuntimeError(str(words))
    try:
        return ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
    finally:
        lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _free(name: str) -> Any:
    """Return a function of llvmlite without the lock that it holds around each: modules here share nothing."""
    from llvmlite.binding import ffi

    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


@cache
def _started() -> None:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()  # for the one instruction of the pool that is written as assembly


def _machine(target: Target, opt: int = 2) -> Any:
    from llvmlite import binding

    _started()
    try:
        found = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise BackendError(f"LLVM has no target {target.triple}", facts=[str(error)]) from error
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt, reloc="pic", codemodel="default", jit=True
    )


def assembled(text: str, target: Target) -> str:
    """Return the assembly that the module `text` becomes, for people to read."""
    from llvmlite import binding

    machine = _machine(target)
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    module.verify()
    _run_passes(binding, module, machine, text)
    return str(machine.emit_assembly(module))
