# SPDX-License-Identifier: Apache-2.0
"""The C++ runtime as torch sees it: hooks, guard, streams, events, allocators, generators, dispatch keys, errors."""

import gc
import signal
import threading
import time
import warnings

import pytest
import torch

from torch_tpu import _C

MIB = 1 << 20
TWO_DEVICES = {"TORCH_TPU_DEVICE_COUNT": "2"}


def in_thread(function):
    """Runs function in a new thread; returns its result, or raises what it raised."""
    outcome = []

    def run():
        try:
            outcome.append((function(), None))
        except Exception as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


# ---- who answers, devices


def test_accelerator_is_the_device():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("tpu")
    assert torch.accelerator.device_count() == torch.tpu.device_count() == 1
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.synchronize()
    supported = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.float8_e5m2} <= supported
    assert torch.quint8 not in supported and torch.complex32 not in supported


def test_asking_starts_nothing(run_python):
    run_python("""
import torch
assert torch.tpu.is_available() and torch.accelerator.is_available() and torch.tpu.device_count() == 1
torch.manual_seed(3)
torch.tpu.synchronize(); torch.tpu.empty_cache(); torch.tpu.memory_allocated(); torch.tpu.get_rng_state()
assert not torch.tpu.is_initialized()
(torch.ones(2, device="tpu") + 1).cpu()
assert torch.tpu.is_initialized()
""")


@pytest.mark.parametrize(("engine", "expected"), [("auto", True), ("cpu", True), ("off", False), ("tpu", _C.tpu_on_bus())])
def test_is_available_follows_the_setting(run_python, engine, expected):
    run_python(
        f"import torch; assert torch.tpu.is_available() is torch.accelerator.is_available() is {expected}",
        TORCH_TPU_ENGINE=engine,
    )


def test_engine_off_says_so(run_python):
    done = run_python("import torch; torch.ones(2, device='tpu')", check=False, TORCH_TPU_ENGINE="off")
    assert done.returncode == 1 and "RuntimeError" in done.stderr


def test_settings_of_the_start_stand_once_it_runs():
    _C.init()
    with pytest.raises(RuntimeError, match="before the tpu device is first used"):
        torch.tpu.settings.set("device_count", 7)
    torch.tpu.settings.set("device_count", torch.tpu.settings.get("device_count"))


@pytest.mark.parametrize("index", [1, 99])
def test_a_device_out_of_range_is_named(index):
    with pytest.raises(RuntimeError, match=rf"tpu device index {index} is out of range: there is one device, tpu:0"):
        torch.tpu.set_device(index)
    with pytest.raises(RuntimeError, match="out of range"):
        torch.accelerator.set_device_index(index)
    with pytest.raises(RuntimeError, match="out of range"):
        torch.ones(2, device=f"tpu:{index}")
    with pytest.raises(RuntimeError, match="out of range"):
        torch.Generator(f"tpu:{index}")
    assert torch.tpu.current_device() == 0


def test_two_devices(run_python):
    run_python(
        """
import threading, torch
assert torch.tpu.device_count() == torch.accelerator.device_count() == 2
assert torch.ones(2, device="tpu").device == torch.device("tpu:0")
torch.tpu.set_device(1)
assert torch.ones(2, device="tpu").device == torch.device("tpu:1")
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_device()))
thread.start(); thread.join()
assert seen == [0], "the current device is a thread's own"
with torch.accelerator.device_index(0):
    assert torch.tpu.current_device() == 0
with torch.tpu.device(0):
    assert torch.tpu.current_device() == 0
assert torch.tpu.current_device() == 1
x = torch.arange(4., device="tpu:0")
y = x.to("tpu:1")
assert y.device.index == 1 and y.tolist() == [0, 1, 2, 3]
with torch.tpu.device_of(x):
    assert torch.tpu.current_device() == 0
assert torch.accelerator.current_stream("tpu:1").device.index == 1
before = torch.tpu.memory_allocated(0)
z = torch.ones(1024, device="tpu:1")
assert torch.tpu.memory_allocated(0) == before and torch.tpu.memory_allocated(1) >= 4096
torch.manual_seed(5)
a, b = (torch.rand(3, device=f"tpu:{i}").cpu() for i in range(2))
assert torch.equal(a, b), "one seed, a generator each"
w = torch.ones(3, device="tpu:1", requires_grad=True)
(w * 2).sum().backward()
assert w.grad.device.index == 1
""",
        **TWO_DEVICES,
    )


