"""Object code on disk: found again, verified, and never in the way."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from pathlib import Path

import filelock
import pytest

from stax.runtime.cache import Store, default_folder, digest, object_key, path_of
from stax.runtime.shelf import damaged, kept, sweep
from stax.target import Target

KEY = digest("key")


def entry_of(store: Store) -> Path:
    assert store.folder is not None
    (found,) = store.folder.glob("*/*.entry")
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
        for bit in range(8):
            path.write_bytes(whole[:n] + bytes([whole[n] ^ 1 << bit]) + whole[n + 1 :])
            assert Store(tmp_path).get(KEY) is None, (n, bit)
    assert rebuilds(tmp_path)


def test_an_entry_under_another_name_is_not_taken(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, b"code")
    other = digest("other")
    place = path_of(tmp_path / "entries", other)
    place.parent.mkdir(parents=True, exist_ok=True)
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
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.parent.name != "locks"] == []
    assert store.problem is not None
    assert "No space" in store.problem


def test_an_unreadable_entry_is_built_again(tmp_path: Path) -> None:
    """Here a folder, which cannot be read as a file, nor replaced by one."""
    path_of(tmp_path / "entries", KEY).mkdir(parents=True)
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


def build_slowly(folder: str, log: str, start: float) -> None:
    time.sleep(max(0.0, start - time.time()))

    def build() -> bytes:
        with open(log, "a") as file:
            file.write("built\n")
        time.sleep(0.2)
        return b"code"

    assert Store(folder).entry(KEY, build) == b"code"


def test_of_many_processes_one_builds(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    log, start = str(tmp_path / "log"), time.time() + 0.3
    workers = [context.Process(target=build_slowly, args=(str(tmp_path), log, start)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert Path(log).read_text() == "built\n"


def test_of_many_threads_one_builds(tmp_path: Path) -> None:
    store, built = Store(tmp_path), list[int]()

    def build() -> bytes:
        built.append(1)
        time.sleep(0.1)
        return b"code"

    threads = [threading.Thread(target=lambda: store.entry(KEY, build)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1


def test_a_lock_that_cannot_be_had_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stax.runtime.cache._LOCK_TIMEOUT_S", 0.2)
    store = Store(tmp_path)
    store.put(digest("other"), b"")
    assert store.folder is not None
    (store.folder / "locks").mkdir()
    with filelock.FileLock(store.folder / "locks" / KEY[:2]):
        assert store.entry(KEY, lambda: b"code") == b"code"
    assert store.problem is not None
    assert Store(tmp_path).get(KEY) == b"code"


def test_a_builder_that_fails_leaves_no_lock(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Store(tmp_path).entry(KEY, fail)
    assert rebuilds(tmp_path)


def test_what_others_may_write_is_neither_read_nor_kept(tmp_path: Path) -> None:
    """What is read from the folder is run as this user."""
    rebuilds(tmp_path)
    folder = tmp_path / "entries"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert entry_of(Store(tmp_path)).stat().st_mode & 0o777 == 0o600
    folder.chmod(0o777)
    store = Store(tmp_path)
    assert store.get(KEY) is None
    assert store.entry(KEY, lambda: b"other") == b"other"
    assert store.problem is not None
    assert "others may write" in store.problem
    folder.chmod(0o700)
    assert Store(tmp_path).get(KEY) == b"code"


def test_what_was_used_least_recently_makes_room(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [digest(str(n)) for n in range(10)]
    assert store.folder is not None
    for n, key in enumerate(keys):
        store.put(key, bytes(1000))
        os.utime(path_of(store.folder, key), (n * 10_000, n * 10_000))
    assert store.get(keys[0]) == bytes(1000)
    size = sum(one.size_bytes for one in kept(store.folder))
    assert sweep(store.folder, size // 2)[0] == 5
    assert [n for n, key in enumerate(keys) if store.get(key) is not None] == [0, 6, 7, 8, 9]


def test_a_full_cache_is_swept_by_those_who_fill_it(tmp_path: Path) -> None:
    store = Store(tmp_path, most_bytes=20_000)
    assert store.folder is not None
    for n in range(200):
        store.put(digest(str(n)), bytes(1000))
    assert sum(one.size_bytes for one in kept(store.folder)) < 20_000 + 66 * 1200


def test_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    rebuilds(tmp_path)
    folder = entry_of(Store(tmp_path)).parent
    for name, age in (("old.tmp", 7200), ("new.tmp", 5)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    sweep(tmp_path / "entries", 1 << 30)
    assert sorted(p.name for p in folder.glob("*.tmp")) == ["new.tmp"]


def test_damage_is_found(tmp_path: Path) -> None:
    rebuilds(tmp_path)
    path = entry_of(Store(tmp_path))
    assert damaged(tmp_path / "entries") == []
    path.write_bytes(path.read_bytes()[:-1])
    assert [one.path for one in damaged(tmp_path / "entries")] == [path]


def test_keys_have_255_bits_and_no_capitals() -> None:
    assert all(len(k) == 51 and k == k.lower() for k in (digest(str(n)) for n in range(50)))
