"""`stax demo`: a photograph sharpened, shown, timed and checked."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import typer

from stax import dtypes
from stax.cli.programs import write
from stax.compiler import auto_schedule, host, threads_of
from stax.compiler import compile as compile_
from stax.errors import ArgumentError
from stax.lang.func import Func
from stax.lang.inputs import Input, Param
from stax.lang.math import cast, rint, saturating_cast
from stax.lang.pad import pad
from stax.lang.var import vars as vars_
from stax.measure.bench import bench
from stax.testing import interpret

Image = np.ndarray[Any, Any]
_BELL = np.exp(-(np.arange(4) ** 2) / 4.5)
WEIGHTS: tuple[float, ...] = tuple((_BELL / (_BELL[0] + 2 * _BELL[1:].sum())).tolist())
AMOUNT = 2.0


def unsharp() -> Func:
    """Return a Func that adds to each colour of `photo` what a Gaussian takes from the brightness."""
    c, y, x = vars_("c y x")
    photo = Input("photo", dtypes.uint8, (3, None, None), dims="c y x")
    amount = Param("amount", dtypes.float32, default=AMOUNT, low=0)
    light, rows, soft = Func("light"), Func("rows"), Func("soft")
    p = pad(photo, "edge", axes=(1, 2))
    red, green, blue = (cast(p[k, y, x], dtypes.float32) for k in range(3))
    light[y, x] = 0.299 * red + 0.587 * green + 0.114 * blue
    w = WEIGHTS
    rows[y, x] = w[0] * light[y, x] + sum(w[k] * (light[y - k, x] + light[y + k, x]) for k in (1, 2, 3))
    soft[y, x] = w[0] * rows[y, x] + sum(w[k] * (rows[y, x - k] + rows[y, x + k]) for k in (1, 2, 3))
    sharp = Func("sharp", shape=photo.shape)
    sharp[c, y, x] = saturating_cast(rint(photo[c, y, x] + amount * (light[y, x] - soft[y, x])), dtypes.uint8)
    return sharp


def unsharp_numpy(photo: Image, amount: float = AMOUNT) -> Image:
    """Return the same, as one writes it in NumPy."""
    _, h, w = photo.shape
    p = np.pad(photo, ((0, 0), (3, 3), (3, 3)), mode="edge").astype(np.float32)
    light = np.float32(0.299) * p[0] + np.float32(0.587) * p[1] + np.float32(0.114) * p[2]
    g = [np.float32(v) for v in WEIGHTS]
    rows, soft = g[0] * light[3 : 3 + h], np.float32(0)
    for k in (1, 2, 3):
        rows = rows + g[k] * (light[3 - k : 3 - k + h] + light[3 + k : 3 + k + h])
    for k in (1, 2, 3):
        soft = soft + g[k] * (rows[:, 3 - k : 3 - k + w] + rows[:, 3 + k : 3 + k + w])
    soft = soft + g[0] * rows[:, 3 : 3 + w]
    detail = np.float32(amount) * (light[3:-3, 3:-3] - soft)
    return np.clip(np.rint(photo + detail), 0, 255).astype(np.uint8)


def photograph() -> Image:
    """Return a photograph in the public domain that matplotlib ships: Grace Hopper, uint8 (3, y, x)."""
    from matplotlib import get_data_path
    from PIL import Image as pillow

    file = Path(get_data_path()) / "sample_data" / "grace_hopper.jpg"
    if not file.is_file():
        raise ArgumentError(f"matplotlib's sample photograph is not there: {file}", hint="pip install matplotlib")
    with pillow.open(file) as image:
        return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))


def run_demo(out: Path, threads: int | None, strict: bool, rounds: int) -> None:
    """Sharpen the photograph, write before and after to `out`, and say how and how fast; ArgumentError if wrong."""
    photo, program = photograph(), unsharp()
    schedule = auto_schedule(program, arrays={"photo": photo}, require="bitwise")
    kernel = compile_(program, schedule, strict_native=strict)
    count = threads or threads_of(host())
    typer.echo(f"{kernel.signature}\n\n{schedule}")
    sharp = kernel(photo, threads=count)
    _write_pair(out, photo, sharp)
    typer.echo(f"picture: {out} (before, after)")
    wanted = interpret(program, {"photo": photo})
    if not np.array_equal(sharp, wanted):
        raise ArgumentError(f"check: WRONG, {np.count_nonzero(sharp != wanted)} values differ from the oracle")
    typer.echo(f"check: all {sharp.size:,} values are the oracle's, bit for bit ({kernel.provenance['backend']})")
    plain = unsharp_numpy(photo)
    apart = np.abs(plain.astype(np.int16) - sharp)
    many = np.count_nonzero(apart)
    typer.echo(f"       NumPy, which adds in another order, differs in {many:,} of them, by at most {apart.max()}")
    times = bench(lambda: kernel(photo, threads=count), lambda: unsharp_numpy(photo), rounds=rounds, warmup=1)
    ours, numpys = (t.median_s for t in times.timings)
    typer.echo(
        f"time:  stax {ours * 1e3:.2f} ms on {count} threads, NumPy {numpys * 1e3:.2f} ms: {numpys / ours:.1f} times as"
        f" fast (medians of {rounds} turns, {photo.shape[2]} x {photo.shape[1]} pixels)"
    )


def _write_pair(out: Path, before: Image, after: Image) -> None:
    from PIL import Image as pillow

    gap = np.full((3, before.shape[1], 8), 255, np.uint8)
    pair = np.concatenate([before, gap, after], axis=2).transpose(1, 2, 0)
    data = io.BytesIO()
    pillow.fromarray(np.ascontiguousarray(pair)).save(data, format="PNG")
    write(out, data.getvalue())
