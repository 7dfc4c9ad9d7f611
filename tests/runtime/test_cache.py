"""Object code on disk: found again, verified, and never in the way."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from stax.runtime.cache import Store, default_folder, digest, object_key
from stax.target import Target

KEY = digest("key")


def entry_of(store: Store) -> Path:
    assert store.folder is not None
    (found,) = store.folder.glob("*/*.object")
    return found


def rebuilds(folder: Path) -> bool:
    """Whether a new Store builds KEY again, rightly."""
    store, built = Store(folder), list[int]()

    def build() -> bytes:
        built.append(1)
        return b"code"

    assert store.entry(KEY, build) == b"code"
    return bool(built)


def test_what_is_kept_is_found_by_another_store(tmp_path: Path) -> None:
    assert rebuilds(tmp_path)
    assert not rebuilds(tmp_path)


def test_hits_and_misses_are_counted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for _ in range(3):
        store.entry(KEY, lambda: b"code")
    assert (store.hits, store.misses) == (2, 1)


def test_a_truncated_entry_is_built_again(tmp_path: Path) -> None:
    """At every length, the empty file included."""
    rebuilds(tmp_path)
    path = entry_of(Store(tmp_path))
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        assert rebuilds(tmp_path)
    assert not rebuilds(tmp_path)


def test_an_entry_with_any_flipped_bit_is_built_again(tmp_path: Path) -> None:
    rebuilds(tmp_path)
    path = entry_of(Store(tmp_path))
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1 << n % 8]) + whole[n + 1 :])
        assert rebuilds(tmp_path), n


def test_an_entry_under_another_name_is_not_taken(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, b"code")
    other = digest("other")
    place = tmp_path / other[:2] / f"{other[2:]}.object"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(entry_of(store).read_bytes())
    assert store.get(other) is None


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    """A file stands where the folder should; root may write anywhere, so permissions alone would test nothing."""
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "folder")
    assert store.entry(KEY, lambda: b"code") == b"code"
    assert store.problem is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_keeps_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    store = Store(tmp_path)
    assert store.entry(KEY, lambda: b"code") == b"code"
    assert store.problem is not None
    tmp_path.chmod(0o700)


def test_a_full_disk_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store = Store(tmp_path)
    assert store.entry(KEY, lambda: b"code") == b"code"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    assert store.problem is not None
    assert "No space" in store.problem


def test_an_unreadable_entry_is_built_again(tmp_path: Path) -> None:
    """Here a folder, which cannot be read as a file, nor replaced by one."""
    (tmp_path / KEY[:2] / f"{KEY[2:]}.object").mkdir(parents=True)
    assert rebuilds(tmp_path)
    assert rebuilds(tmp_path)


def test_without_a_folder_nothing_is_kept() -> None:
    store = Store(None)
    assert store.entry(KEY, lambda: b"a") == b"a"
    assert store.entry(KEY, lambda: b"b") == b"b"


def write(folder: str, rounds: int) -> None:
    store = Store(folder)
    for n in range(rounds):
        store.put(KEY, b"code" * 1000)
        assert store.get(KEY) == b"code" * 1000, n


def test_several_processes_write_one_entry(tmp_path: Path) -> None:
    """A reader never sees half of an entry: each read in each process is whole."""
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=write, args=(str(tmp_path), 100)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert Store(tmp_path).get(KEY) == b"code" * 1000
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 1


def test_the_key_depends_on_all_that_determines_the_code() -> None:
    one = Target("x86_64-unknown-linux-gnu", "znver3", "+avx2", 32, 2)
    keys = {
        object_key("text", one),
        object_key("other", one),
        object_key("text", one, "O3"),
        object_key("text", Target(one.triple, "znver4", one.features, 32, 2)),
        object_key("text", Target(one.triple, one.cpu, "+avx", 32, 2)),
        object_key("text", Target("aarch64-unknown-linux-gnu", one.cpu, one.features, 32, 2)),
    }
    assert len(keys) == 6


def test_the_key_does_not_depend_on_the_number_of_cores() -> None:
    """Code takes the number of threads at the call."""
    triple = "x86_64-unknown-linux-gnu"
    assert object_key("t", Target(triple, "c", "", 32, 2)) == object_key("t", Target(triple, "c", "", 32, 64))


def test_the_usual_folder_is_absolute() -> None:
    folder = default_folder()
    assert folder is None or folder.is_absolute()
