# SPDX-License-Identifier: Apache-2.0
"""Faults seen in CPU plugins, each tried twice: the bare plugin on the plain program, and torch_tpu on the plain operator.

Only faults that show as wrong values are here. Those that end the process are guarded against in src/pjrt.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from torch_tpu import _C


@dataclass(frozen=True)
class Probe:
    name: str
    make_input: Callable[[], torch.Tensor]
    compute: Callable[[torch.Tensor], torch.Tensor]
    program: str
    known_limit: str = ""  # why torch_tpu may show it, too


def _module(argument: str, result: str, body: str) -> str:
    return f"module @probe {{\n func.func public @main(%x: {argument}) -> {result} {{\n{body}\n }}\n}}\n"


def _with_nan(*shape: int) -> torch.Tensor:
    values = torch.linspace(-3, 3, torch.Size(shape).numel())
    values[1::7] = torch.nan
    return values[torch.arange(values.numel()) * 37 % values.numel()].reshape(shape)


PROBES = (
    Probe(
        "atan of 4,096 values",
        lambda: torch.linspace(-20, 20, 4096),
        torch.atan,
        _module(
            "tensor<4096xf32>",
            "tensor<4096xf32>",
            """  %one = stablehlo.constant dense<1.0> : tensor<4096xf32>
  %r = stablehlo.atan2 %x, %one : tensor<4096xf32>
  return %r : tensor<4096xf32>""",
        ),
    ),
    Probe(
        "NaN in a maximum",
        lambda: _with_nan(64, 64),
        lambda x: x.amax(1),
        _module(
            "tensor<64x64xf32>",
            "tensor<64xf32>",
            """  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %r : tensor<64xf32>""",  # noqa: E501
        ),
    ),
    Probe(
        "sort with NaN",
        lambda: _with_nan(64),
        lambda x: x.sort().values,
        _module(
            "tensor<64xf32>",
            "tensor<64xf32>",
            """  %r = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>""",
        ),
    ),
    Probe(
        "denormal numbers",
        lambda: torch.tensor([1e-40, -1e-40, 1e-45, 1.0]),
        lambda x: x * 2,
        _module(
            "tensor<4xf32>",
            "tensor<4xf32>",
            """  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %r = stablehlo.multiply %x, %two : tensor<4xf32>
  return %r : tensor<4xf32>""",
        ),
        known_limit="every XLA:CPU plugin flushes them to zero, as TPUs do",
    ),
)


def _verdict(run: Callable[[], torch.Tensor], expected: torch.Tensor) -> str:
    try:
        got = run()
    except Exception as error:
        return f"error: {str(error).splitlines()[0]}"
    try:
        torch.testing.assert_close(got, expected, equal_nan=True, rtol=1e-5, atol=0)
    except AssertionError:
        return "wrong"
    return "right"


def run_all() -> list[dict]:
    rows = []
    for probe in PROBES:
        x = probe.make_input()
        expected = probe.compute(x)
        rows.append(
            {
                "name": probe.name,
                "plugin": _verdict(lambda p=probe, x=x: _C.run_stablehlo(p.program, [x])[0], expected),
                "torch_tpu": _verdict(lambda p=probe, x=x: p.compute(x.to("tpu")).cpu(), expected),
                "known_limit": probe.known_limit,
            }
        )
    return rows
