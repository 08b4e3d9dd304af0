# SPDX-License-Identifier: Apache-2.0
"""Threads, forks, and the end of the process."""

import random
import threading

import pytest
import torch

DEVICE = "tpu"
THREADS = 4
OPERATIONS = 10_000


def in_threads(functions):
    """Runs each in a thread of its own; the results in order. The first exception is raised here."""
    results = [None] * len(functions)
    errors = []
    barrier = threading.Barrier(len(functions))

    def run(i):
        try:
            barrier.wait()
            results[i] = functions[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


# ---- random operations


def make_shared():
    g = torch.Generator().manual_seed(7)
    a = torch.rand(4, 6, generator=g).to(DEVICE)
    b = torch.rand(4, 6, generator=g).to(DEVICE)
    wide = torch.rand(6, 8, generator=g).to(DEVICE)
    return {
        "a": a,
        "b": b,
        "turned": torch.rand(6, 4, generator=g).to(DEVICE).t(),  # views of storages that all threads read
        "part": wide[1:5, 2:8],
        "row": torch.rand(6, generator=g).to(DEVICE),
        "square": torch.rand(6, 6, generator=g).to(DEVICE),
        "index": torch.tensor([3, 0, 2, 1], device=DEVICE),
        "mask": a > b,
    }


def pick_shared(rng, shared):
    return shared[rng.choice(["a", "b", "turned", "part", "row"])]


# All take and give float tensors of 4 x 6 with values in [0, 1].
FUNCTIONAL = [
    lambda x, s, rng: (x + s) * 0.5,
    lambda x, s, rng: x * s,
    lambda x, s, rng: (x - s).abs(),
    lambda x, s, rng: torch.where(x > s, x, 1 - x),
    lambda x, s, rng: torch.maximum(x, s) * rng.random(),
    lambda x, s, rng: torch.sigmoid(x),
    lambda x, s, rng: x.t().reshape(4, 6),
    lambda x, s, rng: x.flip(0).contiguous(),
    lambda x, s, rng: torch.cat([x[2:], x[:2]]),
    lambda x, s, rng: torch.softmax(x, 1),
    lambda x, s, rng: x - x.amin(),
    lambda x, s, rng: x / (1 + x.sum()),
    lambda x, s, rng: x.clone(),
]
WITH_SHARED = [
    lambda x, sh, rng: torch.tanh(x @ sh["square"]),
    lambda x, sh, rng: x.index_select(0, sh["index"]),
    lambda x, sh, rng: x[sh["index"]],
    lambda x, sh, rng: x.masked_fill(sh["mask"], 0.25),
]


def add_row(x, s, rng):
    i = rng.randrange(4)
    x[i].add_(s if s.dim() == 1 else s[i]).mul_(0.5)


def fill_element(x, s, rng):
    x[rng.randrange(4), rng.randrange(6)] = rng.random()


def add_columns(x, s, rng):
    x[:, 1:4].mul_(0.5)


def copy_rows(x, s, rng):
    i = rng.randrange(3)
    x[i : i + 2] = x[2:4].clone()


def write_transposed(x, s, rng):
    x.t()[2:4] *= 0.75


def out_of_place_out(x, s, rng):
    torch.mul(x, s, out=x)


IN_PLACE = [
    lambda x, s, rng: x.add_(s).mul_(0.5),
    lambda x, s, rng: x.mul_(s),
    lambda x, s, rng: x.clamp_(0.1, 0.9),
    lambda x, s, rng: x.copy_(s.expand(4, 6)),
    lambda x, s, rng: x.fill_(rng.random()),
    add_row,
    fill_element,
    add_columns,
    copy_rows,
    write_transposed,
    out_of_place_out,
]


def random_operations(seed, shared, operations=OPERATIONS):
    """A sequence that the seed decides. Returns everything it has read and the tensors it ends with."""
    rng = random.Random(seed)
    pool = [torch.full((4, 6), rng.random(), device=DEVICE) for _ in range(5)]
    log = []
    for step in range(operations):
        i = rng.randrange(len(pool))
        x, s = pool[i], pick_shared(rng, shared)
        kind = rng.random()
        if kind < 0.4:
            pool[i] = rng.choice(FUNCTIONAL)(x, s, rng)
        elif kind < 0.55:
            pool[i] = rng.choice(WITH_SHARED)(x, shared, rng)
        elif kind < 0.95:
            rng.choice(IN_PLACE)(x, s, rng)
        elif kind < 0.97:
            pool[i] = pool[rng.randrange(len(pool))].detach()  # an alias: writes are seen by both
        elif kind < 0.98:
            pool[i] = torch.full((4, 6), rng.random(), device=DEVICE)
        elif kind < 0.99:
            log.append(x[rng.randrange(4), rng.randrange(6)].item())
        elif step % 2:
            log.append(x.cpu().clone())
        else:
            torch.tpu.synchronize()
    return log, [x.cpu().clone() for x in pool]


def assert_equal_runs(a, b):
    for x, y in zip(a[0] + a[1], b[0] + b[1], strict=True):
        assert torch.equal(torch.as_tensor(x), torch.as_tensor(y))


def test_random_operations_in_four_threads_equal_the_serial_run(forbid_fallback):
    shared = make_shared()
    before = {name: t.cpu() for name, t in shared.items()}
    seeds = range(THREADS)
    threaded = in_threads([lambda seed=seed: random_operations(seed, shared) for seed in seeds])
    compiled = torch.tpu.counters()["compiles"]
    serial = [random_operations(seed, shared) for seed in seeds]
    for a, b in zip(threaded, serial, strict=True):
        assert len(a[0]) > OPERATIONS // 100
        assert_equal_runs(a, b)
    assert torch.tpu.counters()["compiles"] == compiled, "the serial run needs no new programs"
    for name, t in shared.items():
        assert torch.equal(t.cpu(), before[name]), f"{name} was only read"


def test_random_operations_equal_the_cpu(forbid_fallback):
    """So that two equal runs are not equally wrong."""
    global DEVICE
    device = DEVICE
    ours = random_operations(99, make_shared(), 1500)
    DEVICE = "cpu"
    try:
        theirs = random_operations(99, make_shared(), 1500)
    finally:
        DEVICE = device
    for x, y in zip(ours[0] + ours[1], theirs[0] + theirs[1], strict=True):
        torch.testing.assert_close(torch.as_tensor(x), torch.as_tensor(y), rtol=1e-4, atol=1e-5)


def test_random_operations_while_programs_are_evicted(forbid_fallback):
    shared = make_shared()
    with torch.tpu.settings(max_executables=64):
        before = torch.tpu.counters()
        threaded = in_threads([lambda seed=seed: random_operations(seed, shared, 150) for seed in (11, 12)])
        after = torch.tpu.counters()
    assert after["evictions"] > before["evictions"] and after["reloads"] > before["reloads"]
    for seed, run in zip((11, 12), threaded, strict=True):
        assert_equal_runs(run, random_operations(seed, shared, 150))


# ---- what threads share


def test_readers_see_whole_writes():
    """In-place writes replace the value: a reader in another thread sees one of them, never a mixture."""
    x = torch.zeros(2000, device=DEVICE)
    stop = threading.Event()

    def write():
        for i in range(600):
            x.fill_(float(i)) if i % 2 else x.add_(1.0)
        stop.set()

    def read():
        seen = 0
        while not stop.is_set():
            values = x.cpu()
            assert (values == values[0]).all()
            seen += 1
        return seen

    results = in_threads([write, read, read])
    assert results[1] > 0 and results[2] > 0


def test_training_in_threads():
    def train(device, seed):
        g = torch.Generator().manual_seed(seed)
        w = torch.rand(6, 3, generator=g).to(device).requires_grad_()
        x = torch.rand(8, 6, generator=g).to(device)
        y = torch.rand(8, 3, generator=g).to(device)
        for _ in range(30):
            loss = ((x @ w - y) ** 2).mean()
            (grad,) = torch.autograd.grad(loss, w)
            with torch.no_grad():
                w -= 0.1 * grad
        return w.detach().cpu()

    ours = in_threads([lambda s=s: train(DEVICE, s) for s in range(THREADS)])
    for seed, w in enumerate(ours):
        torch.testing.assert_close(w, train("cpu", seed), rtol=1e-4, atol=1e-5)


def test_errors_stay_in_their_thread():
    x = torch.arange(4.0, device=DEVICE)

    def wrong():
        for _ in range(50):
            with pytest.raises(IndexError):
                x[torch.tensor([9], device=DEVICE)].cpu()
        return True

    def right():
        for i in range(200):
            assert x[torch.tensor([i % 4], device=DEVICE)].item() == i % 4
        return True

    assert in_threads([wrong, right, wrong, right]) == [True] * 4
    torch.tpu.synchronize()


def test_threads_that_come_and_go_leave_nothing(count):
    x = torch.ones(64, device=DEVICE)

    def work():
        y = x
        for _ in range(20):
            y = y + 1
        return y

    in_threads([work])
    torch.tpu.synchronize()
    allocated = torch.tpu.memory_allocated()
    for _ in range(100):
        assert in_threads([work])[0][0].item() == 21
    assert torch.tpu.memory_allocated() == allocated


def test_tensors_may_die_with_their_thread(run_python):
    run_python(
        """
import threading, torch
local = threading.local()
def work():
    local.x = torch.ones(16, device="tpu")
    for _ in range(50):
        local.x = local.x + 1
for _ in range(30):
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
assert (torch.ones(16, device="tpu") + 1).sum().item() == 32
"""
    )


# ---- forks


def test_a_forked_child_with_work_in_flight(run_python):
    run_python(
        """
import os, signal, torch
x = torch.ones(512, 512, device="tpu")
(x @ x).cpu()
for _ in range(20):
    for _ in range(10):
        x = (x @ x) * 1e-3
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        wrong = 0
        for use in (lambda: x + 1, x.cpu, torch.tpu.synchronize, lambda: torch.ones(2).to("tpu"), lambda: x[0, 0].item()):
            try:
                use()
                wrong += 1
            except RuntimeError as error:
                wrong += "fork" not in str(error)
        del x
        os._exit(wrong)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert x.isfinite().all().item()
"""
    )


def test_data_loader_workers(run_python):
    done = run_python(
        """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, i): return torch.full((3,), float(i)), i
device_tensor = torch.ones(3, device="tpu") + 1  # the engine runs before the workers are forked
total = 0
for epoch in range(2):
    for x, i in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2):
        y = x.to("tpu") * 2
        total += y.sum().item()
assert total == 2 * 2 * 3 * sum(range(40)), total
print("done")
"""
    )
    assert done.stdout.strip() == "done" and done.stderr.count("\n") <= 1


# ---- the end of the process


# Daemon threads whose first operation still has its result types inferred by PyTorch's Python code are beyond help: like
# threads in any operation of torch on the CPU, they abort when Python ends them there.
END_CODES = {
    "daemon threads at work": """
import threading, time, torch
def work(once=False):
    x = torch.ones(64, 64, device="tpu")
    while True:
        x = (x @ x) * 0.01
        x[0, 0].item()
        if once: break
work(once=True)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""",
    "daemon threads that wait": """
import threading, time, torch
def work(once=False):
    x = torch.ones(700, 700, device="tpu")
    while True:
        for _ in range(5):
            x = (x @ x) * 0.001
        torch.tpu.synchronize()
        if once: break
work(once=True)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
""",
    "a thread that outlives main": """
import threading, time, torch
def work():
    x = torch.ones(64, device="tpu")
    for _ in range(3000):
        x = x * 0.5 + 1
    print(round(x[0].item(), 3))
threading.Thread(target=work).start()
""",
    "work in flight": """
import torch
x = torch.ones(700, 700, device="tpu")
for _ in range(20):
    x = (x @ x) * 0.001
""",
    "a failure nobody has raised": """
import torch
torch.arange(4, device="tpu")[torch.tensor([9], device="tpu")]
""",
    "tensors in modules and cycles": """
import sys, torch
class Node: pass
a = Node(); a.self = a; a.t = torch.ones(3, device="tpu") + 1
sys.keep = a
torch.keep = a.t * 2
""",
}


@pytest.mark.parametrize("name", END_CODES)
def test_the_process_ends_with_exit_code_0(name, run_python):
    for _ in range(2 if "daemon" in name else 1):
        done = run_python(END_CODES[name], timeout=60)
        lines = [line for line in done.stderr.splitlines() if "the engine that answers" not in line]
        assert lines == []
