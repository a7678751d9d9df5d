"""Pickles as data: a reader that knows a few harmless names and runs nothing.

A pickle is a program; what it may call is decided by who reads it. Every function raises GptvizError.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import GptvizError

Allowed = Mapping[tuple[str, str], Any]  # what (module, name) stands for
LARGEST_MEMO = 2**22  # entries; the reader allocates a table as long as the largest number it meets

# Building dicts, lists, tuples, strings and numbers, and looking names up; no other opcode is in an honest file.
_OPCODES = frozenset(
    (
        "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1",
        "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
        "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "EMPTY_DICT", "DICT", "SETITEM",
        "SETITEMS", "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
        "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "REDUCE",
        "BUILD", "BINPERSID",
    )
)  # fmt: skip


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, allowed: Allowed, persistent: Callable[[Any], Any] | None):
        super().__init__(io.BytesIO(data), encoding="utf-8", errors="replace")
        self.allowed, self.persistent = allowed, persistent

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self.allowed:
            return self.allowed[module, name]
        raise GptvizError(f"it asks for {module[:40]}.{name[:40]}, which is code and not data: nothing of it was run")

    def persistent_load(self, pid: Any) -> Any:
        if self.persistent is None:
            raise GptvizError("it points outside of itself")
        return self.persistent(pid)


def read(data: bytes, what: str, allowed: Allowed | None = None, persistent: Any = None) -> Any:
    """The value of a pickle. Names that are not in `allowed` are refused; what `allowed` maps to must be harmless."""
    try:
        _check(data)
        return _Reader(data, allowed or {}, persistent).load()
    except GptvizError as error:
        raise GptvizError(f"{what} can't be read: {error}.") from None
    except Exception as error:  # a broken pickle raises whatever its last opcode happened to meet
        raise GptvizError(f"{what} is no whole pickle: {type(error).__name__}.") from None


def _check(data: bytes) -> None:
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name not in _OPCODES:
            raise GptvizError(f"it uses {opcode.name}, which no plain data needs")
        if "PUT" in opcode.name and int(argument or 0) > LARGEST_MEMO:
            raise GptvizError("it numbers more values than a real one holds")
