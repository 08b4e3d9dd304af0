# SPDX-License-Identifier: Apache-2.0
"""What the rows share: torch, the device, and checks that a timed loop compiled nothing and fell back nowhere."""

import contextlib
import os

import torch

import torch_tpu  # noqa: F401 (torch loads it by itself where the package is installed)

DEVICE = "tpu"
synchronize = torch.tpu.synchronize
counters = torch.tpu.counters

torch.set_num_threads(len(os.sched_getaffinity(0)))


@contextlib.contextmanager
def counted(result: dict):
    """Adds what the block cost in launches, compiles and fallbacks to `result`."""
    synchronize()
    before = counters()
    yield
    synchronize()
    after = counters()
    for name in ("launches", "compiles", "fallbacks"):
        result[name] = after[name] - before[name]


def eager_mode(mode: str):
    """The eager mode that a row's mode stands for; torch.compile runs beside strict eager."""
    return torch.tpu.set_eager_mode("fused" if mode == "fused" else "strict")


@contextlib.contextmanager
def warm():
    """A compile or a fallback inside the block makes the row invalid."""
    seen: dict = {}
    with counted(seen):
        yield
    if seen["compiles"] or seen["fallbacks"]:
        raise AssertionError(f"{seen['compiles']} compiles and {seen['fallbacks']} fallbacks in a timed loop")


def check_close(ours: torch.Tensor, reference: torch.Tensor, rtol: float = 1e-4, atol: float = 1e-5) -> float:
    """The largest difference; raises where a figure would compare two different computations."""
    ours = ours.cpu()
    torch.testing.assert_close(ours, reference, rtol=rtol, atol=atol)
    return (ours.double() - reference.double()).abs().max().item() if ours.numel() else 0.0
