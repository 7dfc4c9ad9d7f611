"""A target is a value, and the host one is what this process may use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stax import dtypes, target
from stax.target import Target, cores


def test_the_host_is_known() -> None:
    host = Target.host()
    assert host == Target.host()
    assert host.cpu
    assert "+" in host.features
    assert host.vector_bytes in (16, 32, 64)
    assert host.lanes(dtypes.uint8) == host.vector_bytes
    assert 0 < host.l1_bytes <= host.l2_bytes


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_cores_respect_affinity() -> None:
    script = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from stax.target import cores; assert cores() == 1"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(("text", "wanted"), [("150000 100000", 2), ("max 100000", 64), ("50000 100000", 1)])
def test_cores_respect_the_quota_of_the_group(
    text: str, wanted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(text)
    granted = target._grant(tmp_path)
    monkeypatch.setattr(target, "_quota", lambda: min(granted, default=None))
    monkeypatch.setattr(target.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert cores() == wanted


def test_a_feature_is_a_whole_word() -> None:
    assert not Target("x86_64-unknown-linux-gnu", "x", "+avx512f,-fma", 64, 1).has("avx")
    assert not Target("x86_64-unknown-linux-gnu", "x", "+avx512f,-fma", 64, 1).has("fma")
