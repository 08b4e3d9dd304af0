# SPDX-License-Identifier: Apache-2.0
"""What the package adds to `import torch`, in fresh processes that take turns. Where it is not installed, `import torch_tpu`
stands for what torch's autoload would do."""

import importlib.metadata
import json
import os
import statistics
import subprocess
import sys

import rows

PROGRAM = """
import json, sys, time
start = time.perf_counter()
import torch
if sys.argv[1] == "explicit": import torch_tpu
seconds = time.perf_counter() - start
with open("/proc/self/status") as status:
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
assert hasattr(torch, "tpu") == (sys.argv[1] != "without")
print(json.dumps({"seconds": seconds, "resident_kb": resident}))
"""


def installed() -> bool:
    return any(e.value.startswith("torch_tpu") for e in importlib.metadata.entry_points(group="torch.backends"))


def start(how: str) -> dict:
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if how == "autoload" else "0"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], env=environment, capture_output=True, text=True, check=True)
    *printed, last = done.stdout.splitlines()
    return {**json.loads(last), "printed": len(printed) + len(done.stderr.splitlines())}


_found: dict = {}


def figures(options: rows.Options) -> dict:
    if not _found:
        how = "autoload" if installed() else "explicit"
        pairs = [(start(how), start("without")) for _ in range(1 + options.rounds(15))][1:]
        for name in ("seconds", "resident_kb"):
            _found[name] = statistics.median(a[name] - b[name] for a, b in pairs)
            _found[name + "_each"] = [[a[name], b[name]] for a, b in pairs]
        _found["printed"] = max(a["printed"] for a, _ in pairs)
        _found["how"] = how
    return _found


@rows.row("import torch with the package, more than without: time", "s", 0.1, process="no engine")
def import_time(options: rows.Options) -> dict:
    found = figures(options)
    return {"value": found["seconds"], "how": found["how"], "each": found["seconds_each"]}


@rows.row("import torch with the package, more than without: memory", "MB", 30, process="no engine")
def import_memory(options: rows.Options) -> dict:
    found = figures(options)
    return {"value": found["resident_kb"] * 1024 / 1e6, "how": found["how"], "each": found["resident_kb_each"]}


@rows.row("lines that import torch prints with the package", "lines", 0, process="no engine")
def import_output(options: rows.Options) -> dict:
    return {"value": figures(options)["printed"], "how": figures(options)["how"]}
