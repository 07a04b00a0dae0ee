"""Cache of machine code on disk.

Machine code that is loaded is run. So it is kept in a folder that no other user can write to, with a checksum.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

CHECKSUM = hashlib.sha256().digest_size


def ours_alone(folder: Path, *, own: bool) -> bool:
    """Make a private folder, and return whether it is private and no other user can replace it.

    A folder of our `own` that others could have written to is emptied. Any other such folder is not used.
    """
    try:
        if not hasattr(os, "geteuid"):  # a system without such permissions
            folder.mkdir(parents=True, exist_ok=True)
            return True
        for one in (*reversed(folder.parents), folder):
            if not one.exists():
                one.mkdir(mode=0o700)
        folder = folder.resolve()
        if not all(_trusted(parent.stat(), sticky=True) for parent in folder.parents):
            return False
        if not _trusted(folder.stat(), sticky=False) and own and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder)
            folder.mkdir(mode=0o700)
        return _trusted(folder.stat(), sticky=False) and os.access(folder, os.W_OK)
    except OSError:
        return False


def _trusted(status: os.stat_result, *, sticky: bool) -> bool:
    """Return whether a folder belongs to this user or to root, and others cannot rename its entries."""
    if status.st_uid not in (os.geteuid(), 0):
        return False
    writable = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _own_group(status.st_gid))
    return not writable or bool(sticky and status.st_mode & stat.S_ISVTX)


def _own_group(number: int) -> bool:
    """Return whether a group is the one that some systems make for each user."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """The index and the data of a function. Data without their checksum count as missing."""

    def _load_index(self) -> dict[object, str]:
        try:
            version, stamp, overloads = _unpacked(Path(self._index_path))
        except OSError:
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[object, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return _unpacked(Path(self._data_path(name)))

    def _save_data(self, name: str, data: object) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, data: object) -> None:
        text = self._dump(data)
        with self._open_for_write(path) as stream:
            stream.write(hashlib.sha256(text).digest() + text)


def _unpacked(path: Path) -> Any:
    raw = path.read_bytes()
    checksum, text = raw[:CHECKSUM], raw[CHECKSUM:]
    if hashlib.sha256(text).digest() != checksum:
        raise OSError("damaged")
    return pickle.loads(text)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Cache of compiled functions. A function that cannot be saved is compiled in the next run."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the cached function without numba's typing rules, which only compilation needs."""
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # a full disk, or a folder that was deleted
            return
