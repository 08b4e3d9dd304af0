# SPDX-License-Identifier: Apache-2.0
"""torch.tpu: the functions that frameworks call."""

import json
import os
import subprocess
import sys

import pytest
import torch

CALLED_BY_FRAMEWORKS = """
is_available is_initialized init _lazy_init device_count current_device set_device device device_of synchronize
_is_in_bad_fork _initialized manual_seed manual_seed_all seed seed_all initial_seed get_rng_state set_rng_state
get_rng_state_all set_rng_state_all default_generators _get_generator Stream Event stream set_stream current_stream
default_stream get_amp_supported_dtype memory_allocated max_memory_allocated memory_reserved max_memory_reserved
memory_stats memory_summary reset_peak_memory_stats reset_accumulated_memory_stats empty_cache mem_get_info
get_device_name get_device_properties get_device_capability is_bf16_supported settings eager_mode set_eager_mode
counters reset_counters amp memory random _utils
""".split()


@pytest.mark.parametrize("name", CALLED_BY_FRAMEWORKS)
def test_name_exists(name):
    assert hasattr(torch.tpu, name)


def test_everything_public_exists():
    assert [n for n in torch.tpu.__all__ if not hasattr(torch.tpu, n)] == []


@pytest.mark.parametrize("device", [0, "tpu", "tpu:0", torch.device("tpu"), torch.device("tpu", 0), None])
def test_devices_are_named_in_every_way(device):
    torch.tpu.synchronize(device)
    with torch.tpu.device(device):
        assert torch.tpu.current_device() == 0
    assert torch.tpu.memory_allocated(device) >= 0


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_other_devices_are_refused(device):
    with pytest.raises(ValueError, match="Expected a tpu device"):
        torch.tpu.synchronize(device)


def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError):
        torch.tpu.set_device(torch.tpu.device_count())


def test_seeding_all_devices_and_restoring_the_state():
    torch.manual_seed(1234)
    assert torch.tpu.initial_seed() == 1234
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8 and state.numel() == 16 and state.device.type == "cpu"
    first = torch.rand(5, device="tpu").cpu()
    second = torch.rand(5, device="tpu").cpu()
    torch.tpu.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="tpu").cpu(), first)
    assert not torch.equal(first, second)


def test_fork_rng_keeps_the_device_state():
    torch.manual_seed(1)
    before = torch.tpu.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        torch.rand(3, device="tpu")
    assert torch.equal(torch.tpu.get_rng_state(), before)


def test_streams_and_events():
    stream = torch.tpu.Stream()
    assert isinstance(stream, torch.Stream) and stream.device.type == "tpu"
    with torch.tpu.stream(stream):
        assert torch.tpu.current_stream() == stream
        y = torch.ones(8, device="tpu") * 2
    assert torch.tpu.current_stream() == torch.tpu.default_stream()
    event = stream.record_event()
    assert isinstance(event, torch.tpu.Event)
    torch.tpu.current_stream().wait_event(event)
    event.synchronize()
    assert event.query() and y.sum().item() == 16
    with torch.tpu.stream(None):
        pass


def test_timed_events():
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    start.record()
    x = torch.ones(64, 64, device="tpu") @ torch.ones(64, 64, device="tpu")
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0 and x[0, 0].item() == 64


def test_memory_statistics_follow_a_tensor():
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    torch.tpu.reset_peak_memory_stats()
    x = torch.ones(1 << 20, device="tpu")
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() - before >= 4 << 20
    assert torch.tpu.max_memory_allocated() >= torch.tpu.memory_allocated()
    del x
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == before
    free, total = torch.tpu.mem_get_info()
    assert 0 <= free <= total
    assert "allocated_bytes.all.current" in torch.tpu.memory_stats()


def test_device_properties():
    properties = torch.tpu.get_device_properties()
    assert properties.name == torch.tpu.get_device_name() and properties.total_memory > 0
    assert torch.float32 in torch.tpu.get_device_capability()["supported_dtypes"]


def test_settings_are_scoped():
    assert torch.tpu.eager_mode() == "strict"
    with torch.tpu.set_eager_mode("debug"):
        assert torch.tpu.eager_mode() == "debug"
        with torch.tpu.settings(eager_mode="strict", explain=True):
            assert (torch.tpu.eager_mode(), torch.tpu.settings.get("explain")) == ("strict", 1)
        assert (torch.tpu.eager_mode(), torch.tpu.settings.get("explain")) == ("debug", 0)
    assert torch.tpu.eager_mode() == "strict"


def test_settings_refuse_what_is_wrong_and_change_nothing():
    with pytest.raises(ValueError, match="no setting"):
        torch.tpu.settings.set("nonsense", 1)
    with pytest.raises(ValueError, match="must be one of"):
        torch.tpu.settings(fallback="forbid", eager_mode="nonsense")
    assert torch.tpu.settings.get("fallback") == "warn"


@pytest.mark.parametrize(
    ("environment", "mode"),
    [
        ({"TORCH_TPU_DEFER_AND_FUSE": "1"}, "fused"),
        ({"TPU_DEFER_AND_FUSE": "1"}, "fused"),
        ({"TPU_DEFER_AND_FUSE": "0"}, "strict"),
        ({"TPU_LAUNCH_BLOCKING": "1"}, "debug"),
        ({"TPU_LAUNCH_BLOCKING": "1", "TORCH_TPU_EAGER_MODE": "strict"}, "strict"),
    ],
)
def test_the_peers_variables_choose_the_mode(environment, mode):
    code = "import torch; print(torch.tpu.eager_mode())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == mode


def test_printing_is_one_read(count):
    x = torch.arange(10_000, dtype=torch.float32, device="tpu").reshape(100, 100)
    with count() as c:
        text = repr(x)
    values, device = text.split(",\n       device=") if ",\n       device=" in text else text.split(", device=")
    assert values == repr(x.cpu())[:-1] and device == "'tpu:0')"
    assert c["launches"] <= 1


def test_printing_keeps_what_torch_adds():
    x = torch.ones(2, device="tpu", requires_grad=True)
    assert repr(x) == "tensor([1., 1.], device='tpu:0', requires_grad=True)"
    assert "grad_fn=<MulBackward0>" in repr(x * 2)
    assert repr(torch.nn.Parameter(x)).startswith("Parameter containing:\ntensor([1., 1.], device='tpu:0'")


def test_lazy_modules_can_be_moved():
    module = torch.nn.LazyLinear(3).tpu()
    assert module(torch.ones(2, 5, device="tpu")).device.type == "tpu"


def test_doctor_prints_json_and_nothing_else():
    done = subprocess.run([sys.executable, "-m", "torch_tpu", "doctor", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["versions"]["torch_tpu"] and report["engine"]["devices"][0]["total_memory"] > 0
    assert {p["torch_tpu"] for p in report["probes"] if not p["known_limit"]} == {"right"}


def test_doctor_says_why_the_engine_does_not_start(run_python):
    done = run_python(
        "import sys; from torch_tpu.__main__ import main; sys.exit(main(['doctor']))",
        check=False,
        TORCH_TPU_PLUGIN_PATH="/no/such/plugin.so",
    )
    assert done.returncode == 1 and "/no/such/plugin.so" in done.stdout
