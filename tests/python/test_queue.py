# SPDX-License-Identifier: Apache-2.0
"""The queue as users meet it: interrupts, timed events, little room, one CPU, eviction, memory, results of every size."""

import importlib.metadata
import itertools
import signal
import threading
import time

import pytest
import torch

from test_faults import run_on_fake

DEVICE = "tpu"


# ---- results of every size are there when they are read


@pytest.mark.parametrize("n", [2, 8, 11, 64])
def test_a_product_is_read_when_it_is_there(n):
    # Programs of few bytes and much arithmetic may run on the plugin's own threads: nothing follows from their size.
    a, b = torch.rand(n, n), torch.rand(n, n)
    x, y, expected = a.to(DEVICE), b.to(DEVICE), a @ b
    for _ in range(2000):
        torch.testing.assert_close((x @ y).cpu(), expected, rtol=1e-4, atol=1e-5)


def test_random_numbers_are_read_when_they_are_there():
    for seed in range(500):
        torch.manual_seed(seed)
        first = torch.randn(200, device=DEVICE).cpu()
        torch.manual_seed(seed)
        second = torch.randn(200, device=DEVICE)
        torch.tpu.synchronize()
        assert torch.equal(first, second.cpu())


def test_item_right_after_the_operation():
    x = torch.arange(200.0, device=DEVICE)
    for i in range(2000):
        assert (x + i).sum().item() == 19900 + 200 * i


@pytest.mark.parametrize("plugin", ["xla-cpu-pjrt", "fastatomstruct-xla-cpu", "lammps-jax-pjrt-cpu"])
def test_what_waits_for_another_devices_copy(plugin, run_python):
    # Engines that run programs inside Execute do so only when the arguments are there.
    try:
        importlib.metadata.version(plugin)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{plugin} is not installed")
    code = """
import torch
x = torch.zeros(1 << 23, device="tpu:0")
for i in range(8):
    x.fill_(float(i))
    y = x.to("tpu:1")
    z, w = y[-64:] + 1, y + 1
    assert (z.cpu() == i + 1).all() and (w.cpu() == i + 1).all(), i
"""
    run_python(code, TORCH_TPU_CPU_PLUGIN=plugin, TORCH_TPU_DEVICE_COUNT="2")


# ---- timed events


def test_timed_events_between_operations_that_wait():
    x = torch.ones(64, device=DEVICE)
    events = []
    for _ in range(300):
        for _ in range(20):
            x = x * 0.5 + 1
        event = torch.tpu.Event(enable_timing=True)
        event.record()
        events.append(event)
    torch.tpu.synchronize()
    times = [events[0].elapsed_time(e) for e in events]
    assert times[0] == 0 and times[-1] > 0
    assert all(a <= b for a, b in itertools.pairwise(times))


def test_many_timed_events_do_not_slow_launches_down():
    x = torch.ones(4, device=DEVICE)

    def burst():
        begin = time.perf_counter()
        for _ in range(2000):
            x + 1
        torch.tpu.synchronize()
        return time.perf_counter() - begin

    burst()
    before = min(burst() for _ in range(3))
    for _ in range(20000):
        torch.tpu.Event(enable_timing=True).record()
    assert min(burst() for _ in range(3)) < 10 * before + 0.1


def test_timed_events_in_threads():
    def work():
        x = torch.ones(16, device=DEVICE)
        for _ in range(200):
            x = x + 1
            begin = torch.tpu.Event(enable_timing=True)
            begin.record()
            x = x + 1
            end = torch.tpu.Event(enable_timing=True)
            end.record()
            end.synchronize()
            assert begin.elapsed_time(end) >= 0
        done.append(x[0].item())

    done = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert done == [401.0] * 4


# ---- room


@pytest.mark.parametrize(("name", "value"), [("max_in_flight", 1), ("max_in_flight", 3), ("max_in_flight_bytes", 1)])
def test_little_room_changes_nothing_but_time(name, value):
    with torch.tpu.settings(**{name: value}):
        x = torch.zeros(2000, device=DEVICE)
        for i in range(300):
            x += 1
            if i % 100 == 0:
                assert x[7].item() == i + 1
        assert x.sum().item() == 300 * 2000


def test_one_cpu():
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import torch, threading
x = torch.zeros(100, device="tpu")
for i in range(3000):
    x += 1
    if i % 500 == 0:
        assert x[5].item() == i + 1
event = torch.tpu.Event()
event.record()
event.synchronize()
def work():
    y = torch.zeros(100, device="tpu")
    for i in range(1000):
        y = y + 1
    assert y.sum().item() == 100_000
    done.append(1)
done = []
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
torch.tpu.synchronize()
assert x.sum().item() == 300_000 and len(done) == 4
"""
    run_on_fake("-c", code)


def test_programs_come_and_go():
    code = """
import torch
before = torch.tpu.counters()
for _ in range(2):
    for n in range(1, 41):
        x = torch.full((n, 3), 2.0, device="tpu")
        assert (x * x + 1).sum().item() == 15 * n
