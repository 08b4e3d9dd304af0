# SPDX-License-Identifier: Apache-2.0
"""Twelve operations, most at a million elements: against hand-written StableHLO run directly through PJRT on the same plugin,
and against torch CPU, all three in one interleaved run. Where programs/ holds several forms of one operation, the one that is
fastest here is the reference."""

import functools
import math
from dataclasses import dataclass

import pjrt_loop
import rows
import torch
from device import DEVICE, check_close, synchronize, warm
from timing import Code, Spread, calls_for, compare, interleave

GEOMEAN, WORST = "12 ops / hand-written StableHLO, geomean", "12 ops / hand-written StableHLO, worst"
GEOMEAN_TORCH = "12 ops / torch CPU, geomean"


@dataclass
class Op:
    name: str
    expression: str
    shapes: dict[str, tuple[int, ...]]  # "i": indices below the last size, "c": conditions, others: normal numbers
    target: float = 1.15

    def tensors(self) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        made = {}
        for name, shape in self.shapes.items():
            if name == "i":
                made[name] = torch.randint(shape[-1], shape, generator=generator)
            else:
                made[name] = torch.randn(shape, generator=generator)
            if name == "c":
                made[name] = made[name] > 0
        return made


FLAT, SQUARE, HALF = (1 << 20,), (1024, 1024), (512, 1024)
OPS = [
    *(Op(f"matmul_{n}", "x @ y", {"x": (n, n), "y": (n, n)}) for n in (64, 512, 1024)),
    Op("add", "x + y", {"x": FLAT, "y": FLAT}),
    Op("exp", "x.exp()", {"x": FLAT}),
    Op("sum", "x.sum()", {"x": FLAT}),
    Op("max", "x.max()", {"x": FLAT}),
    Op("softmax", "torch.softmax(x, 1)", {"x": SQUARE}),
    Op("layer_norm", "layer_norm(x, (1024,), w, b)", {"x": SQUARE, "w": (1024,), "b": (1024,)}),
    Op("gather", "torch.gather(x, 1, i)", {"x": SQUARE, "i": SQUARE}),
    Op("where", "torch.where(c, x, y)", {"c": FLAT, "x": FLAT, "y": FLAT}),
    Op("cat", "torch.cat((x, y))", {"x": HALF, "y": HALF}),
]


def code_for(op: Op, tensors: dict[str, torch.Tensor], device: str) -> tuple[Code, torch.Tensor]:
    names = {"torch": torch, "layer_norm": torch.nn.functional.layer_norm}
    names.update({name: tensor.to(device) for name, tensor in tensors.items()})
    result = eval(op.expression, names)
    return Code(op.expression, names, synchronize if device == DEVICE else lambda: None), result


def fastest_form(
    loop: pjrt_loop.PjrtLoop, op: Op, tensors: dict[str, torch.Tensor], expected: torch.Tensor
) -> tuple[str, dict]:
    seconds = {}
    for name in loop.load(op.name, list(tensors.values())):
        check_close(loop.output(name, expected), expected, rtol=1e-3, atol=1e-3)
        calls = calls_for(lambda name=name: loop.completed(name, 3) * 3, 0.02, 100)
        seconds[name] = min(loop.completed(name, calls) for _ in range(5))
    return min(seconds, key=seconds.get), {name: s * 1e6 for name, s in seconds.items()}


@functools.cache
def helper(path: str) -> pjrt_loop.PjrtLoop | None:
    return pjrt_loop.PjrtLoop(path, torch.tpu.plugin_info()["path"]) if path else None


@functools.cache
def figures(name: str, quick: bool, helper_path: str) -> dict:
    op = next(op for op in OPS if op.name == name)
    loop = helper(helper_path)
    tensors = op.tensors()
    ours, result = code_for(op, tensors, DEVICE)
    on_cpu, expected = code_for(op, tensors, "cpu")
    difference = check_close(result, expected, rtol=1e-3, atol=1e-3)
    del result
    fill = 0.02 if quick else 0.1
    calls = max(calls_for(lambda code=code: code.completed(1), fill) for code in (ours, on_cpu))
    sides = [lambda: ours.completed(calls), lambda: on_cpu.completed(calls)]
    found = {"clock": "completed", "calls": calls, "largest_difference": difference}
    if loop:
        form, found["forms_us"] = fastest_form(loop, op, tensors, expected)
        found["form"] = form
        sides.append(lambda: loop.completed(form, calls))
    with warm():
        seconds = interleave(sides, 3 if quick else 15)
    found["torch"] = compare(seconds[0], seconds[1])
    found["direct"] = compare(seconds[0], seconds[2]) if loop else None
    found["torch_cpu"] = Spread.of(seconds[1]).microseconds()
    return found


def of_op(op: Op, against: str, options: rows.Options) -> dict:
    found = figures(op.name, options.quick, options.pjrt_loop)
    if not found[against]:
        raise RuntimeError("the helper pjrt_loop is not built: `make bench` does")
    common = {key: value for key, value in found.items() if key not in ("torch", "direct")}
    return {**common, **found[against]}


def over_ops(against: str, reduce, options: rows.Options) -> dict:
    values = [of_op(op, against, options)["value"] for op in OPS]
    return {"clock": "completed", "value": reduce(values), "each": dict(zip((op.name for op in OPS), values, strict=True))}


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def add(name: str, target: float | None, judged: str, measure) -> None:
    measure = functools.partial(measure)
    measure.__module__ = __name__
    rows.add(rows.Row(name, "x", target, measure, judged=judged))


for op in OPS:
    add(f"{op.name} / hand-written StableHLO", op.target, "all", functools.partial(of_op, op, "direct"))
for op in OPS:
    add(f"{op.name} / torch CPU", None, "fastest", functools.partial(of_op, op, "torch"))
add(GEOMEAN, 1.03, "all", functools.partial(over_ops, "direct", geomean))
add(WORST, 1.15, "all", functools.partial(over_ops, "direct", max))
add(GEOMEAN_TORCH, 1.4, "fastest", functools.partial(over_ops, "torch", geomean))
