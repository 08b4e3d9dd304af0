# SPDX-License-Identifier: Apache-2.0
"""torch.compile: values against eager execution on the CPU, and how many programs a call takes."""

import copy
import threading

import pytest
import torch
import torch._dynamo.testing
import torch.utils.checkpoint
from torch import nn

DEVICE = "tpu"


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def one_program(count):
    """Calls a compiled function whose programs exist: nothing may be compiled, and one program is launched."""

    def call(function, *args, launches=1):
        with count() as counted:
            result = function(*args)
        assert (counted["compiles"], counted["launches"], counted["fallbacks"]) == (0, launches, 0)
        return result

    return call


def on_device(value):
    """A copy of a tensor, or of all tensors in a tuple or module, on the device."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(DEVICE).requires_grad_(value.requires_grad)
    return type(value)(map(on_device, value)) if isinstance(value, (list, tuple)) else copy.deepcopy(value).to(DEVICE)


def assert_close(actual, expected, **tolerances):
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_close(a, e, **tolerances)
    elif isinstance(expected, torch.Tensor):
        assert actual.device.type == DEVICE
        torch.testing.assert_close(actual.cpu(), expected, **{"rtol": 1e-5, "atol": 1e-6, **tolerances})
    else:
        assert actual == expected


class Block(nn.Module):
    def __init__(self, width=16, heads=2, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*qkv, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.after(x))


# ---- how it is reached


def test_the_backend_is_listed_and_is_the_default():
    assert "tpu" in torch._dynamo.list_backends()
    from torch._dynamo.backends.registry import get_default_backend

    assert get_default_backend() == "tpu"


def test_the_device_interface_is_ours():
    from torch._dynamo.device_interface import get_interface_for_device

    import torch_tpu.compile.device_interface as ours

    for device in ("tpu", "tpu:0", torch.device("tpu", 0)):
        interface = get_interface_for_device(device)
        assert interface is ours.TpuInterface
    assert interface.is_available() and interface.current_device() == 0 and interface.device_count() >= 1
    assert interface.current_stream().device_index == 0 and interface.get_raw_stream(0) == 0
    assert interface.get_device_properties(0).multi_processor_count == 1
    assert interface.is_bf16_supported() and interface.is_dtype_supported(torch.float64)


@pytest.mark.parametrize("arguments", [{}, {"backend": "tpu"}, {"fullgraph": True}, {"dynamic": False}])
def test_plain_function(arguments, one_program):
    def function(x, y):
        return torch.sin(x) * y + x.sum(), y.t() @ x

    x, y = torch.randn(4, 3), torch.randn(4, 3)
    compiled = torch.compile(function, **arguments)
    args = on_device((x, y))
    assert_close(compiled(*args), function(x, y))
    assert_close(one_program(compiled, *args), function(x, y))


def test_mode_and_options_warn_once():
    x = torch.ones(2, device=DEVICE)
    from torch_tpu.compile.backend import _warn_ignored

    _warn_ignored.cache_clear()
    with pytest.warns(UserWarning, match="no effect"):
        torch.compile(lambda x: x + 1, mode="max-autotune")(x)
    assert torch.compile(lambda x: x + 2, options={"max_autotune": True})(x).tolist() == [3, 3]


def test_cpu_functions_are_inductors(monkeypatch):
    import torch._inductor.compile_fx as inductor

    seen = []

    def compile_fx(gm, example_inputs, config_patches, **kwargs):
        seen.append(config_patches)
        return gm.forward

    monkeypatch.setattr(inductor, "compile_fx", compile_fx)
    x = torch.randn(8)
    compiled = torch.compile(lambda x: x.sin() + 1, options={"epilogue_fusion": False})
    torch.testing.assert_close(compiled(x), x.sin() + 1)
    assert seen == [{"epilogue_fusion": False}]


# ---- forward and backward


@pytest.mark.parametrize(
    "make", [lambda: nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)), Block], ids=["mlp", "block"]
)
def test_forward_and_backward(make, count, forbid_fallback):
    torch.manual_seed(0)
    model = make()
    x = torch.randn(2, 5, 16, requires_grad=True)
    device_model, device_x = on_device(model), on_device(x)
    compiled = torch.compile(device_model, fullgraph=True)
    expected = model(x)
    expected.square().sum().backward()
    for _ in range(2):
        device_model.zero_grad()
        device_x.grad = None
        result = compiled(device_x)
        result.square().sum().backward()
    assert_close(result, expected.detach(), rtol=1e-4, atol=1e-5)
    assert_close(device_x.grad, x.grad, rtol=1e-4, atol=1e-4)
    for actual, reference in zip(device_model.parameters(), model.parameters(), strict=True):
        assert_close(actual.grad, reference.grad, rtol=1e-4, atol=1e-4)
    device_model.zero_grad()
    device_x.grad = None
    grad = torch.ones_like(result)
    with count() as forward:
        result = compiled(device_x)
    with count() as backward:
        result.backward(grad)
    assert (forward["compiles"], forward["launches"]) == (0, 1)
    assert (backward["compiles"], backward["launches"]) == (0, 1)


def test_training_loop():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 4))
    device_model = on_device(model)
    batches = [(torch.randn(6, 8), torch.randint(0, 4, (6,))) for _ in range(5)]

    def losses(model, run, device):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for x, target in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(run(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    actual = losses(device_model, torch.compile(device_model), DEVICE)
    assert actual == pytest.approx(losses(model, model, "cpu"), rel=1e-5)
    for name, value in device_model.state_dict().items():
        assert_close(value, model.state_dict()[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.AdamW(p, lr=0.1),
    lambda p: torch.optim.AdamW(p, lr=0.1, foreach=False),
], ids=["sgd", "adamw", "adamw-single"])  # fmt: skip
def test_optimizer_step(make, count):
    torch.manual_seed(0)
    parameters = [torch.randn(3, 2), torch.randn(4)]
    gradients = [[torch.randn_like(p) for p in parameters] for _ in range(4)]

    def run(parameters, wrap):
        optimizer = make(parameters)
        step = wrap(optimizer.step)
        for grads in gradients:
            for p, g in zip(parameters, grads, strict=True):
                p.grad = g.to(p.device)
            with count() as counted:
                step()
        return counted

    device_parameters = [p.to(DEVICE).requires_grad_() for p in parameters]
    parameters = [p.requires_grad_() for p in parameters]
    counted = run(device_parameters, torch.compile)
    run(parameters, lambda step: step)
    assert_close([p.detach() for p in device_parameters], [p.detach() for p in parameters], rtol=1e-4, atol=1e-5)
    assert (counted["compiles"], counted["fallbacks"]) == (0, 0)


# ---- mutation, views, aliases


def test_input_mutation(one_program):
    def function(x, y):
        x.add_(1)
        y[1:].mul_(x.sum())
        return x * 2

    x, y = torch.randn(3), torch.randn(4)
    compiled = torch.compile(function, fullgraph=True)
    args = on_device((x, y))
    for _ in range(3):
        assert_close(compiled(*args), function(x, y))
        assert_close(args, (x, y))
    one_program(compiled, *args)


def test_mutation_through_a_view_reaches_the_base():
    compiled = torch.compile(lambda x: x.zero_())
    base = torch.arange(6.0, device=DEVICE)
    compiled(base[2:4])
    assert base.tolist() == [0, 1, 0, 0, 4, 5]


def test_outputs_that_are_views_or_inputs():
    def function(x):
        y = x + 1
        return x, x.t(), x[1:], y, y.view(-1), y.t(), x.expand(2, *x.shape), None, 7

    x = torch.randn(3, 2)
    device_x = on_device(x)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(2):
        actual = compiled(device_x)
        assert_close(actual, function(x))
        assert actual[0] is device_x
    assert [a.stride() for a in actual[:7]] == [e.stride() for e in function(x)[:7]]
    actual[2].fill_(5)
    assert device_x[1:].eq(5).all()
    actual[4].fill_(3)
    assert actual[3].eq(3).all() and actual[5].eq(3).all()


def test_views_alone(count):
    compiled = torch.compile(lambda x: x.t()[1:])
    x = torch.randn(3, 4)
    device_x = on_device(x)
    compiled(device_x)
    with count() as counted:
        y = compiled(device_x)
    assert_close(y, x.t()[1:])
    assert counted["launches"] == 0 and y.untyped_storage().data_ptr() == device_x.untyped_storage().data_ptr()


def test_two_inputs_that_alias():
    def function(x, y):
        x.add_(1)
        return x + y

    base = torch.arange(6.0)
    device_base = on_device(base)
    compiled = torch.compile(function)
    for _ in range(2):
        assert_close(compiled(device_base[:4], device_base[2:]), function(base[:4], base[2:]))
        assert_close(device_base, base)


def test_another_offset_is_the_same_program(one_program):
    compiled = torch.compile(lambda x: x * 2)
    base = torch.arange(12.0, device=DEVICE).view(4, 3)
    compiled(base[0])
    assert one_program(compiled, base[2]).tolist() == [12, 14, 16]


def test_rows_of_a_data_set(count):
    """Many offsets: the row is copied out of the data set, and everything else stays one program."""
    from torch_tpu.compile import graph

    compiled = torch.compile(lambda x, w: (x @ w).sin())
    data, w = torch.randn(12, 2, 3), torch.randn(3, 3)
    device_data, device_w = on_device((data, w))
    for i in range(graph._MANY_PROGRAMS + 2):
        compiled(device_data[i], device_w)
    with count() as counted:
        for i in range(8, 12):
            assert_close(compiled(device_data[i], device_w), (data[i] @ w).sin())
    assert (counted["compiles"], counted["launches"]) == (0, 8)


def test_rows_that_are_written_or_returned():
    def function(x, y, z):
        x.add_(1)
        return y[1:], (x * y * z).sum()

    data = torch.randn(8, 3)
    device_data = on_device(data)
    compiled = torch.compile(function, fullgraph=True)
    for i in range(8):
        rows = [device_data[i], device_data[i - 1], device_data[i - 2]]
        actual = compiled(*rows)
        assert_close(actual, function(data[i], data[i - 1], data[i - 2]))
        assert actual[0].data_ptr() == rows[1][1:].data_ptr()
        assert_close(device_data, data)


def test_strided_inputs():
    def function(x, y):
        return x @ y, x + y.t(), x.contiguous()

    x, y = torch.randn(4, 3).t(), torch.randn(8, 3)[::2]
    args = (torch.empty_like(x, device=DEVICE).copy_(x), on_device(torch.randn(8, 3)[::2]).copy_(y))
    assert_close(torch.compile(function)(*args), function(x, y))


# ---- what splits a graph


def test_graph_break(one_program):
    def function(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    x = torch.randn(3)
    compiled = torch.compile(function)
    assert_close(compiled(on_device(x)), function(x))
    one_program(compiled, on_device(x), launches=2)


@pytest.mark.parametrize("captured", [False, True])
def test_item_in_the_middle(captured):
    def function(x):
        y = x.sum().item()
        return x * y + 1

    x = torch.randn(3)
    with torch._dynamo.config.patch(capture_scalar_outputs=captured):
        compiled = torch.compile(function, fullgraph=captured)
        for scale in (1, 2):
            assert_close(compiled(on_device(x * scale)), function(x * scale))


def test_shapes_that_depend_on_values():
    def function(x):
        return (x + 1)[x > 0] * 2

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(function, fullgraph=True)
        for _ in range(3):
            x = torch.randn(9)
            assert_close(compiled(on_device(x)), function(x))


def test_operator_without_a_rule(count):
    def function(x):
        y = x.sin()
        values, _ = torch.mode(y.round(), dim=-1)
        values = values + 1
        return torch.special.bessel_j0(values.cos()) * values, y

    x = torch.randn(4, 5)
    compiled = torch.compile(function, fullgraph=True)
    with torch.tpu.settings(fallback="silent"):
        for _ in range(2):
            with count() as counted:
                actual = compiled(on_device(x))
            assert_close(actual, function(x))
    assert (counted["compiles"], counted["fallbacks"]) == (0, 2)


def test_what_no_capture_can_do_runs_eagerly():
    def gradient(x, sgn):
        return torch.autograd.grad(sgn(x * 2).sum(), x)  # through a zero tensor without storage

    x = torch.randn(3, requires_grad=True)
    assert_close(gradient(on_device(x), torch.compile(torch.sgn)), gradient(x, torch.sgn))


def test_cpu_tensors_inside(one_program):
    def function(x, host, scalar):
        y = x * scalar + host.sin().to(x.device)
        return y.cpu() + 1, y + torch.arange(3, device=x.device), y * torch.tensor([1.0, 2.0, 3.0], device=x.device)

    x, host, scalar = torch.randn(3), torch.randn(3), torch.tensor(2.0)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(2):
        first, *rest = compiled(on_device(x), host, scalar)
        expected, *others = function(x, host, scalar)
        assert first.device.type == "cpu"
        torch.testing.assert_close(first, expected)
        assert_close(rest, others)


def test_host_writes_keep_their_order():
    def function(x, host):
        host.add_(x.sum().cpu())
        y = x * host.sum()
        x.mul_(2)
        return y + x

    x, host = torch.randn(3), torch.zeros(2)
    device_x, host2 = on_device(x), host.clone()
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        assert_close(compiled(device_x, host2), function(x, host))
        assert_close(device_x, x)
        torch.testing.assert_close(host, host2)


def test_custom_operators_run_each_time():
    calls = []

    @torch.library.custom_op("torch_tpu_test::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.sin()

    counted.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: counted(x + 1) * 2, fullgraph=True)
    x = torch.randn(3)
    for _ in range(3):
        assert_close(compiled(on_device(x)), (x + 1).sin() * 2)
    assert len(calls) == 3


def test_control_flow():
    def function(x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)) + 1

    compiled = torch.compile(function, fullgraph=True)
    for x in (torch.ones(3), -torch.ones(3)):
        assert_close(compiled(on_device(x)), function(x))


def test_checkpointing(one_program):
    def function(x, w):
        return torch.utils.checkpoint.checkpoint(lambda x: torch.tanh(x @ w).sin(), x, use_reentrant=False).sum()

    args = torch.randn(4, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    device_args = on_device(args)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(2):
        assert_close(torch.autograd.grad(compiled(*device_args), device_args), torch.autograd.grad(function(*args), args))
    one_program(compiled, *device_args)


# ---- modes and state


def test_random_numbers_are_those_of_eager_execution():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.2)).to(DEVICE)
    x = torch.randn(3, 8, device=DEVICE)

    def function(x):
        return model(x), torch.randn(4, device=DEVICE), torch.rand_like(x)

    compiled = torch.compile(function, fullgraph=True)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = [function(x) for _ in range(2)]
        torch.manual_seed(seed)
        actual = [compiled(x) for _ in range(2)]
        for (out, *noise), (expected_out, *expected_noise) in zip(actual, expected, strict=True):
            assert torch.equal(out == x, expected_out == x)
            torch.testing.assert_close(out, expected_out, rtol=1e-5, atol=1e-5)
            assert all(torch.equal(a, e) for a, e in zip(noise, expected_noise, strict=True))
    assert not torch.equal(actual[0][1], actual[1][1])


def test_dropout_bit_for_bit(one_program):
    x = torch.randn(64, device=DEVICE, requires_grad=True)

    def function(x):
        return nn.functional.dropout(x, 0.5)

    results = []
    for run in (function, torch.compile(function)):
        torch.manual_seed(3)
        y = run(x)
        (grad,) = torch.autograd.grad(y.sum(), x)
        results.append((y, grad))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_autocast(one_program):
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)).to(DEVICE)
    x = torch.randn(4, 8, device=DEVICE)

    def function(x):
        with torch.autocast("tpu", dtype=torch.bfloat16):
            return model(x)

    compiled = torch.compile(function, fullgraph=True)
    for run in (compiled, lambda x: torch.compile(model)(x)):
        with torch.autocast("tpu", dtype=torch.bfloat16):
            actual = run(x)
        assert actual.dtype == torch.bfloat16
        torch.testing.assert_close(actual, function(x), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode, one_program):
    model = Block()
    device_model = on_device(model)
    x = torch.randn(1, 4, 16)
    device_x = on_device(x)
    compiled = torch.compile(device_model, fullgraph=True)
    with mode():
        compiled(device_x)
        result = one_program(compiled, device_x)
        assert not result.requires_grad
        assert_close(result, model(x), rtol=1e-4, atol=1e-5)


# ---- sizes


def test_dynamic_sizes(one_program):
    def function(x):
        return (x.view(-1) * x.shape[0]).cumsum(0), torch.zeros(x.shape[0] + 1, device=x.device)

    frames = torch._dynamo.testing.CompileCounterWithBackend("tpu")
    compiled = torch.compile(function, dynamic=True, fullgraph=True, backend=frames)
    inputs = [torch.randn(n, 3) for n in (2, 5, 9)]
    for _ in range(2):
        for x in inputs:
            assert_close(compiled(on_device(x)), function(x))
    assert frames.frame_count == 1
    device_x = on_device(inputs[1])
    one_program(compiled, device_x)


def test_automatic_and_marked_dynamic_sizes():
    def function(x):
        return x.sum(0) / x.shape[0]

    for mark in (False, True):
        torch._dynamo.reset()
        frames = torch._dynamo.testing.CompileCounterWithBackend("tpu")
        compiled = torch.compile(function, backend=frames)
        for n in (3, 4, 5, 6):
            x = torch.randn(n, 2)
            device_x = on_device(x)
            if mark:
                torch._dynamo.mark_dynamic(device_x, 0)
            assert_close(compiled(device_x), function(x))
        assert frames.frame_count == (1 if mark else 2)


def test_dynamic_sizes_with_gradients():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    device_model = on_device(model)
    compiled = torch.compile(device_model, dynamic=True)
    for n in (2, 7, 3):
        x = torch.randn(n, 4)
        for m, run, value in ((model, model, x), (device_model, compiled, on_device(x))):
            m.zero_grad()
            run(value).sum().backward()
        assert_close([p.grad for p in device_model.parameters()], [p.grad for p in model.parameters()], atol=1e-5)


def test_more_sizes_than_programs_are_kept():
    from torch_tpu.compile.graph import _MAX_PROGRAMS

    compiled = torch.compile(lambda x: x + x.shape[0], dynamic=True)
    for _ in range(2):
        for n in range(2, _MAX_PROGRAMS + 5):
            assert compiled(torch.zeros(n, device=DEVICE)).tolist() == [n] * n


# ---- the rest


def test_exceptions_propagate():
    def function(x, fail):
        y = x + 1
        if fail:
            raise KeyError("mine")
        return y

    compiled = torch.compile(function)
    x = torch.ones(2, device=DEVICE)
    with pytest.raises(KeyError, match="mine"):
        compiled(x, True)
    assert compiled(x, False).tolist() == [2, 2]
    with pytest.raises(Exception, match=r"(?i)size|shape|expand|broadcast"):
        torch.compile(lambda x, y: x + y)(x, torch.ones(3, device=DEVICE))


def test_threads():
    compiled = torch.compile(lambda x: (x * 2).sin() + x.shape[0], dynamic=True)
    wrong = []

    def work(n):
        try:
            x = torch.arange(float(n))
            for _ in range(20):
                assert_close(compiled(on_device(x)), (x * 2).sin() + n)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_devices_of_a_package_that_comes_after_the_compiler(run_python):
    code = """
import torch, torch._dynamo
from torch._dynamo.device_interface import get_interface_for_device
get_interface_for_device("cpu")
import torch_tpu
from torch_tpu.compile.device_interface import TpuInterface
assert get_interface_for_device("tpu") is get_interface_for_device("tpu:1") is TpuInterface

def function(x, y):
    return x.sin() + 1, y.to(x.device) + x, y * 2

args = torch.randn(3), torch.randn(3)
compiled = torch.compile(function, fullgraph=True)
for devices in (("tpu:0", "tpu:1"), ("tpu:1", "tpu:1"), ("tpu:1", "tpu:0")):
    actual = compiled(*(a.to(d) for a, d in zip(args, devices)))
    for a, e, d in zip(actual, function(*args), (devices[0], *devices)):
        assert str(a.device) == d, (a.device, d)
        torch.testing.assert_close(a.cpu(), e)
"""
    run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0", TORCH_TPU_DEVICE_COUNT="2")
