# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing. In every round each side is timed once, so that a busy neighbour meets all of them."""

import gc
import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter, process_time

BURST = 100  # calls in one burst of the clock "returns"
CALLS = 1000  # calls before the one synchronize of the clock "completed"


def nothing() -> None:
    pass


class Code:
    """A statement in the namespace of one device, looped over as timeit does it."""

    def __init__(
        self, statement: str, names: dict, synchronize: Callable[[], None] = nothing, setup: str = "pass", inner: int = 1
    ):
        self._loop = timeit.Timer(statement, setup, globals=names).inner
        self._synchronize = synchronize
        self._inner = inner
        self.cpu_seconds: list[float] = []

    def completed(self, calls: int) -> float:
        """Seconds a call, one synchronize at the end included."""
        start = perf_counter()
        self._loop(repeat(None, calls), perf_counter)
        self._synchronize()
        return (perf_counter() - start) / (calls * self._inner)

    def returns(self, calls: int, before: Callable[[], None] = nothing) -> float:
        """Seconds until a call returns, in a burst that meets an idle queue. What all threads need is in cpu_seconds."""
        self._synchronize()
        before()
        cpu = process_time()
        seconds = self._loop(repeat(None, calls), perf_counter)
        self._synchronize()
        self.cpu_seconds.append((process_time() - cpu) / (calls * self._inner))
        return seconds / (calls * self._inner)


@dataclass
class Spread:
    """Seconds a call of one side over all rounds."""

    minimum: float
    median: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        return cls(min(seconds), statistics.median(seconds))

    def microseconds(self) -> dict:
        return {"min_us": self.minimum * 1e6, "median_us": self.median * 1e6}


def interleave(sides: list[Callable[[], float]], rounds: int) -> list[list[float]]:
    """ABAB: the seconds of each side, one a round. Even and odd rounds run the sides in opposite order."""
    seconds: list[list[float]] = [[] for _ in sides]
    order = list(range(len(sides)))
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for side in order:
            sides[side]()  # warm
        for _ in range(rounds):
            for side in order:
                seconds[side].append(sides[side]())
            order.reverse()
    finally:
        if collecting:
            gc.enable()
    return seconds


def compare(ours: list[float], reference: list[float]) -> dict:
    """The figure of a row is the median of the ratios within each round; the ratio of the minima stands beside it."""
    ratios = [a / b for a, b in zip(ours, reference, strict=True)]
    return {
        "value": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "ratio_of_minima": min(ours) / min(reference),
        "ours": Spread.of(ours).microseconds(),
        "reference": Spread.of(reference).microseconds(),
        "rounds": len(ratios),
    }


def calls_for(one_call: Callable[[], float], seconds: float = 0.05, most: int = CALLS) -> int:
    """How many calls fill `seconds`, at most `most`."""
    one_call()
    return max(3, min(most, round(seconds / max(min(one_call() for _ in range(3)), 1e-9))))
