# SPDX-License-Identifier: Apache-2.0
"""Runs the cases named on its standard input, one a line, and answers each with a line of JSON."""

import json
import os
import sys
import time
import traceback
import warnings

import torch
from cases import cases, limit_of
from compare import WrongResult

KEPT = 300  # characters of a message
COUNTED = ("compiles", "fallbacks")


def place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.name}:{frame.lineno}"


def run(case) -> dict:
    before, started = torch.tpu.counters(), time.monotonic()
    result = {"right": 0, "skipped": 0, "errors": 0, "wrong": 0}
    first = None
    try:
        for sample in case.samples(limit_of(case)):
            try:
                result["skipped" if case.form.check(case.op, sample) is False else "right"] += 1
            except WrongResult as error:
                result["wrong"] += 1
                first = first or f"wrong: {error}"
            except Exception as error:
                result["errors"] += 1
                first = first or f"{type(error).__name__}: {error}"
    except Exception as error:  # the database's own function
        first = first or f"samples: {type(error).__name__}: {error} in {place(error)}"
        result["no_samples"] = True
    after = torch.tpu.counters()
    result |= {name: after[name] - before[name] for name in COUNTED} | {"seconds": round(time.monotonic() - started, 3)}
    if first:
        result["message"] = " ".join(first.split())[:KEPT]
    return result


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what operators print does not mix with the answers
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as the CPU engine does
    warnings.simplefilter("ignore")
    known = {}
    for line in sys.stdin:
        database, name = line.rstrip("\n").split("\t")
        if database not in known:
            known[database] = {case.name: case for case in cases(database)}
        print(json.dumps(run(known[database][name])), file=answers, flush=True)


if __name__ == "__main__":
    main()
