# SPDX-License-Identifier: Apache-2.0
"""One framework in a process of its own, told on stdin what to time. Runs in the peers' environments as well, so it imports
nothing but the framework it stands for, and timing.py."""

import json
import os
import sys
import time

# The channel: whatever a framework prints goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from timing import BURST, Code


class Torch:
    """torch CPU, and torch on a device that is registered already."""

    def __init__(self, device: str = "cpu", synchronize=lambda: None):
        import torch

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.torch, self.device, self.synchronize = torch, device, synchronize

    def add(self, n: int) -> Code:
        x, y = self.torch.ones(n).to(self.device), self.torch.full((n,), 1e-6).to(self.device)
        assert (x + y).cpu().sum().item() > 0
        return Code("x + y", {"x": x, "y": y}, self.synchronize)

    def step(self, model: str, mode: str) -> Code:
        import steps

        return Code("step()", {"step": getattr(steps, model)(self.device, mode)}, self.synchronize)


def ours() -> Torch:
    import torch

    import torch_tpu  # noqa: F401

    return Torch("tpu", torch.tpu.synchronize)


def googles() -> Torch:
    """torch-tpu 0.2.0 opens the device only where it finds TPU hardware, so it is opened by hand."""
    import torch

    from torch_tpu import _loader

    _loader._init_device("tpu")
    return Torch("tpu", torch.accelerator.synchronize)


class Jax:
    """x + y through jax.jit. The wait for the last result is the one synchronize."""

    def __init__(self):
        import jax

        self.jax = jax

    def add(self, n: int) -> Code:
        import numpy

        x, y = self.jax.device_put(numpy.ones(n, "f")), self.jax.device_put(numpy.full(n, 1e-6, "f"))
        names = {"x": x, "y": y, "add": self.jax.jit(lambda x, y: x + y), "z": x}
        names["add"](x, y).block_until_ready()

        def synchronize() -> None:
            names["z"].block_until_ready()

        return Code("global z; z = add(x, y)", names, synchronize)

    def step(self, model: str, mode: str) -> Code:
        assert model == "cnn"
        import jax_cnn

        step, synchronize = jax_cnn.make()
        return Code("step()", {"step": step}, synchronize)


FRAMEWORKS = {"torch": Torch, "ours": ours, "jax": Jax, "jax-plugin": Jax, "torch-tpu": googles}


def make_code(framework, work: dict) -> Code:
    return framework.add(work["elements"]) if "elements" in work else framework.step(work["model"], work["mode"])


def serve(framework) -> None:
    codes: dict[str, Code] = {}
    for line in sys.stdin:
        task = json.loads(line)
        key = json.dumps(task["work"])
        if key not in codes:
            codes[key] = make_code(framework, task["work"])
        code = codes[key]
        if task["clock"] == "returns":
            answer = {"seconds": code.returns(BURST), "cpu_seconds": code.cpu_seconds[-1]}
        elif task["clock"] == "CPU":
            before = time.process_time()
            code.completed(task["calls"])
            answer = {"seconds": time.process_time() - before}
        else:
            answer = {"seconds": code.completed(task["calls"])}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    made = FRAMEWORKS[sys.argv[1]]()
    print(json.dumps({"ready": sys.argv[1]}), file=answers, flush=True)
    serve(made)
    answers.flush()
    os._exit(0)  # peers are not asked to shut down
