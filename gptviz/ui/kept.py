"""What is kept for all sessions up to a number of bytes, where Streamlit's caches count entries alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key, at most `most` bytes of them: the one that was not asked for the longest goes first.

    The latest stays, however large. Who asks for what another session is making waits for it; nobody else does.
    """

    def __init__(self, size: Callable[[Value], int], most: int):
        self.size, self.most = size, most
        self.values: OrderedDict[Hashable, Value] = OrderedDict()
        self.making: dict[Hashable, threading.Lock] = {}
        self.lock = threading.Lock()  # over the bookkeeping only

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made where it is not kept."""
        with self.lock:
            mine = self.making.setdefault(key, threading.Lock())
        try:
            with mine:
                if (value := self._find(key)) is None:
                    value = make()
                    self._keep(key, value)
            return value
        finally:
            self.making.pop(key, None)

    def _find(self, key: Hashable) -> Value | None:
        with self.lock:
            if key in self.values:
                self.values.move_to_end(key)
            return self.values.get(key)

    def _keep(self, key: Hashable, value: Value) -> None:
        with self.lock:
            self.values[key] = value
            total = sum(map(self.size, self.values.values()))
            while total > self.most and len(self.values) > 1:
                _, oldest = self.values.popitem(last=False)
                total -= self.size(oldest)
