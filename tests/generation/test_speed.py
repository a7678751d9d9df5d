"""The clock's numbers are the clock's, and the cache changes the time alone."""

import time

import pytest

from gptviz.generation import cache_and_none, generation_speed


def test_the_cache_gives_the_same_tokens(tiny_model, ids):
    settings = dict(temperature=0.8, top_k=10, seed=3)
    fast, slow = (generation_speed(tiny_model, ids, 12, cache=cache, **settings) for cache in (True, False))
    assert fast.tokens == slow.tokens
    assert len(fast.seconds) == len(slow.seconds) == 12


def test_the_times_add_up_to_the_time_that_passed(tiny_model, ids):
    began = time.perf_counter()
    speed = generation_speed(tiny_model, ids, 8, cache=True, seed=0)
    passed = time.perf_counter() - began
    assert (speed.seconds > 0).all()
    assert float(speed.seconds.sum()) <= passed
    assert speed.per_second == pytest.approx(8 / float(speed.seconds.sum()))


def test_both_ways_in_turns_give_the_same_tokens_and_median_times(tiny_model, ids, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) ** 2)  # each step takes longer than the one before
    cached, full = cache_and_none(tiny_model, ids, 5, seed=1, repeats=3)
    assert cached.tokens == full.tokens
    # 3 looks at the clock warm up, then 6 a run; the second of three runs is the median: looks 15 to 20 and 21 to 26
    assert cached.seconds.tolist() == [2 * look + 1 for look in range(15, 20)]
    assert full.seconds.tolist() == [2 * look + 1 for look in range(21, 26)]
