# SPDX-License-Identifier: Apache-2.0
"""Faults of the plugin, driven by tests/fake_pjrt: whatever call fails, the user gets an error that names the operator, never
a hang, a crash or a wrong value, and goes on. One process sweeps over all calls of a training step: this file, as a program.
"""

import ctypes
import gc
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fake_plugin_path() -> str | None:
    """The newest fake plugin that has been built, or the one that TORCH_TPU_TEST_FAKE_PLUGIN names."""
    if path := os.environ.get("TORCH_TPU_TEST_FAKE_PLUGIN"):
        return path
    built = sorted(ROOT.glob("build/*/tests/libfake_pjrt.so"), key=lambda p: p.stat().st_mtime)
    return str(built[-1]) if built else None


def run_on_fake(*arguments: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess:
    """Runs a program (this file's, or -c code) in a new process whose device is the fake plugin."""
    path = fake_plugin_path()
    if path is None:
        pytest.skip("the fake plugin is not built (make cpp-tests)")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TORCH_TPU_")}
    environment |= {"TORCH_TPU_PLUGIN_PATH": path, "TORCH_TPU_FALLBACK": "forbid", "OMP_NUM_THREADS": "1"} | env
    command = [sys.executable, "-X", "faulthandler", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, cwd=ROOT / "tests")
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def load_fake() -> ctypes.CDLL:
    fake = ctypes.CDLL(os.environ["TORCH_TPU_PLUGIN_PATH"])
    for name in ("fallible_calls", "live_buffers", "live_events", "live_errors", "live_executables"):
        getattr(fake, f"fake_pjrt_{name}").restype = ctypes.c_int64
    fake.fake_pjrt_fail_call.argtypes = [ctypes.c_int64, ctypes.c_int]
    fake.fake_pjrt_fail_async.argtypes = [ctypes.c_int64, ctypes.c_int]
    fake.fake_pjrt_set_async.argtypes = [ctypes.c_int64]
    return fake


# ---- the program


class Step:
    """One training step of a small network from one start, on the device and, for what is right, on the CPU."""

    def __init__(self, hidden: int):
        import torch

        self.torch = torch
        torch.manual_seed(hidden)
        layers = [torch.nn.Linear(8, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 4)]
        self.start = torch.nn.Sequential(*layers)
        self.x, self.y = torch.randn(5, 8), torch.randint(0, 4, (5,))
        self.expected = dict(self.read(*self.run("cpu")))

    def run(self, device):
        import copy

        torch = self.torch
        model = copy.deepcopy(self.start).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(self.x.to(device)), self.y.to(device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return model, loss

    def read(self, model, loss):
        """Name and value, one after the other: each may raise for itself."""
        yield "loss", self.torch.tensor(loss.item())
        for name, p in model.named_parameters():
            yield name, p.detach().cpu()

    def attempt(self) -> list[Exception]:
        """Runs and reads it all. Returns what was raised; values that can be read must be right."""
        torch, errors = self.torch, []
        try:
            model, loss = self.run("tpu")
        except Exception as error:
            errors.append(error)
        else:
            for name in self.expected:
                try:
                    value = loss.detach().cpu() if name == "loss" else dict(model.named_parameters())[name].detach().cpu()
                except Exception as error:
                    errors.append(error)
                else:
                    torch.testing.assert_close(value, self.expected[name], rtol=1e-5, atol=1e-6)
        model = loss = None
        for _ in range(2000):
            try:
                torch.tpu.synchronize()
                return errors
            except Exception as error:
                errors.append(error)
        raise AssertionError("synchronize never stops raising")


def check_error(error: Exception, code: int, where: str) -> None:
    assert isinstance(error, RuntimeError), f"{where}: {type(error)} {error}"
    text = str(error)
    # The operator in front, or the step of the engine.
    named = re.match(r"(compiling |copy to the )?[a-z_]+[\w.]*( [a-z ]+)?: ", text)
    assert named and "PJRT" in text, f"{where}: nobody knows where this comes from: {text}"


def sweep(code: int, delay: int, cold: bool, budget: float) -> None:
    import torch

    fake = load_fake()
    step = Step(6)
    assert step.attempt() == []
    fake.fake_pjrt_reset()
    fake.fake_pjrt_set_async(delay)
    before = fake.fake_pjrt_fallible_calls()
    assert (Step(7) if cold else step).attempt() == []
    calls = fake.fake_pjrt_fallible_calls() - before
    assert calls > 100
    buffers, allocated = fake.fake_pjrt_live_buffers(), torch.tpu.memory_allocated()
    begin, raised, tried = time.monotonic(), 0, 0
    numbers = list(range(1, calls + 1))
    if cold:  # each costs a compilation of everything: as many as time allows, spread over the run
        numbers = [1 + i * 37 % calls for i in range(calls)]
    for n in numbers:
        if time.monotonic() - begin > budget:
            assert cold, f"only {tried} of {calls} calls in {budget} s"
            break
        now = Step(8 + tried) if cold else step
        fake.fake_pjrt_fail_call(n, code)
        errors = now.attempt()
        fake.fake_pjrt_fail_call(0, 0)
        for error in errors:
            check_error(error, code, f"call {n}")
        raised += bool(errors)
        tried += 1
        assert now.attempt() == [], f"after call {n}"
    assert raised > tried // 3, f"{raised} of {tried} failures were noticed"
    fake.fake_pjrt_reset()
    errors = error = None  # their tracebacks hold tensors
    gc.collect()
    torch.tpu.empty_cache()
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == allocated
    # The consumer keeps up to 256 packed host arguments.
    assert fake.fake_pjrt_live_buffers() <= buffers + 256, "buffers leak"
    assert fake.fake_pjrt_live_events() == 0 and fake.fake_pjrt_live_errors() == 0
    print(f"{tried} of {calls} calls, {raised} noticed, {time.monotonic() - begin:.1f} s")


def sweep_async(delay: int) -> None:
    """Launches that succeed and whose results then fail."""
    import torch

    fake = load_fake()
    step = Step(6)
    assert step.attempt() == []
    before = torch.tpu.counters()["launches"]
    assert step.attempt() == []
    launches = torch.tpu.counters()["launches"] - before
    fake.fake_pjrt_reset()
    fake.fake_pjrt_set_async(delay)
    for k in range(1, launches + 1):
        fake.fake_pjrt_fail_async(k, 13)
        errors = step.attempt()
        assert errors, f"nobody has noticed that launch {k} failed"
        for error in errors:
            assert re.match(r"[a-z_]+[\w.]*: .*injected asynchronous failure", str(error)), f"launch {k}: {error}"
        assert step.attempt() == [], f"after launch {k}"
    print(f"{launches} launches")


if __name__ == "__main__":
    if sys.argv[1] == "sweep":
        sweep(code=int(sys.argv[2]), delay=int(sys.argv[3]), cold=sys.argv[4] == "cold", budget=float(sys.argv[5]))
    else:
        sweep_async(delay=int(sys.argv[2]))
    sys.exit(0)


# ---- the tests


@pytest.mark.parametrize("delay", [-1, 0], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("code", [13, 8], ids=["internal", "resource_exhausted"])
def test_every_call_of_a_step_fails_once(code, delay):
    run_on_fake(__file__, "sweep", str(code), str(delay), "warm", "50")


def test_calls_of_a_step_that_compiles_fail():
    run_on_fake(__file__, "sweep", "13", "-1", "cold", "8")


@pytest.mark.parametrize("delay", [-1, 0], ids=["synchronous", "asynchronous"])
def test_results_that_fail_after_the_launch(delay):
    run_on_fake(__file__, "sweep_async", str(delay))


def test_the_plugins_memory_limit_is_out_of_memory():
    code = """
import torch
from python.test_faults import load_fake
fake = load_fake()
x = torch.ones(1000, device="tpu")
(x + x).cpu()
import ctypes
fake.fake_pjrt_set_memory_limit.argtypes = [ctypes.c_int64]
fake.fake_pjrt_set_memory_limit(1)
y = x + x
try:
    y.cpu()
    raise SystemExit("no error")
except torch.OutOfMemoryError as error:
    assert "add" in str(error) and "4000 bytes" in str(error), error
try:
    torch.ones(1000).to("tpu")
    raise SystemExit("no error")
except torch.OutOfMemoryError as error:
    assert "copy to the device" in str(error), error
fake.fake_pjrt_set_memory_limit(0)
assert (x + x).sum().item() == 2000
"""
    run_on_fake("-c", code)
