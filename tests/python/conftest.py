# SPDX-License-Identifier: Apache-2.0
"""Shared by all Python tests: they run against the installed package, each from the default settings."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A job in the background ignores Ctrl-C, and so would the programs that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _restore_settings():
    """A test may change any setting: the next one starts from what the run started with."""
    before = {entry["name"]: entry["value"] for entry in torch.tpu.settings.describe()}
    yield
    for entry in torch.tpu.settings.describe():
        if entry["value"] != before[entry["name"]]:
            torch.tpu.settings.set(entry["name"], before[entry["name"]])


@pytest.fixture
def forbid_fallback():
    """Any operator without a rule is an error inside the test."""
    with torch.tpu.settings(fallback="forbid"):
        yield


class CounterDelta:
    """with count() as c: ...; then c["launches"] is how many there were inside."""

    def __enter__(self):
        torch.tpu.synchronize()
        self._before = torch.tpu.counters()
        return self

    def __exit__(self, *exc_info):
        waits = torch.tpu.counters()["host_waits"]  # without the one that follows
        torch.tpu.synchronize()
        after = torch.tpu.counters() | {"host_waits": waits}
        self._delta = {name: value - self._before.get(name, 0) for name, value in after.items()}

    def __getitem__(self, name: str) -> int:
        return self._delta[name]


@pytest.fixture
def count():
    return CounterDelta


@pytest.fixture
def run_python(tmp_path):
    """Runs code in a new process, outside the source tree, and returns the finished process (text, both streams)."""

    def run(code: str, *args: str, check: bool = True, timeout: float = 120, **env: str | None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH_TPU_", "TORCH_DEVICE_BACKEND"))}
        for name, value in env.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        command = [sys.executable, "-c", code, *args]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=timeout)
        if check:
            assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