# ---- streams and events


def test_streams_have_ids_of_their_own():
    default = torch.accelerator.current_stream()
    assert default.stream_id == 0
    streams = [torch.Stream("tpu") for _ in range(4)]
    high = [torch.Stream("tpu", priority=-1) for _ in range(4)]
    ids = {s.stream_id for s in streams + high}
    assert len(ids) == 8 and 0 not in ids
    assert {_C.stream_priority(s.stream_id) for s in streams} == {0}
    assert {_C.stream_priority(s.stream_id) for s in high} == {-1}


def test_streams_of_the_pool_come_again():
    ids = [torch.Stream("tpu").stream_id for _ in range(100)]
    assert len(set(ids)) == 32


def test_the_current_stream_is_a_threads_own():
    stream = torch.Stream("tpu")
    with stream:
        assert torch.accelerator.current_stream() == stream
        assert in_thread(lambda: torch.accelerator.current_stream().stream_id) == 0
        inner = torch.Stream("tpu")
        torch.accelerator.set_stream(inner)
        assert torch.accelerator.current_stream() == inner
    assert torch.accelerator.current_stream().stream_id == 0


def test_streams_wait_for_each_other():
    first, second = torch.Stream("tpu"), torch.Stream("tpu")
    with first:
        x = torch.ones(256, 256, device="tpu") @ torch.ones(256, 256, device="tpu")
    event = first.record_event()
    second.wait_event(event)
    second.wait_stream(first)
    with second:
        y = x.sum()
    second.synchronize()
    assert second.query() and first.query() and event.query()
    assert y.item() == 256.0**3


def test_an_event_that_was_never_recorded():
    event = torch.Event("tpu", enable_timing=True)
    assert event.query()
    event.synchronize()
    torch.accelerator.current_stream().wait_event(event)
    with pytest.raises(ValueError, match="recorded"):
        event.elapsed_time(torch.Event("tpu", enable_timing=True))


def test_elapsed_time_of_an_idle_queue_is_the_hosts():
    torch.tpu.synchronize()
    start, end = (torch.Event("tpu", enable_timing=True) for _ in range(2))
    start.record()
    time.sleep(0.05)
    end.record()
    end.synchronize()
    assert 45 < start.elapsed_time(end) < 5000
    assert end.elapsed_time(start) < 0


def test_elapsed_time_covers_the_work():
    x = torch.ones(512, 512, device="tpu")
    (x @ x).cpu()  # compiled
    start, end = (torch.Event("tpu", enable_timing=True) for _ in range(2))
    begin = time.perf_counter()
    start.record()
    for _ in range(20):
        x = (x @ x) * 1e-3
    end.record()
    end.synchronize()
    wall = (time.perf_counter() - begin) * 1e3
    assert 0.2 < start.elapsed_time(end) <= wall + 1


