"""Arrays in files: NumPy's own, and images through Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from stax.cli.programs import write
from stax.errors import ArgumentError

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


def read_array(file: Path) -> np.ndarray[Any, Any]:
    """Return the array in `file`: an `.npy`, or an image as (y, x) or (y, x, channel)."""
    if not file.is_file():
        raise ArgumentError(f"there is no file {file}")
    suffix = file.suffix.lower()
    if suffix not in (".npy", *IMAGES):
        raise ArgumentError(f"{file} is no array: {suffix or 'no suffix'}", hint=f"one of .npy {' '.join(IMAGES)}")
    try:
        return np.load(file, allow_pickle=False) if suffix == ".npy" else _image(file)
    except (OSError, ValueError, EOFError) as error:
        raise ArgumentError(f"cannot read {file}: {error}") from None


def write_arrays(file: Path, names: tuple[str, ...], arrays: tuple[np.ndarray[Any, Any], ...]) -> None:
    """Write `arrays` to `file`: one to an `.npy` or an image, any number by name to an `.npz`."""
    suffix, data = file.suffix.lower(), io.BytesIO()
    if suffix == ".npz":
        np.savez(data, allow_pickle=False, **dict(zip(names, arrays, strict=True)))
    elif len(arrays) != 1:
        raise ArgumentError(f"{len(arrays)} outputs do not fit {file}", hint="write an .npz")
    elif suffix == ".npy":
        np.save(data, arrays[0], allow_pickle=False)
    elif suffix in IMAGES:
        _save_image(data, arrays[0], file)
    else:
        raise ArgumentError(
            f"cannot write {file}: {suffix or 'no suffix'}", hint=f"one of .npy .npz {' '.join(IMAGES)}"
        )
    write(file, data.getvalue())


def _image(file: Path) -> np.ndarray[Any, Any]:
    from PIL import Image

    with Image.open(file) as image:
        return np.asarray(image)


def _save_image(data: io.BytesIO, array: np.ndarray[Any, Any], file: Path) -> None:
    from PIL import Image

    grey = array.ndim == 2 and array.dtype in (np.uint8, np.uint16, np.bool_)
    colour = array.ndim == 3 and array.shape[2] in (3, 4) and array.dtype == np.uint8
    if not (grey or colour) or array.size == 0:
        raise ArgumentError(
            f"{array.dtype} {array.shape} is no image",
            hint="an image is uint8 or uint16 (y, x), or uint8 (y, x, 3 or 4); else write an .npy",
        )
    try:
        Image.fromarray(array).save(data, format=Image.registered_extensions()[file.suffix.lower()])
    except (OSError, ValueError, KeyError) as error:
        raise ArgumentError(f"cannot write {file}: {error}") from None
