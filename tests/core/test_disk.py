"""core.disk: room before a map, whole files, one at a time in a folder, and what is said of a full disk."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from small_disks import small_disk, small_files

from core import disk
from core.errors import ConflictError, StorageError
from core.settings import ROOT

MB = 1_000_000


def test_a_new_array_has_its_blocks_before_it_is_mapped(tmp_path: Path) -> None:
    array = disk.new_mapped(tmp_path / "a", np.float32, (1000, 300))
    assert (tmp_path / "a").stat().st_blocks * 512 >= array.nbytes  # a sparse file has none
    array[:] = 1
    array.flush()
    assert np.fromfile(tmp_path / "a", np.float32).sum() == 300_000


def test_without_the_system_s_call_zeros_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    with (tmp_path / "a").open("w+b") as file:
        file.write(b"abc")
        disk.reserve(file, 3 * MB)
        file.write(b"def")  # where it stood
        file.seek(0)
        assert file.read() == b"abcdef" + bytes(3 * MB - 6)
    assert (tmp_path / "a").stat().st_blocks * 512 >= 3 * MB


@pytest.mark.parametrize("call", [True, False])
def test_room_that_is_not_there_is_told_and_the_file_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: bool
) -> None:
    if not call:
        monkeypatch.delattr(os, "posix_fallocate")
    with small_disk(tmp_path / "small", 1024) as folder:
        with (folder / "a").open("w+b") as file:
            file.write(b"abc")
            with pytest.raises(disk.DiskFullError, match=rf"^\[Errno 28\] 4\.0 MB are needed and 1\.0 MB are free in {folder}"):
                disk.reserve(file, 4 * MB)
            assert (folder / "a").read_bytes() == b"abc"
        with pytest.raises(disk.DiskFullError, match="are needed and"):
            disk.new_mapped(folder / "b", np.float32, (MB,))
        with pytest.raises(disk.DiskFullError, match="are needed and"):
            disk.need(folder, 2 * MB)


def test_a_limit_on_files_is_told(tmp_path: Path) -> None:
    message = r"4\.0 MB are needed, which is over the file size limit \(ulimit -f\)"
    with small_files(100_000), pytest.raises(disk.DiskFullError, match=message):
        disk.new_mapped(tmp_path / "b", np.float32, (MB,))


def raise_after(draft: Path) -> None:
    draft.write_text("new")
    raise KeyError("in the middle")


def test_a_refused_file_leaves_the_old_one_and_no_draft(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 256) as folder:
        disk.write_text(folder / "a.txt", "old")
        message = r"a\.txt cannot be written \(No space left on device: .* are free in .*\); nothing was"
        with pytest.raises(StorageError, match=message):
            disk.write_text(folder / "a.txt", "x" * MB)
        with pytest.raises(KeyError), disk.replacing(folder / "a.txt") as draft:
            raise_after(draft)
        assert [p.name for p in folder.iterdir()] == ["a.txt"]
        assert (folder / "a.txt").read_text() == "old"


def test_a_line_that_does_not_fit_is_taken_off_again(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    disk.append_line(path, "one\n", "go on")
    with small_files(4096), pytest.raises(StorageError, match=r"rows cannot be written \(File too large\); go on"):
        disk.append_line(path, "x" * 9000 + "\n", "go on")
    assert path.read_text() == "one\n"
    disk.append_line(path, "two\n", "go on")
    assert path.read_text() == "one\ntwo\n"


def test_the_words_of_libraries_get_the_free_space(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    message = rf"No space left on device: [\d,.]+ MB are free in {tmp_path}"
    assert re.fullmatch(message, disk.describe_error(full, tmp_path / "file"))
    assert disk.describe_error(PermissionError(13, "Permission denied"), tmp_path) == "Permission denied"
    unexpected = RuntimeError("unexpected\npos 576")
    assert disk.describe_error(unexpected, tmp_path) == "unexpected pos 576"
    with small_disk(tmp_path / "small", 64) as folder:
        assert disk.describe_error(unexpected, folder) == f"unexpected pos 576: 65.5 kB are free in {folder}"


def test_nothing_else_maps_files() -> None:
    """A map of a sparse file ends the process where the disk is full: core.disk makes them all."""
    mapping = re.compile(r"\bmemmap\(|open_memmap|mmap\.mmap|\.set_len|mode=\"w\+\"")
    for folder in ("core", "storage", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != ROOT / "core" / "disk.py":
                assert not mapping.search(path.read_text(encoding="utf-8")), path


# ---------------------------------------------------------------- one at a time


def claim(folder: Path) -> None:
    with disk.locked(folder, "an evaluation"):
        pass


HOLD = """
import sys
from pathlib import Path
from core.disk import locked
with locked(Path(sys.argv[1]), "a training"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_second_process_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        message = rf"in use: a training in process {other.pid} on .*, since \d{{4}}-.*; wait for it"
        with pytest.raises(ConflictError, match=message):
            claim(tmp_path)
        other.kill()
    with disk.locked(tmp_path, "an evaluation"):  # a killed process holds nothing
        assert disk.LOCK in os.listdir(tmp_path)  # noqa: PTH208
    assert not (tmp_path / disk.HOLDER).exists()


def test_the_same_thread_may_claim_again_and_another_may_not(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as other:
        with disk.locked(tmp_path, "a training"):
            claim(tmp_path)
            with pytest.raises(ConflictError, match=f"a training in process {os.getpid()}"):
                other.submit(claim, tmp_path).result()
        other.submit(claim, tmp_path).result()


def test_a_folder_made_for_nothing_goes_again(tmp_path: Path) -> None:
    def fails(folder: Path, *, after: bool) -> None:
        with disk.locked(folder, "a run"):
            if after:
                (folder / "rows").write_text("kept")
            raise ValueError("no such question file")

    for after in (False, True):
        with pytest.raises(ValueError, match="no such question file"):
            fails(tmp_path / "new", after=after)
        assert (tmp_path / "new").exists() is after


def test_rows_of_a_mapped_file_are_those_of_the_array(tmp_path: Path) -> None:
    whole = np.arange(60, dtype=np.float16).reshape(12, 5)
    (tmp_path / "v").write_bytes(whole.tobytes())
    rows = np.array([11, 0, 7, 7])
    for array in (disk.mapped(tmp_path / "v", np.float16, (12, 5)), whole):
        assert disk.Rows(array)[rows].tolist() == whole[rows].tolist()
        assert disk.Rows(array)[rows[:0]].shape == (0, 5)
