# SPDX-License-Identifier: Apache-2.0
"""What training loops lean on: optimizers, double backward, hooks, no_grad, autocast, GradScaler, activation checkpoints."""

import copy
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

EAGER_MODES = ["strict", "fused"]


@pytest.fixture(params=EAGER_MODES, autouse=True)
def _mode(request, forbid_fallback):
    with torch.tpu.set_eager_mode(request.param):
        yield


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def r(*shape, seed=0):
    return torch.randn(*shape, generator=gen(seed))


def make_mlp(seed=0, act=nn.Tanh):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), act(), nn.Linear(16, 16), act(), nn.Linear(16, 4))


def pair(seed=0, act=nn.Tanh):
    """The same network on the CPU and on the device."""
    model = make_mlp(seed, act)
    return model, copy.deepcopy(model).to("tpu")


# ---- optimizers

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adamw_loop": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps_of_an_mlp(name):
    losses = []
    for model in pair():
        device = next(model.parameters()).device
        optimizer, ours = OPTIMIZERS[name](model.parameters()), []
        for step in range(20):
            x, y = r(32, 8, seed=step).to(device), torch.randint(4, (32,), generator=gen(step)).to(device)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            ours.append(loss.detach())
        losses.append(torch.stack(ours).cpu())
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=0)


