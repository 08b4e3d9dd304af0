# SPDX-License-Identifier: Apache-2.0
"""What a long-running process keeps: resident memory and memory maps."""

import gc
import itertools

import rows
import torch
from device import DEVICE, counters, synchronize
from models import MlpTraining

FULL = 4096  # executables that are kept: the default of the setting max_executables


def usage() -> dict:
    synchronize()
    gc.collect()
    with open("/proc/self/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    with open("/proc/self/maps") as maps:
        return {"resident_kb": resident, "maps": sum(1 for _ in maps)}


def train_until(training: MlpTraining, operations: int) -> dict:
    while counters()["records"] < operations:
        training.epoch()
    return usage()


@rows.row("resident memory after 100,000 MLP operations, more than after 10,000", "%", 1.0, process="own", judged="all")
def long_training(options: rows.Options) -> dict:
    training = MlpTraining(DEVICE)
    start = counters()["records"]
    before = train_until(training, start + 10_000)
    after = train_until(training, start + (30_000 if options.quick else 100_000))
    growth = after["resident_kb"] / before["resident_kb"] - 1
    return {"value": 100 * growth, "before": before, "after": after, "more_maps": after["maps"] - before["maps"]}


@rows.row("memory maps after 100,000 MLP operations, more than after 10,000", "maps", 0, process="own", judged="all")
def long_training_maps(options: rows.Options) -> dict:
    found = long_training(options)
    return {**found, "value": found["more_maps"]}


@rows.row("resident memory after all the distinct programs, more than after a third", "%", 5.0, process="own", judged="all")
def many_programs(options: rows.Options) -> dict:
    """One product of two matrices a program, each of other sizes: cheap to compile, never the same."""
    if options.programs < 3 * FULL:
        return {"skipped": f"left out: --programs 30000 runs it (at least {3 * FULL}, so that the cache is full after a third)"}
    compiled = counters()["compiles"]
    before = None
    side = range(1, 2 + round(options.programs ** (1 / 3)))
    sizes = itertools.islice(itertools.product(side, side, side), options.programs)
    for number, (m, k, n) in enumerate(sizes):
        torch.empty(m, k, device=DEVICE) @ torch.empty(k, n, device=DEVICE)
        if number == options.programs // 3:
            before = usage()
    after = usage()
    return {
        "value": 100 * (after["resident_kb"] / before["resident_kb"] - 1),
        "compiles": counters()["compiles"] - compiled,
        "evictions": counters()["evictions"],
        "before": before,
        "after": after,
    }
