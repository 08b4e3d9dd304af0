# SPDX-License-Identifier: Apache-2.0
"""The example models in each mode against torch CPU: a train step, a decode step, and what it takes in programs."""

import rows
import steps
from device import DEVICE, counted, eager_mode, synchronize, warm
from models import against_cpu, minilm_step
from timing import Code

MODES = ("strict", "fused", "compile")


def measure(make, mode: str):
    def row(options: rows.Options) -> dict:
        with eager_mode(mode):
            both = {device: make(device, mode if device == DEVICE else "strict") for device in (DEVICE, "cpu")}
            with counted(first := {}):
                both[DEVICE]()
            for step in both.values():
                for _ in range(6):  # fused eager has learned, optimizers have their state
                    step()
                synchronize()
            codes = [
                Code("step()", {"step": both[DEVICE]}, synchronize),
                Code("step()", {"step": both["cpu"]}),
            ]
            result = against_cpu(*codes, options, 9)
            with warm(), counted(seen := {}):
                codes[0].completed(1)
        return {**result, "mode": mode, "first_step": first, "launches": seen["launches"]}

    row.__module__ = __name__
    return row


NAMES = {
    "minGPT train step": (steps.mingpt, (1.0, 0.85, 0.85)),
    "small CNN train step": (steps.cnn, (1.3, None, 1.3)),
    "ResNet train step": (steps.resnet, (None, None, None)),
    "Llama decode, static cache, B=1": (steps.llama, (1.8, 0.9, 0.6)),
    "MiniLM forward": (minilm_step, (None, 0.95, 0.95)),
}
for name, (make, targets) in NAMES.items():
    for mode, target in zip(MODES, targets, strict=True):
        for where, process in (("", "own"), (", one CPU", "one cpu")):
            row = rows.Row(
                f"{name}, {mode} / torch CPU{where}", "x", target, measure(make, mode), judged="fastest", process=process
            )
            rows.add(row)