def test_events_can_be_recorded_again():
    start, end = (torch.Event("tpu", enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    time.sleep(0.02)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 15


def test_elapsed_time_of_subclasses():
    start, end = (torch.tpu.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    end.synchronize()
    assert _C.event_elapsed_time(start, end) >= 0
    with pytest.raises(TypeError, match=r"torch\.Event"):
        _C.event_elapsed_time(start, torch.tpu.Stream())


def test_elapsed_time_needs_timing():
    start, end = torch.Event("tpu"), torch.Event("tpu")
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(end)


def test_many_events_in_flight():
    events = []
    x = torch.zeros(16, device="tpu")
    for _ in range(200):
        x = x + 1
        events.append(torch.Event("tpu", enable_timing=True))
        events[-1].record()
    events[-1].synchronize()
    assert all(e.query() for e in events) and x[0].item() == 200
    times = [events[0].elapsed_time(e) for e in events]
    assert times == sorted(times)


@pytest.mark.parametrize("how", ["device", "stream", "event"])
def test_synchronize_raises_what_failed(how):
    index = torch.tensor([0, 99], device="tpu")
    x = torch.arange(4.0, device="tpu")
    torch.tpu.synchronize()
    lost = x.index_select(0, index)
    with pytest.raises(IndexError):
        if how == "device":
            torch.accelerator.synchronize()
        elif how == "stream":
            torch.accelerator.current_stream().synchronize()
        else:
            event = torch.Event("tpu")
            event.record()
            event.synchronize()
    torch.accelerator.synchronize()  # once
    with pytest.raises(IndexError):
        lost.cpu()


# ---- device memory


def test_statistics_in_the_layout_of_cuda():
    torch.tpu.synchronize()
    gc.collect()
    before = torch.accelerator.memory_stats()
    assert {
        f"{k}.{p}.{m}"
        for k in ("allocation", "allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
        for p in ("all", "small_pool", "large_pool")
        for m in ("current", "peak", "allocated", "freed")
    } <= set(before)
    assert dict(torch.tpu.memory_stats()).items() <= dict(before).items()

    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    x = torch.zeros(MIB, device="tpu")
    torch.tpu.synchronize()
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == before["allocated_bytes.all.current"] + 4 * MIB
    assert stats["allocated_bytes.all.allocated"] >= 4 * MIB
    assert stats["allocation.all.current"] >= before["allocation.all.current"] + 1
    assert stats["reserved_bytes.all.current"] >= 4 * MIB
    assert stats["allocated_bytes.all.current"] == stats["allocated_bytes.large_pool.current"]
    del x
    torch.tpu.synchronize()
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert stats["allocated_bytes.all.freed"] >= 4 * MIB
    assert stats["allocated_bytes.all.peak"] >= before["allocated_bytes.all.current"] + 4 * MIB
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.accelerator.memory_allocated()


def test_views_and_empty_storages_allocate_nothing():
    x = torch.zeros(1000, device="tpu")
    before = torch.tpu.memory_allocated()
    views = [x[3:], x.view(10, 100), x.t(), torch.empty(0, device="tpu"), x.detach()]
    assert torch.tpu.memory_allocated() == before
    assert views[3].untyped_storage().data_ptr() == 0 and x.untyped_storage().data_ptr() != 0
    assert views[0].data_ptr() - x.data_ptr() == 12


def test_free_memory_follows():
    torch.tpu.synchronize()
    free, total = torch.accelerator.get_memory_info()
    x = torch.ones(8 * MIB, device="tpu")
    torch.tpu.synchronize()
    assert torch.tpu.mem_get_info()[1] == total
    assert free - torch.tpu.mem_get_info()[0] >= 31 * MIB
    assert x[0].item() == 1


def test_too_large_an_allocation_is_out_of_memory():
    limit = torch.tpu.memory_allocated() + torch.tpu.memory_reserved() + 64 * MIB
    with torch.tpu.settings(memory_limit=limit):
        with pytest.raises(torch.OutOfMemoryError, match=r"tpu:0 is out of memory. Tried to allocate .*Limit"):
            torch.empty(256 * MIB, dtype=torch.uint8, device="tpu")
        with pytest.raises(torch.OutOfMemoryError):
            torch.UntypedStorage(256 * MIB, device="tpu")
        with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
            torch.ones(256 * MIB, dtype=torch.uint8, device="tpu")
        with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
            torch.ones(256 * MIB, dtype=torch.uint8).to("tpu")
        assert torch.ones(4, device="tpu").sum().item() == 4, "the process goes on"
        assert torch.tpu.memory_stats()["num_ooms"] >= 1


def test_many_allocations_reach_the_limit_too():
    kept = []
    limit = max(torch.tpu.memory_allocated(), torch.tpu.memory_reserved()) + 64 * MIB
    with torch.tpu.settings(memory_limit=limit), pytest.raises(torch.OutOfMemoryError):
        for _ in range(100):
            kept.append(torch.empty(MIB, dtype=torch.uint8, device="tpu"))
    assert 50 < len(kept) <= 64


def test_garbage_is_collected_before_giving_up():
    class Cycle:
        pass

    def leave_garbage():
        cycle = Cycle()
        cycle.self, cycle.tensor = cycle, torch.ones(40 * MIB, dtype=torch.uint8, device="tpu")
        torch.tpu.synchronize()

    gc.collect()
    torch.tpu.synchronize()
    limit = max(torch.tpu.memory_allocated(), torch.tpu.memory_reserved()) + 64 * MIB
    gc.disable()
    try:
        with torch.tpu.settings(memory_limit=limit):
            leave_garbage()
            x = torch.ones(40 * MIB, dtype=torch.uint8, device="tpu")
            assert x[5].item() == 1
            del x
            leave_garbage()
            torch.empty(40 * MIB, dtype=torch.uint8, device="tpu")
    finally:
        gc.enable()
    assert torch.tpu.memory_stats()["num_alloc_retries"] >= 1


def test_impossible_sizes():
    with pytest.raises(RuntimeError, match="overflow"):
        torch.empty(2**40, 2**40, device="tpu")


def test_storages_by_address_alone():
    storage = torch.arange(6, dtype=torch.uint8, device="tpu").untyped_storage()
    assert storage[2] == 2 and storage.cpu().tolist() == list(range(6))
    assert torch.UntypedStorage(0, device="tpu").cpu().tolist() == []


# ---- pinned memory


def test_pinned_memory_tells_the_truth():
    plain = torch.arange(10_000.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned() and not plain.is_pinned() and not (pinned + 1).is_pinned()
    assert pinned[1234:].is_pinned() and pinned.untyped_storage().is_pinned()
    assert pinned.data_ptr() % 4096 == 0 and torch.equal(pinned, plain)
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.equal(pinned.to("tpu", non_blocking=True).cpu(), plain)
    address = pinned.data_ptr()
    del pinned
    gc.collect()
    other = torch.empty(1)
    assert other.data_ptr() == address or not other.is_pinned()


def test_the_host_may_write_again_after_an_upload():
    pinned = torch.ones(1 << 16).pin_memory()
    copy = pinned.to("tpu", non_blocking=True)
    pinned.fill_(7)
    assert copy.sum().item() == 1 << 16


def test_a_pinning_data_loader():
    data = torch.utils.data.TensorDataset(torch.arange(64.0))
    loader = torch.utils.data.DataLoader(data, batch_size=16, pin_memory=True, num_workers=1)
    seen = [batch.to("tpu").sum().item() for (batch,) in loader if batch.is_pinned()]
    assert len(seen) == 4 and sum(seen) == sum(range(64))


# ---- generators


def test_the_state_is_seed_and_offset():
    generator = torch.Generator("tpu")
    assert generator.device == torch.device("tpu:0")
    generator.manual_seed(0x1234_5678)
    state = generator.get_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.shape == (16,)
    assert state.view(torch.int64).tolist() == [0x1234_5678, 0]
    generator.set_offset(40)
    assert generator.get_state().view(torch.int64).tolist() == [0x1234_5678, 40] and generator.get_offset() == 40
    generator.set_state(torch.tensor([9, 8]).view(torch.uint8))
    assert (generator.initial_seed(), generator.get_offset()) == (9, 8)
    assert generator.seed() == generator.initial_seed() and generator.get_offset() == 0


@pytest.mark.parametrize(
    ("state", "error"),
    [(torch.zeros(8, dtype=torch.uint8), RuntimeError), (torch.zeros(2, dtype=torch.int64), TypeError)],
)
def test_a_wrong_state_is_refused(state, error):
    with pytest.raises(error):
        torch.Generator("tpu").set_state(state)


def test_draws_move_the_offset_in_fours():
    generator = torch.Generator("tpu").manual_seed(1)
    torch.rand(5, device="tpu", generator=generator)
    assert generator.get_offset() == 8
    torch.randn(4, device="tpu", generator=generator)
    assert generator.get_offset() % 4 == 0 and generator.get_offset() >= 12


def test_the_same_seed_gives_the_same_numbers():
    generator = torch.Generator("tpu").manual_seed(7)
    first = torch.rand(33, device="tpu", generator=generator).cpu()
    second = torch.rand(33, device="tpu", generator=generator).cpu()
    generator.manual_seed(7)
    assert torch.equal(torch.rand(33, device="tpu", generator=generator).cpu(), first)
    assert not torch.equal(first, second)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(33, device="tpu").cpu(), first)


def test_clones_and_shared_states():
    generator = torch.Generator("tpu").manual_seed(3)
    copy = generator.clone_state()
    torch.rand(8, device="tpu", generator=generator)
    assert (copy.get_offset(), generator.get_offset()) == (0, 8)
    shared = generator.graphsafe_get_state()
    torch.rand(8, device="tpu", generator=generator)
    assert shared.get_offset() == generator.get_offset() == 16
    generator.graphsafe_set_state(copy)
    assert generator.get_offset() == 0


def test_another_kind_of_generator_is_refused():
    with pytest.raises(RuntimeError, match="Expected a 'tpu' device type for generator but found 'cpu'"):
        torch.rand(3, device="tpu", generator=torch.Generator())


def test_threads_never_draw_the_same_numbers():
    generator = torch.Generator("tpu").manual_seed(11)
    drawn = []

    def draw():
        for _ in range(50):
            drawn.append(torch.rand(4, device="tpu", generator=generator))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert generator.get_offset() == 4 * 50 * 4
    assert len({tuple(t.tolist()) for t in drawn}) == 200


def test_fork_rng_and_checkpointing_restore_the_state():
    torch.manual_seed(21)
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        inside = torch.rand(4, device="tpu").cpu()
    assert torch.equal(torch.rand(4, device="tpu").cpu(), inside)

    from torch.utils.checkpoint import checkpoint

    x = torch.ones(64, device="tpu", requires_grad=True)
    masks = []

    def drop(t):
        y = torch.nn.functional.dropout(t, 0.5)
        masks.append(y.detach().cpu() != 0)
        return y * t

    checkpoint(drop, x, use_reentrant=False).sum().backward()
    assert len(masks) == 2 and torch.equal(*masks)


# ---- modules


def test_moving_a_module_keeps_parameters_and_ties():
    module = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False))
    module[1].weight = module[0].weight
    parameter = module[0].weight
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    expected = parameter.detach().clone()
    module.to("tpu")
    assert module[0].weight is module[1].weight is parameter and parameter.is_tpu
    module(torch.ones(2, 4, device="tpu")).sum().backward()
    assert parameter.grad.is_tpu
    optimizer.step()
    assert not torch.equal(parameter.detach().cpu(), expected)
    module.to("cpu")
    assert module[1].weight is parameter and parameter.device.type == "cpu"


def test_data_can_be_exchanged():
    parameter = torch.nn.Parameter(torch.zeros(3))
    parameter.data = torch.ones(3, device="tpu")
    assert parameter.is_tpu and (parameter * 2).sum().item() == 6


# ---- dispatch keys


def test_conjugate_and_negative_views_are_copied():
    x = torch.tensor([1 + 2j, 3 - 4j], device="tpu")
    assert x.conj().is_conj() and x.conj().cpu().tolist() == [1 - 2j, 3 + 4j]
    assert x.conj().imag.cpu().tolist() == [-2, 4]


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), device="tpu"), "sparse"),
        (lambda: torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), device="tpu").to_dense(), "sparse compressed"),
        (lambda: torch.empty(3, dtype=torch.quint8, device="tpu"), ""),
    ],
)
def test_tensors_that_the_device_does_not_have(make, word):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError) as caught:  # NotImplementedError is one
            make()
    assert word in str(caught.value) and "Backend" not in str(caught.value)