after = torch.tpu.counters()
assert after["evictions"] - before["evictions"] > 200
assert after["reloads"] - before["reloads"] > 100
"""
    run_on_fake("-c", code, TORCH_TPU_MAX_EXECUTABLES="16")


def test_memory_in_flight_is_waited_for():
    x = torch.ones(1 << 18, device=DEVICE)
    (x + 1).cpu()
    torch.tpu.synchronize()
    reserved = torch.tpu.memory_reserved()
    with torch.tpu.settings(memory_limit=reserved + (5 << 19)):
        for _ in range(100):  # each result is garbage at once
            y = x + 1
        assert y[0].item() == 2
        del y
        keep = [x + 1, x + 2]
        with pytest.raises(torch.OutOfMemoryError, match=r"out of memory.*1\.00 MiB.*Limit"):
            keep.append(x + 3)
        keep.clear()
        assert (x + 4)[0].item() == 5


# ---- interrupts


INTERRUPTED = """
import os, signal, sys, threading, time, torch
from python.test_faults import load_fake
signal.signal(signal.SIGINT, signal.default_int_handler)
fake = load_fake()
settings = torch.tpu.settings

def loop(x):
    for _ in range(100_000):
        x = x + 1

def little_room():
    settings.set("max_in_flight", "1")
    settings.set("max_in_flight_bytes", "1")

def event(x):
    e = torch.tpu.Event()
    e.record()
    e.synchronize()

def gradient(x):
    x = x.clone().requires_grad_()
    (x * x).sum().backward()
    x.grad.sum().item()

WAITS = {
    "item": lambda x, y: (x + 1).sum().item(),
    "cpu": lambda x, y: (x + 1).cpu(),
    "a large cpu": lambda x, y: (y + 1).cpu(),
    "synchronize": lambda x, y: (x + 1, torch.tpu.synchronize()),
    "event": lambda x, y: event(x + 1),
    "nonzero": lambda x, y: (x + 1).nonzero(),
    "a loop without reads": lambda x, y: (settings.set("max_in_flight_bytes", "1"), loop(x)),
    "a loop in a little room": lambda x, y: (little_room(), loop(x)),
    "autograd": lambda x, y: gradient(x),
    "debug mode": lambda x, y: (torch.tpu.set_eager_mode("debug"), x + 1),
}
x = torch.ones(16, device="tpu")
y = torch.ones(300, device="tpu")
before = {s["name"]: str(s["value"]) for s in settings.describe()}
for name, wait in WAITS.items():
    if "loop" not in name:
        wait(x, y)  # compiled, inferred, imported
    for s, value in before.items():
        if value != str(dict((e["name"], e["value"]) for e in settings.describe())[s]):
            settings.set(s, value)
    torch.tpu.synchronize()
    fake.fake_pjrt_set_async(1_200_000)  # each result takes this long
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    try:
        wait(x, y)
        sys.exit(f"{name} was not interrupted")
    except KeyboardInterrupt:
        took = time.monotonic() - begin
        print(f"{name}: {took:.2f} s")
    assert 0.25 < took < 1.1, f"{name} was interrupted after {took} s"
    assert torch.ones(2).sum().item() == 2  # nothing is pending
    fake.fake_pjrt_set_async(-1)
    settings.set("max_in_flight_bytes", before["max_in_flight_bytes"])
    fake.fake_pjrt_reset()
    torch.tpu.synchronize()
    assert (x + 1).sum().item() == 32
print("done")
"""


def test_control_c_ends_every_wait():
    done = run_on_fake("-c", INTERRUPTED, timeout=110)
    assert done.stdout.strip().endswith("done")


def test_control_c_ends_a_program_that_only_records():
    code = """
import os, signal, threading, time, torch
x = torch.ones(16, device="tpu")
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        x = x * 0.5 + 1
except KeyboardInterrupt:
    print("interrupted", x[0].item())
"""
    assert run_on_fake("-c", code).stdout.strip() == "interrupted 2.0"


def test_the_exit_does_not_wait_for_ever():
    code = """
import torch
from python.test_faults import load_fake
fake = load_fake()
x = torch.ones(16, device="tpu")
(x + 1).cpu()
fake.fake_pjrt_set_async(60_000_000)
y = x + 1
"""
    begin = time.monotonic()
    run_on_fake("-c", code, timeout=50, TORCH_TPU_EXIT_TIMEOUT_MS="500")
    assert time.monotonic() - begin < 30


def test_a_handler_that_returns_lets_the_wait_go_on():
    code = """
import os, signal, threading, torch
from python.test_faults import load_fake
fake = load_fake()
hits = []
signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
x = torch.ones(16, device="tpu")
(x + 1).cpu()
fake.fake_pjrt_set_async(1_000_000)
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
assert (x + 1).cpu().sum().item() == 32
assert hits == [1]
"""
    run_on_fake("-c", code)


def test_waits_release_the_gil():
    code = """
import threading, time, torch
from python.test_faults import load_fake
fake = load_fake()
x = torch.ones(16, device="tpu")
(x + 1).cpu()
fake.fake_pjrt_set_async(500_000)
ticks = []
def tick():
    while True:
        ticks.append(1)
        time.sleep(0.005)
threading.Thread(target=tick, daemon=True).start()
for wait in (lambda y: y.cpu(), lambda y: y.sum().item(), lambda y: torch.tpu.synchronize(), lambda y: y.tolist()):
    y = x + 1
    ticks.clear()
    wait(y)
    assert len(ticks) > 20, len(ticks)
import os; os._exit(0)
"""
    run_on_fake("-c", code)


def test_signals_before_a_wait_are_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        (torch.ones(3, device=DEVICE) + 1).cpu()
    assert (torch.ones(3, device=DEVICE) + 1).sum().item() == 6