def test_optimizer_state_moves_between_devices():
    on_cpu, on_tpu = pair()
    x = r(4, 8)
    first, second = torch.optim.AdamW(on_cpu.parameters(), lr=0.1), torch.optim.AdamW(on_tpu.parameters(), lr=0.1)
    on_cpu(x).square().sum().backward()
    first.step()
    second.load_state_dict(copy.deepcopy(first.state_dict()))  # a step counter would be shared
    on_tpu.load_state_dict(on_cpu.state_dict())
    assert all(state["exp_avg"].device.type == "tpu" for state in second.state.values())
    for model, optimizer in ((on_cpu, first), (on_tpu, second)):
        optimizer.zero_grad()
        model(x.to(next(model.parameters()).device)).square().sum().backward()
        optimizer.step()
    for ours, theirs in zip(on_tpu.parameters(), on_cpu.parameters(), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


# ---- derivatives


FUNCTIONS = {
    "tanh": lambda x, w: torch.tanh(x @ w).sum(),
    "gelu": lambda x, w: F.gelu(x @ w).sum(),
    "softmax": lambda x, w: (x @ w).softmax(1).square().sum(),
    "log_softmax": lambda x, w: (x @ w).log_softmax(1)[:, 0].sum(),
    "layer_norm": lambda x, w: F.layer_norm(x @ w, (5,)).pow(3).sum(),
    "cross_entropy": lambda x, w: F.cross_entropy(x @ w, torch.arange(4, device=x.device)),
    "silu": lambda x, w: F.silu(x @ w).sum(),
    "views": lambda x, w: x[1:, ::2].t().reshape(-1).prod() * w.diagonal().exp().sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_backward(name):
    results = []
    for device in ("cpu", "tpu"):
        x, w = (t.to(device).requires_grad_() for t in (r(4, 6) / 2, r(6, 5, seed=1) / 2))
        gradients = torch.autograd.grad(FUNCTIONS[name](x, w), (x, w), create_graph=True)
        penalty = sum(g.square().sum() for g in gradients)
        penalty.backward()
        results.append([*(g.detach().cpu() for g in gradients), x.grad.cpu(), w.grad.cpu()])
    for ours, theirs in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_gradgradcheck():
    x = r(3, 4).double().to("tpu").requires_grad_()
    w = r(4, 2, seed=1).double().to("tpu").requires_grad_()
    function = lambda x, w: torch.sigmoid(x @ w).square()  # noqa: E731
    # Fused eager runs the first time op by op, then as one program, in which XLA contracts multiply-adds: other last bits.
    nondet_tol = 1e-12 if torch.tpu.eager_mode() == "fused" else 0.0
    assert torch.autograd.gradcheck(function, (x, w), nondet_tol=nondet_tol)
    assert torch.autograd.gradgradcheck(function, (x, w), nondet_tol=nondet_tol)


def test_gradient_penalty_trains():
    losses = []
    for model in pair():
        device = next(model.parameters()).device
        optimizer, ours = torch.optim.SGD(model.parameters(), lr=0.05), []
        for step in range(5):
            x = r(16, 8, seed=step).to(device).requires_grad_()
            y = model(x).sum()
            (gradient,) = torch.autograd.grad(y, x, create_graph=True)
            loss = (gradient.norm(dim=1) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ours.append(loss.detach())
        losses.append(torch.stack(ours).cpu())
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-6)


def test_jacobian_hessian_and_forward_mode():
    x = r(5)
    function = lambda x: (torch.sin(x) * x.flip(0)).cumsum(0)  # noqa: E731
    scalar = lambda x: function(x).square().sum()  # noqa: E731
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        torch.testing.assert_close(transform(function)(x.to("tpu")).cpu(), transform(function)(x))
    torch.testing.assert_close(
        torch.func.hessian(scalar)(x.to("tpu")).cpu(), torch.func.hessian(scalar)(x), rtol=1e-4, atol=1e-4
    )
    _, tangent = torch.func.jvp(function, (x.to("tpu"),), (torch.ones(5, device="tpu"),))
    torch.testing.assert_close(tangent.cpu(), torch.func.jvp(function, (x,), (torch.ones(5),))[1])


def test_gradients_per_example():
    model, ours = pair()
    x, y = r(6, 8), torch.arange(6) % 4

    def gradients(model, x, y):
        parameters = {name: p.detach() for name, p in model.named_parameters()}

        def loss(parameters, x, y):
            return F.cross_entropy(torch.func.functional_call(model, parameters, (x[None],)), y[None])

        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)

    expected = gradients(model, x, y)
    for name, gradient in gradients(ours, x.to("tpu"), y.to("tpu")).items():
        torch.testing.assert_close(gradient.cpu(), expected[name])


def test_custom_function():
    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * (x.abs() <= 1)

    x = torch.tensor([-2.0, 0.5, 3.0], device="tpu", requires_grad=True)
    Clamp.apply(x).sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_a_changed_saved_tensor_is_noticed():
    x = torch.ones(3, device="tpu", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_anomaly_detection_names_the_operation():
    x = torch.zeros(2, device="tpu", requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match=r"SqrtBackward0.*nan"):
        (x.sqrt() * 0).sum().backward()


# ---- hooks


def test_module_hooks():
    model = make_mlp().to("tpu")
    seen = []
    handles = [
        model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        model[0].register_forward_hook(lambda m, args, out: seen.append(("forward", out.device.type)) or out + 1),
        model[2].register_full_backward_pre_hook(lambda m, grad: seen.append(("pre", grad[0].shape)) or (grad[0] * 3,)),
        model[2].register_full_backward_hook(lambda m, gin, gout: seen.append(("full", gin[0].device.type, gout[0].shape))),
    ]
    x = r(5, 8)
    model(x.to("tpu")).sum().backward()
    assert seen == [("forward", "tpu"), ("pre", (5, 16)), ("full", "tpu", (5, 16))]

    plain = make_mlp()
    hidden = plain[1](plain[0](x * 2) + 1)
    plain[4](plain[3](plain[2](hidden))).sum().backward()
    torch.testing.assert_close(model[4].weight.grad.cpu(), plain[4].weight.grad)
    torch.testing.assert_close(model[2].weight.grad.cpu(), 3 * plain[2].weight.grad)
    for handle in handles:
        handle.remove()
    model(x.to("tpu"))
    assert len(seen) == 3


def test_tensor_hooks():
    x = torch.arange(3.0, device="tpu", requires_grad=True)
    y = x * x
    order = []
    y.register_hook(lambda g: order.append("y") or g * 2)
    y.retain_grad()
    x.register_hook(lambda g: order.append("x") or g + 1)
    x.register_post_accumulate_grad_hook(lambda t: order.append(t.grad.tolist()))
    y.sum().backward()
    assert order == ["y", "x", [1.0, 5.0, 9.0]] and y.grad.tolist() == [2.0, 2.0, 2.0]


def test_an_optimizer_inside_backward():
    """post-accumulate hooks that step and drop each gradient at once."""
    models = pair()

    def step_and_drop(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    optimizers = {p: torch.optim.SGD([p], lr=0.1) for model in models for p in model.parameters()}
    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(step_and_drop)
    x = r(4, 8)
    for model in models:
        model(x.to(next(model.parameters()).device)).square().sum().backward()
    for theirs, ours in zip(*(m.parameters() for m in models), strict=True):
        assert ours.grad is None
        torch.testing.assert_close(ours.cpu(), theirs)


def test_saved_tensor_hooks():
    packed = []

    def pack(t):
        packed.append(t.device.type)
        return t.cpu()

    x = r(3, 3).to("tpu").requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to("tpu")):
        y = (x.sin() * x).sum()
    y.backward()
    torch.testing.assert_close(x.grad.cpu(), (r(3, 3).cos() * r(3, 3) + r(3, 3).sin()))
    assert set(packed) == {"tpu"}
    x.grad = None
    with torch.autograd.graph.save_on_cpu():
        y = x.exp().sum()
    y.backward()
    torch.testing.assert_close(x.grad.cpu(), r(3, 3).exp())


# ---- no gradients


def test_no_grad_and_inference_mode():
    model = make_mlp().to("tpu")
    x = r(2, 8).to("tpu")
    with torch.no_grad():
        y = model(x)
        assert not y.requires_grad and y.grad_fn is None
        with torch.enable_grad():
            assert model(x).requires_grad
        model[0].weight.mul_(2)
    with torch.inference_mode():
        z = model(x)
        z.add_(1)
        half = z[:, :2]
        half.zero_()
        assert z.is_inference() and half.is_inference() and z[:, :2].abs().sum().item() == 0
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        model(x) * z
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        z.add_(1)
    torch.testing.assert_close((z.clone() + 1).cpu(), z.cpu() + 1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
        model[0].weight.mul_(2)


# ---- autocast


def on_threads(function, count=4):
    results, threads = [], [threading.Thread(target=lambda: results.append(function())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_bfloat16_is_the_default_on_every_thread():
    assert torch.get_autocast_dtype("tpu") is torch.bfloat16

    def work():
        x = torch.ones(4, 4, device="tpu")
        outside = torch.is_autocast_enabled("tpu")
        with torch.autocast("tpu"):
            inside, product = torch.get_autocast_dtype("tpu"), x @ x
        return torch.get_autocast_dtype("tpu"), outside, inside, product.dtype, product.float().sum().item(), (x @ x).dtype

    expected = (torch.bfloat16, False, torch.bfloat16, torch.bfloat16, 64.0, torch.float32)
    assert on_threads(work) == [expected] * 4
    with torch.autocast("tpu", dtype=torch.float16):
        assert torch.get_autocast_dtype("tpu") is torch.float16
        assert on_threads(lambda: torch.autocast("tpu").fast_dtype) == [torch.bfloat16] * 4
    assert torch.get_autocast_dtype("tpu") is torch.bfloat16


def test_autocast_types():
    x, w = r(4, 8).to("tpu"), r(8, 8, seed=1).to("tpu")
    with torch.autocast("tpu"):
        low = {"mm": x @ w, "linear": F.linear(x, w), "bmm": torch.bmm(x[None], w[None]), "addmm": torch.addmm(x[0], x, w)}
        q = x.view(1, 2, 2, 8)
        low["attention"] = F.scaled_dot_product_attention(q, q, q)
        high = {
            "softmax": (x @ w).softmax(1),
            "log_softmax": (x @ w).log_softmax(1),
            "layer_norm": F.layer_norm(x @ w, (8,)),
            "loss": F.cross_entropy(x @ w, torch.arange(4, device="tpu")),
            "sum": (x @ w).sum(),
            "exp": (x @ w).exp(),
        }
        assert {name: t.dtype for name, t in low.items()} == dict.fromkeys(low, torch.bfloat16)
        assert {name: t.dtype for name, t in high.items()} == dict.fromkeys(high, torch.float32)
        assert ((x @ w) + x).dtype is torch.float32  # the wider type wins
        assert F.relu(x @ w).dtype is torch.bfloat16  # as it came
        with torch.autocast("tpu", enabled=False):
            assert (x @ w).dtype is torch.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy"):
            F.binary_cross_entropy(torch.rand(3, device="tpu"), torch.ones(3, device="tpu"))
    torch.testing.assert_close(low["mm"].float().cpu(), r(4, 8) @ r(8, 8, seed=1), rtol=0.02, atol=0.05)


def test_autocast_trains():
    models = pair(act=nn.GELU)
    losses = []
    for model, device in zip(models, ("cpu", "tpu"), strict=True):
        optimizer, ours = torch.optim.AdamW(model.parameters(), lr=0.01), []
        for step in range(10):
            x, y = r(32, 8, seed=step).to(device), torch.randint(4, (32,), generator=gen(step)).to(device)
            with torch.autocast(device):
                scores = model(x)
                loss = F.cross_entropy(scores, y)
            assert scores.dtype is torch.bfloat16 and loss.dtype is torch.float32
            loss.backward()
            assert all(p.dtype is p.grad.dtype is torch.float32 for p in model.parameters())
            optimizer.step()
            optimizer.zero_grad()
            ours.append(loss.detach())
        losses.append(torch.stack(ours).cpu())
    torch.testing.assert_close(losses[1], losses[0], rtol=0.01, atol=0)


def test_the_cache_of_casts():
    w = torch.ones(4, 4, device="tpu", requires_grad=True)
    x = torch.ones(4, 4, device="tpu")
    with torch.autocast("tpu"):
        y = x @ w + x @ w
    y.sum().backward()
    assert w.grad.dtype is torch.float32 and w.grad.sum().item() == 128
    with torch.no_grad():
        w.fill_(2)
    with torch.autocast("tpu"):
        assert (x @ w)[0, 0].item() == 8


def test_custom_function_under_autocast():
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="tpu", cast_inputs=torch.float32)
        def forward(ctx, x, y):
            assert not torch.is_autocast_enabled("tpu")
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @torch.amp.custom_bwd(device_type="tpu")
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return gradient @ y.t(), x.t() @ gradient

    x = torch.ones(2, 2, device="tpu", dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("tpu"):
        y = Product.apply(x, x)
    assert y.dtype is torch.float32
    y.sum().backward()
    assert x.grad.dtype is torch.bfloat16 and x.grad.float().sum().item() == 16


# ---- GradScaler


def test_grad_scaler():
    model = nn.Linear(4, 2).to("tpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("tpu", init_scale=1024.0, growth_interval=2)
    x = torch.ones(3, 4, device="tpu")

    def step(factor: float) -> torch.Tensor:
        with torch.autocast("tpu", dtype=torch.float16):
            loss = model(x).float().square().mean() * factor
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        before = model.weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        return (model.weight.detach() - before).abs().max(), norm

    moved, norm = step(1.0)
    assert moved.item() > 0 and torch.isfinite(norm) and scaler.get_scale() == 1024
    moved, norm = step(float("inf"))
    assert moved.item() == 0 and not torch.isfinite(norm) and scaler.get_scale() == 512
    moved, norm = step(float("nan"))
    assert moved.item() == 0 and scaler.get_scale() == 256
    assert step(1.0)[0].item() > 0 and step(1.0)[0].item() > 0
    assert scaler.get_scale() == 512  # two good steps in a row


def test_one_infinite_gradient_is_enough():
    parameters = [nn.Parameter(torch.ones(3, device="tpu")) for _ in range(3)]
    optimizer = torch.optim.AdamW(parameters, lr=0.1)
    scaler = torch.tpu.amp.GradScaler(init_scale=8.0)
    scaler.scale(sum(p.sum() for p in parameters)).backward()
    parameters[1].grad[2] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(p.detach().cpu(), torch.ones(3)) for p in parameters) and scaler.get_scale() == 4
    assert not optimizer.state
    optimizer.zero_grad()
    scaler.scale(sum(p.sum() for p in parameters)).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all((p.detach() < 1).all() for p in parameters) and parameters[0].grad.tolist() == [1.0, 1.0, 1.0]


def test_the_scaler_is_saved():
    scaler = torch.amp.GradScaler("tpu", init_scale=8.0)
    scaler.scale(torch.ones(1, device="tpu"))
    other = torch.amp.GradScaler("tpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8 and other.scale(torch.ones(1, device="tpu")).item() == 8


def test_scaled_training_is_the_cpus():
    losses = []
    for model, device in zip(pair(), ("cpu", "tpu"), strict=True):
        optimizer, ours = torch.optim.AdamW(model.parameters(), lr=0.01), []
        scaler = torch.amp.GradScaler(device, init_scale=4096.0)
        for step in range(5):
            x = r(16, 8, seed=step).to(device)
            loss = model(x).square().mean() * (float("inf") if step == 2 else 1)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            ours.append(loss.detach())
        losses.append(torch.stack(ours).cpu())
        assert scaler.get_scale() == 2048
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=0)


# ---- activation checkpointing


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("autocast", [False, True])
def test_checkpointing_equals_none(reentrant, autocast):
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.3), nn.Linear(32, 8)).to("tpu")
    x = r(16, 8).to("tpu")

    def gradients(run):
        torch.manual_seed(5)
        inputs = x.clone().requires_grad_()
        block.zero_grad()
        with torch.autocast("tpu", enabled=autocast):
            y = run(inputs)
        y.float().square().sum().backward()
        after = torch.rand(3, device="tpu")
        return [t.detach().cpu() for t in (y, inputs.grad, *(p.grad for p in block.parameters()), after)]

    plain = gradients(block)
    saved = gradients(lambda x: checkpoint(block, x, use_reentrant=reentrant))
    for ours, theirs in zip(saved, plain, strict=True):
        assert torch.equal(ours, theirs)  # also the dropout masks, and the state of the generator afterwards


def test_checkpoint_sequential_and_kept_memory():
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(8))).to("tpu")
    x = r(256, 64).to("tpu").requires_grad_()

    def measure(run):
        layers.zero_grad()
        x.grad = None
        torch.tpu.synchronize()
        before = torch.tpu.memory_allocated()
        y = run(x).sum()
        torch.tpu.synchronize()
        kept = torch.tpu.memory_allocated() - before
        y.backward()
        return kept, [x.grad.cpu(), *(p.grad.cpu() for p in layers.parameters())]

    plain, expected = measure(layers)
    less, gradients = measure(lambda x: checkpoint_sequential(layers, 2, x, use_reentrant=False))
    assert less <= plain * 5 / 8 + 1024  # of eight layers the last four, and where those began
    for ours, theirs in zip(gradients, expected, strict=True):
        assert torch.equal(ours, theirs)


def test_selective_checkpointing():
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    def policy(ctx, op, *args, **kwargs):
        matrix = op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return CheckpointPolicy.MUST_SAVE if matrix else CheckpointPolicy.PREFER_RECOMPUTE

    model = make_mlp().to("tpu")
    gradients = []
    for contexts in (None, lambda: create_selective_checkpoint_contexts(policy)):
        x = r(4, 8).to("tpu").requires_grad_()
        options = {} if contexts is None else {"context_fn": contexts}
        checkpoint(model, x, use_reentrant=False, **options).square().sum().backward()
        gradients.append(x.grad.cpu())
    assert torch.equal(*gradients)


# ---- several threads


def test_threads_train_apart():
    expected = {}

    def train(device: str, seed: int) -> float:
        generator = gen(seed)
        model = nn.Linear(8, 4)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn(p.shape, generator=generator))
        model.to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(5):
            x = torch.randn(16, 8, generator=generator).to(device)
            with torch.autocast(device, enabled=seed % 2 == 1):
                loss = model(x).float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    expected = {seed: train("cpu", seed) for seed in range(4)}
    results = {}
    threads = [threading.Thread(target=lambda s=seed: results.update({s: train("tpu", s)})) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        assert results[seed] == pytest.approx(expected[seed], rel=0.01 if seed % 2 else 1e-5)
