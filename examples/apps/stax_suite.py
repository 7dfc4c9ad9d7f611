"""The applications in stax, in the form that `peers/run.py` takes.

    python examples/apps/peers/run.py --suite halide,examples/apps/stax_suite.py --variants hand,stax --apps blur3x3

Variant `stax` is the default schedule; `auto` is what `auto_schedule` wrote into `schedules/cpu/APP.auto.stax`; `hand`
and `hand_WORD` are the schedules `schedules/cpu/APP.stax` and `schedules/cpu/APP_WORD.stax`. `fp="default"`, never the
interpreter; the output array is allocated once, as for Halide.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent / "peers")]

import apps

import stax as sx
from examples.apps import algebra, imaging, layers, plates, pyramids, windows

NAME = "stax"
SCHEDULES = Path(__file__).resolve().parents[2] / "schedules" / "cpu"
SAME = {"sgemm1024": "sgemm", "sgemm2048": "sgemm"}
PROGRAMS: dict[str, Callable[[], sx.Func]] = {
    "blur3x3": imaging.blur3x3,
    "unsharp": imaging.unsharp,
    "harris": imaging.harris,
    "bilateral_grid": imaging.bilateral_grid,
    "local_laplacian": pyramids.local_laplacian,
    "interpolate": pyramids.interpolate,
    "nl_means": windows.nl_means,
    "max_filter": windows.max_filter,
    "stencil_chain": windows.stencil_chain,
    "camera_pipe": lambda: imaging.camera_pipe(apps.CAM_M, apps.camera_curve(), apps.CAM_STRENGTH),
    "hist_eq": imaging.hist_eq,
    "iir_blur": imaging.iir_blur,
    "conv_layer": layers.conv_layer,
    "dsc": layers.dsc,
    "sgemm1024": algebra.sgemm,
    "sgemm2048": algebra.sgemm,
    "softmax": algebra.softmax,
    "layernorm": algebra.layernorm,
    "rows": algebra.rows,
    "gelu_bias_res": algebra.gelu_bias_res,
    "rownorm": algebra.rownorm,
    "heat2d": plates.heat2d,
    "seidel2d": plates.seidel2d,
}
MORE: dict[str, Callable[[], sx.Func]] = {
    "transposed_sgemm": algebra.transposed_sgemm,
    "max_plus": algebra.max_plus,
}
"""Programs that no peer has, with hand schedules of the same names."""


def variants(app: str) -> list[str]:
    """Return the variants of `app`: none where it is not written in stax."""
    return ["stax", "auto", *by_hand(app)] if app in PROGRAMS else []


def by_machine(app: str) -> Path:
    """Return the file with the automatic schedule of `app`."""
    return SCHEDULES / f"{SAME.get(app, app)}.auto.stax"


def by_hand(app: str) -> dict[str, Path]:
    """Return the files with hand schedules of `app`, by the names of their variants."""
    stem = SAME.get(app, app)
    found = {path.stem.removeprefix(stem): path for path in sorted(SCHEDULES.glob(f"{stem}*.stax"))}
    return {f"hand{word}": path for word, path in found.items() if word == "" or word.startswith("_")}


def arguments(app: str, inputs: dict[str, np.ndarray], params: dict[str, Any]) -> dict[str, Any]:
    """Return what the kernel of `app` is called with."""
    return {**inputs, **({"steps": params["steps"]} if "steps" in params else {})}


def build(
    app: str,
    inputs: dict[str, np.ndarray],
    params: dict[str, Any] | None = None,
    variant: str = "stax",
    threads: int = 2,
) -> Callable[[], np.ndarray]:
    """Return a callable that runs `app` on `inputs` into one array and returns it."""
    start = time.perf_counter()
    program = PROGRAMS[app]()
    schedule = None
    if variant != "stax":
        schedule = sx.Schedule.load(by_machine(app) if variant == "auto" else by_hand(app)[variant], program)
    kernel = sx.compile(program, schedule, fp="default", strict_native=True)
    run = kernel.bind(**arguments(app, inputs, params or apps.APPS[app].params("full")), threads=threads)
    info = {"define_s": time.perf_counter() - start, "schedule": str(kernel.schedule)}

    def call() -> np.ndarray:
        return run()

    call.info = info  # type: ignore[attr-defined]
    return call
