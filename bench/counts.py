# SPDX-License-Identifier: Apache-2.0
"""How many programs the models take: to compile first, to launch in a warm step, to compile when only values change."""

import time

import rows
import steps
import torch
from device import DEVICE, counted, eager_mode, synchronize
from models import MlpTraining, minilm_step

WARM = 6  # steps until fused eager has learned and optimizers have their state


def mlp(device: str, mode: str):
    return MlpTraining(device).step


def minilm(device: str, mode: str):
    """Nothing masked: given a mask, the model reads on the host whether it masks anything."""
    return minilm_step(device, mode, masked=False)


def warm_programs(make, mode: str):
    def row(options: rows.Options) -> dict:
        with eager_mode(mode):
            step = make(DEVICE, mode)
            for _ in range(WARM):
                step()
                synchronize()
            with counted(seen := {}):
                step()
        return {"value": seen["launches"], **seen}

    return row


def first_programs(make, mode: str):
    def row(options: rows.Options) -> dict:
        with eager_mode(mode):
            step = make(DEVICE, mode)
            synchronize()
            before = time.process_time()
            with counted(seen := {}):
                step()
            return {"value": seen["compiles"], "cpu_seconds": time.process_time() - before, **seen}

    return row


def later_compiles(mode: str):
    def row(options: rows.Options) -> dict:
        with eager_mode(mode):
            training = MlpTraining(DEVICE)
            if mode == "compile":
                training.model = torch.compile(training.model, dynamic=False)
            for _ in range(2):
                training.epoch()
            other_data = torch.randn(training.data.shape).to(DEVICE)
            with counted(seen := {}):
                training.epoch()
                for rate in (0.005, 0.0025, 1e-3):
                    training.optimizer.param_groups[0]["lr"] = rate
                    training.step()
                training.data = other_data
                training.epoch()
        return {"value": seen["compiles"], **seen}

    return row


def add(name: str, unit: str, target: float | None, measure) -> None:
    measure.__module__ = __name__
    rows.add(rows.Row(name, unit, target, measure, judged="all", process="own"))


for mode in ("fused", "compile"):
    add(f"MiniLM forward, {mode}: programs", "launches", 1, warm_programs(minilm, mode))
add("MLP train step, fused: programs", "launches", 1, warm_programs(mlp, "fused"))
add("minGPT train step, fused: programs", "launches", 3, warm_programs(steps.mingpt, "fused"))
add("first minGPT step, strict: programs", "compiles", 54, first_programs(steps.mingpt, "strict"))
for mode in ("fused", "compile"):
    add(f"first minGPT step, {mode}: programs", "compiles", None, first_programs(steps.mingpt, mode))
for mode in ("strict", "fused", "compile"):
    add(f"another epoch, learning rate and data, {mode}", "compiles", 0, later_compiles(mode))
