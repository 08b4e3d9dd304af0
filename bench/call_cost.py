# SPDX-License-Identifier: Apache-2.0
"""What one call costs, against torch's own CPU device in the same loop."""

from collections.abc import Callable
from time import sleep

import rows
import torch
from device import DEVICE, synchronize, warm
from timing import BURST, CALLS, Code, Spread, compare, interleave, nothing

Names = Callable[[str], dict]


def sides(statement: str, names: Names, **more) -> tuple[Code, Code]:
    ours, reference = Code(statement, names(DEVICE), synchronize, **more), Code(statement, names("cpu"), **more)
    for code in (ours, reference):
        code.completed(3)
    return ours, reference


def completed(statement: str, names: Names, calls: int = CALLS, **more):
    """1,000 calls and one synchronize."""

    def measure(options: rows.Options) -> dict:
        ours, reference = sides(statement, names, **more)
        with warm():
            figures = interleave([lambda: ours.completed(calls), lambda: reference.completed(calls)], options.rounds(40))
        return {"clock": "completed", "calls": calls, **compare(*figures)}

    return measure


def returns(statement: str, names: Names, before: Callable[[], None] = nothing, rounds: int = 200, **more):
    """Bursts of 100 calls on an idle queue."""

    def measure(options: rows.Options) -> dict:
        ours, reference = sides(statement, names, **more)
        with warm():
            figures = interleave(
                [lambda: ours.returns(BURST, before), lambda: reference.returns(BURST)], options.rounds(rounds)
            )
        result = {"clock": "returns", "calls": BURST, **compare(*figures)}
        for side, code in (("ours", ours), ("reference", reference)):
            result[side]["cpu_us"] = Spread.of(code.cpu_seconds).median * 1e6
        return result

    return measure


def add(name: str, target: float | None, measure, **more) -> None:
    measure.__module__ = __name__
    rows.add(rows.Row(name, "x", target, measure, **more))


def two(n: int) -> Names:
    return lambda device: {"x": torch.ones(n).to(device), "y": torch.full((n,), 1e-6).to(device)}


def table(device: str) -> dict:
    return {"x": torch.ones(1000, 4).to(device)}


add("x + y, 4 elements, the reference against itself", None, lambda options: against_itself(options))
add("x + y, 4 elements, returns", 0.8, returns("x + y", two(4)))
add("x + y, 4 elements, returns, worker asleep", None, returns("x + y", two(4), before=lambda: sleep(0.002), rounds=80))
add("x + y, 4 elements, completed", 1.5, completed("x + y", two(4)))
add("x + y, 4 elements, completed, one CPU", 2.4, completed("x + y", two(4)), process="one cpu")
add("x * s, new scalar each call, completed", 1.1, completed("s += 0.001; x * s", two(4), setup="s = 0.5"))
add("x[i] + 1, completed", 0.9, completed("for i in range(1000): x[i] + 1", table, calls=1, inner=1000))
add("x + y, 1,024 elements, completed", 2.8, completed("x + y", two(1024)))
add("x + y, 65,536 elements, completed", 2.4, completed("x + y", two(65536), calls=300))
add("x.add_(y), 4 elements, completed", None, completed("x.add_(y)", two(4)))
add("x.add_(y), 1,024 elements, completed", 3.0, completed("x.add_(y)", two(1024)))
add("x.add_(y), 65,536 elements, completed", 3.0, completed("x.add_(y)", two(65536), calls=300))
add("x[1:], returns", 1.0, returns("x[1:]", table))
add("x.t(), returns", 1.0, returns("x.t()", table))


def against_itself(options: rows.Options) -> dict:
    """How far two runs of the same thing lie apart here: outside of 0.95 to 1.05 the machine was too busy for this run."""
    a, b = (Code("x + y", two(4)("cpu")) for _ in range(2))
    return {
        "clock": "completed",
        "calls": CALLS,
        **compare(*interleave([lambda: a.completed(CALLS), lambda: b.completed(CALLS)], options.rounds(40))),
    }


@rows.row(".item() of a ready scalar, more than torch CPU's", "us", 2.0)
def item(options: rows.Options) -> dict:
    ours, reference = sides("x.item()", lambda device: {"x": torch.ones(4).to(device)[0]})
    figures = interleave([lambda: ours.completed(CALLS), lambda: reference.completed(CALLS)], options.rounds(40))
    result = compare(*figures)
    more = sorted(a - b for a, b in zip(*figures, strict=True))
    return {
        **result,
        "clock": "completed",
        "calls": CALLS,
        "value": more[len(more) // 2] * 1e6,
        "value_of_minima": more[0] * 1e6,
    }
