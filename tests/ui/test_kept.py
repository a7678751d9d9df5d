"""A cache bounded by bytes, whom it lets go first, and who waits for whom."""

import threading

import pytest

from gptviz.ui.kept import Kept


def kept(most: int = 10) -> Kept[str]:
    return Kept(len, most)


def test_a_value_is_made_once():
    cache, made = kept(), []
    assert [cache.get("a", lambda: made.append(1) or "aaa") for _ in range(3)] == ["aaa"] * 3
    assert made == [1]


def test_the_one_that_was_not_asked_for_the_longest_goes_first():
    cache = kept(10)
    for key in "abc":
        cache.get(key, lambda key=key: key * 3)
    cache.get("a", lambda: pytest.fail("it is kept"))
    cache.get("d", lambda: "dddd")  # 13 bytes: b has to go
    assert list(cache.values) == ["c", "a", "d"]
    cache.get("e", lambda: "eeeeeeee")  # 8 and 4 are too many
    assert list(cache.values) == ["e"]


def test_the_latest_stays_however_large():
    cache = kept(10)
    cache.get("a", lambda: "a")
    assert cache.get("b", lambda: "b" * 50) == "b" * 50
    assert list(cache.values) == ["b"]


def test_a_failure_keeps_nothing_and_may_be_tried_again():
    cache = kept()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: str(1 / 0))
    assert cache.get("a", lambda: "a") == "a"
    assert not cache.making


def test_two_who_ask_for_the_same_wait_for_one_and_others_do_not():
    cache, go, made = kept(), threading.Event(), []

    def slow() -> str:
        made.append("a")
        assert go.wait(5)
        return "a"

    asking = [threading.Thread(target=cache.get, args=("a", slow)) for _ in range(2)]
    for thread in asking:
        thread.start()
    assert cache.get("b", lambda: "b") == "b"
    go.set()
    for thread in asking:
        thread.join(5)
    assert made == ["a"]
    assert set(cache.values) == {"a", "b"}
