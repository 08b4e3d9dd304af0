# SPDX-License-Identifier: Apache-2.0
"""The table of rows. Modules add to it when they are imported; run.py shows it, worker.py measures."""

import fnmatch
import importlib
from collections.abc import Callable
from dataclasses import dataclass

MODULES = ["call_cost", "kernels", "models", "training", "counts", "memory", "startup"]
ENGINES = ["xla-cpu-pjrt", "fastatomstruct-xla-cpu", "lammps-jax-pjrt-cpu"]
DEFAULT_ENGINE = ENGINES[0]


@dataclass
class Options:
    quick: bool = False
    programs: int = 0  # how many distinct programs the long memory row runs; 0 leaves it out
    pjrt_loop: str = ""  # the helper program behind the rows against hand-written StableHLO

    def rounds(self, full: int) -> int:
        return max(3, full // 8) if self.quick else full


@dataclass
class Row:
    name: str
    unit: str  # "x" for ratios, "us", "%", ...
    target: float | None  # met when the value is at most this; None: shown only
    measure: Callable[[Options], dict]  # returns {"value": ..., more for the JSON}
    module: str = ""
    # Which engines have to meet the target: "default", "fastest" (the best one), or "all".
    judged: str = "default"
    # Where it runs: "shared" (one process for all such rows of an engine), "own" (a fresh one), "one cpu" (a fresh one bound
    # to a single CPU), "no engine" (once, whatever the engine).
    process: str = "shared"


_rows: dict[str, Row] = {}


def add(row: Row) -> None:
    assert row.name not in _rows, row.name
    row.module = row.measure.__module__
    _rows[row.name] = row


def row(name: str, unit: str, target: float | None, **more):
    """Decorator for a function that measures one row."""

    def register(measure):
        add(Row(name, unit, target, measure, **more))
        return measure

    return register


def all_rows() -> list[Row]:
    for module in MODULES:
        importlib.import_module(module)
    return list(_rows.values())


def matching(patterns: list[str]) -> list[Row]:
    """Rows whose name or module matches one of the patterns (a plain word matches anywhere in the name)."""
    chosen = []
    for r in all_rows():
        for p in patterns:
            if r.module == p or fnmatch.fnmatch(r.name, p if any(c in p for c in "*?[") else f"*{p}*"):
                chosen.append(r)
                break
    return chosen
