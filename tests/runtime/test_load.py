"""Object code becomes callable, errors are LLVM's words, and code lives as long as who holds it."""

from __future__ import annotations

import ctypes
import gc
import math
import threading
import weakref

import pytest

from stax.errors import BackendError
from stax.runtime.load import load
from tests.runtime.artifacts import assemble

SEVEN = "define i32 @f() { ret i32 7 }"


def call(address: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int32)(address)()


def test_a_loaded_function_runs() -> None:
    code = load(assemble(SEVEN), ("f",))
    assert call(code.addresses["f"]) == 7


def test_an_import_is_found_by_its_address() -> None:
    inner = load(assemble(SEVEN), ("f",))
    text = "declare i32 @seven()\ndefine i32 @g() {\n %r = call i32 @seven()\n ret i32 %r\n}"
    outer = load(assemble(text), ("g",), {"seven": inner.addresses["f"]})
    assert call(outer.addresses["g"]) == 7


def test_the_c_libraries_are_found_by_themselves() -> None:
    """And the mathematical one, which float64 functions are calls of."""
    for name in ("sin", "exp", "erf", "tanh", "log1p"):
        text = f"declare double @{name}(double)\ndefine double @f(double %x) {{\n %r = call double @{name}(double %x)"
        code = load(assemble(text + "\n ret double %r\n}"), ("f",))
        function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.addresses["f"])
        assert function(0.5) == getattr(math, name)(0.5)


def test_a_missing_symbol_is_an_error_in_llvms_words(capfd: pytest.CaptureFixture[str]) -> None:
    """And nothing is printed beside it."""
    text = "declare void @no_such_thing()\ndefine void @f() {\n call void @no_such_thing()\n ret void\n}"
    with pytest.raises(BackendError, match="Failed to materialize symbols"):
        load(assemble(text), ("f",))
    assert capfd.readouterr().err == ""


def test_a_missing_entry_is_named() -> None:
    with pytest.raises(BackendError, match=r"Symbols not found.*other"):
        load(assemble(SEVEN), ("other",))


@pytest.mark.parametrize("cut", [0, 1, 20, 100, 300])
def test_damaged_code_is_refused(cut: int) -> None:
    with pytest.raises(BackendError, match="could not be loaded"):
        load(assemble(SEVEN)[:cut], ("f",))


def test_loading_works_after_a_failure() -> None:
    with pytest.raises(BackendError):
        load(b"", ("f",))
    code = load(assemble(SEVEN), ("f",))
    assert call(code.addresses["f"]) == 7


def test_code_is_released_with_its_holder() -> None:
    code = load(assemble(SEVEN), ("f",))
    tracker = weakref.ref(code.tracker)
    del code
    gc.collect()
    assert tracker() is None


def test_several_threads_load_at_once() -> None:
    data, found = assemble(SEVEN), list[int]()

    def work() -> None:
        for _ in range(10):
            code = load(data, ("f",))
            found.append(call(code.addresses["f"]))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert found == [7] * 40