def test_custom_operators_without_a_derivative():
    library = torch.library.Library("torch_tpu_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "PrivateUse1")
    x = torch.ones(3, device="tpu", requires_grad=True)
    y = torch.ops.torch_tpu_test.twice(x)
    assert y.tolist() == [2, 2, 2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (y.sum() + x.sum()).backward()
    assert any("autograd kernel" in str(w.message) for w in caught), "as on the CPU: a warning in backward"


def test_autocast_uses_the_lists_of_core():
    x, w = torch.ones(4, 4, device="tpu"), torch.ones(4, 4, device="tpu")
    with torch.autocast("tpu", dtype=torch.bfloat16):
        assert (x @ w).dtype == torch.bfloat16
        assert torch.exp(x @ w).dtype == torch.float32
        assert torch.nn.functional.linear(x, w).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            torch.nn.functional.binary_cross_entropy(x, w)
    assert (x @ w).dtype == torch.float32


# ---- errors, signals, processes


def test_status_becomes_the_exception_of_torch():
    with pytest.raises(ValueError, match="no setting"):
        _C.set_setting("nonsense", "1")
    with pytest.raises(RuntimeError):
        _C.run_stablehlo("this is no module", [])
    with pytest.raises(TypeError):
        _C.run_stablehlo("", [torch.empty(1, dtype=torch.complex32)])


def test_run_stablehlo():
    text = """module @add { func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i64>) {
      %r = stablehlo.add %x, %y : tensor<2x3xf32>
      %c = stablehlo.constant dense<7> : tensor<i64>
      return %r, %c : tensor<2x3xf32>, tensor<i64> } }"""
    x = torch.arange(6.0).reshape(3, 2).t()  # strided
    total, seven = _C.run_stablehlo(text, [x, torch.ones(2, 3)])
    assert torch.equal(total, x + 1) and seven.item() == 7 and seven.dtype == torch.int64


def test_information_about_the_engine():
    info = _C.plugin_info()
    assert set(info) == {"path", "minor", "attributes", "extensions", "profile"} and info["minor"] >= 67
    assert set(_C.device_properties(0)) >= {"name", "kind", "total_memory", "platform", "platform_version"}
    assert _C.start_error() == "" and _C.is_initialized() and not _C.in_bad_fork()
    assert _C.counters()["records"] > 0 or _C.counters()["launches"] >= 0
    assert "aten::add.Tensor" in _C.op_names_with_rules()


def test_control_c_ends_a_long_wait(run_python):
    begin = time.monotonic()
    done = run_python(
        """
import os, signal, threading, time, torch
signal.signal(signal.SIGINT, signal.default_int_handler)
x = torch.ones(2048, 2048, device="tpu")
(x @ x).cpu()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(400):
        x = (x @ x) * 1e-4
    x.cpu()
    torch.tpu.synchronize()
    print("finished")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
""",
        timeout=300,
    )
    assert done.stdout.strip() in ("interrupted", "finished")
    if done.stdout.strip() == "interrupted":
        assert time.monotonic() - begin < 120


def test_a_handler_that_returns_does_not_end_the_wait(run_python):
    done = run_python(
        """
import os, signal, threading, torch
hits = []
signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
x = torch.ones(1024, 1024, device="tpu")
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
for _ in range(60):
    x = (x @ x) * 1e-3
x.cpu()
import time; time.sleep(0.5)
print(len(hits))
"""
    )
    assert done.stdout.strip() == "1"


def test_other_threads_run_during_a_wait():
    x = torch.ones(1024, 1024, device="tpu")
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    for _ in range(40):
        x = (x @ x) * 1e-3
    _C.synchronize()
    took = time.monotonic() - begin
    stop.set()
    thread.join()
    assert len(ticks) >= took / 0.05, "the wait holds the GIL"


def test_a_forked_child_is_told(run_python):
    run_python(
        """
import os, torch
x = torch.ones(512, 512, device="tpu")
(x @ x).cpu()
pending = x
for _ in range(200):
    pending = (pending @ x) * 1e-3
pid = os.fork()
if pid == 0:
    ok = torch.tpu._is_in_bad_fork()
    for use in (lambda: torch.ones(2, device="tpu"), lambda: x + 1, pending.cpu, torch.tpu.synchronize):
        try:
            use()
            ok = False
        except RuntimeError as error:
            ok = ok and "fork" in str(error)
    ok = ok and (torch.ones(2) + 1).sum().item() == 4
    del x, pending
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert x.sum().item() == 512**2 and pending.cpu().isfinite().all()
"""
    )


@pytest.mark.parametrize("code", [0, 3])
def test_exit_with_work_in_flight(run_python, code):
    done = run_python(
        f"import sys, torch\nx = torch.ones(256, 256, device='tpu')\nfor _ in range(20): x = x @ x * 1e-3\nsys.exit({code})",
        check=False,
        TORCH_TPU_LOG_LEVEL="error",
    )
    assert done.returncode == code and done.stderr == ""


def test_interrupts_are_not_lost_between_waits():
    """A signal that arrives outside a wait is Python's business as ever."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        torch.tpu.synchronize()
    assert torch.ones(2, device="tpu").sum().item() == 2
