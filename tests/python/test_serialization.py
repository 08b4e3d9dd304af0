# SPDX-License-Identifier: Apache-2.0
"""save, load, pickle, deepcopy: values, device, shared storage, views, modules and optimizers."""

import copy
import io
import pickle

import pytest
import torch

LOCATIONS = {
    "default": (None, "tpu"),
    "cpu": ("cpu", "cpu"),
    "tpu": ("tpu", "tpu"),
    "tpu:0": ("tpu:0", "tpu"),
    "device": (torch.device("tpu", 0), "tpu"),
    "callable": (lambda storage, location: storage, "cpu"),
    "callable_tpu": (lambda storage, location: storage.tpu(0), "tpu"),
    "dict": ({"tpu:0": "cpu"}, "cpu"),
}
SAMPLES = {
    "float": torch.arange(12.0).view(3, 4),
    "bool": torch.tensor([True, False, True]),
    "int64": torch.arange(5),
    "bfloat16": torch.arange(6.0).bfloat16(),
    "complex": torch.complex(torch.arange(4.0), -torch.arange(4.0)),
    "scalar": torch.tensor(2.5),
    "empty": torch.empty(0, 3),
    "channels_last": torch.arange(120.0).view(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
}


def saved(obj, **kwargs):
    f = io.BytesIO()
    torch.save(obj, f, **kwargs)
    f.seek(0)
    return f


def assert_same(t, expected, device="tpu"):
    assert t.device.type == device and t.dtype == expected.dtype and t.stride() == expected.stride()
    torch.testing.assert_close(t.cpu(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("location", LOCATIONS)
def test_locations(location, weights_only):
    where, device = LOCATIONS[location]
    x = SAMPLES["float"]
    loaded = torch.load(saved(x.to("tpu")), map_location=where, weights_only=weights_only)
    assert_same(loaded, x, device)
    assert_same(loaded + 1, x + 1, device)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("zip_format", [True, False])
def test_types(name, zip_format):
    x = SAMPLES[name]
    d = x.to("tpu")
    assert_same(torch.load(saved(d, _use_new_zipfile_serialization=zip_format)), x)
    assert_same(torch.load(saved(x, _use_new_zipfile_serialization=zip_format), map_location="tpu"), x)
    if name not in ("empty", "bool"):
        loaded = torch.load(saved(d))
        assert_same(loaded * 2, x * 2)


def test_mmap(tmp_path):
    path = tmp_path / "t.pt"
    x = torch.arange(1000.0)
    torch.save({"a": x.to("tpu"), "b": x[10:20].to("tpu")}, path)
    for where, device in (("cpu", "cpu"), ("tpu", "tpu")):
        loaded = torch.load(path, map_location=where, mmap=True, weights_only=True)
        assert_same(loaded["a"], x, device)
        assert_same(loaded["b"], x[10:20], device)


def test_shared_storage_is_kept():
    d = torch.arange(12.0, device="tpu")
    loaded = torch.load(saved([d, d.view(3, 4), d[2:5], d[::2]]))
    assert all(t.untyped_storage()._cdata == loaded[0].untyped_storage()._cdata for t in loaded)
    loaded[0].mul_(2)
    assert_same(loaded[1], torch.arange(12.0).view(3, 4) * 2)
    assert_same(loaded[2], torch.arange(12.0)[2:5] * 2)
    loaded[3].zero_()
    assert loaded[0].cpu()[::2].count_nonzero() == 0
    # a view alone brings its whole storage
    assert torch.load(saved(d[2:5])).untyped_storage().nbytes() == 48


def test_pickle():
    x = SAMPLES["float"]
    d = x.to("tpu")
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        assert_same(pickle.loads(pickle.dumps(d, protocol)), x)
    assert_same(pickle.loads(pickle.dumps(d.t())), x.t())
    p = pickle.loads(pickle.dumps(torch.nn.Parameter(d)))
    assert isinstance(p, torch.nn.Parameter) and p.requires_grad and p.device.type == "tpu"


def test_deepcopy():
    x = SAMPLES["float"]
    d = x.to("tpu")
    copied = copy.deepcopy([d, d[1], d.t()])
    assert copied[0].untyped_storage()._cdata == copied[2].untyped_storage()._cdata
    assert copied[0].data_ptr() != d.data_ptr()
    copied[1].zero_()
    assert copied[0].cpu()[1].count_nonzero() == 0
    assert_same(d, x)
    assert_same(copied[2], copied[0].cpu().t())
    s = copy.deepcopy(d.untyped_storage())
    assert s.device.type == "tpu" and s.data_ptr() != d.data_ptr() and s.cpu().tolist() == x.untyped_storage().tolist()
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(d.requires_grad_() * 1)


def test_deepcopy_launches_nothing(count):
    d = torch.arange(100.0, device="tpu")
    (d + 1).cpu()
    with count() as c:
        e = copy.deepcopy(d)
    assert c["launches"] == 0
    with count() as c:
        assert torch.equal((e + 1).cpu(), torch.arange(100.0) + 1)
    assert c["compiles"] == 0  # the copy is typed like the original


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def step(model, optimizer):
    device = next(model.parameters()).device
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1)).to(device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_module_and_optimizer():
    model = make_model().to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step(model, optimizer)
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    expected = [step(model, optimizer) for _ in range(2)]
    for where in (None, "cpu"):
        file.seek(0)
        state = torch.load(file, map_location=where, weights_only=True)
        other = make_model().to("tpu")
        other.load_state_dict(state["model"])
        again = torch.optim.AdamW(other.parameters(), lr=0.01)
        again.load_state_dict(state["optimizer"])
        assert [step(other, again) for _ in range(2)] == pytest.approx(expected, rel=1e-5)
    file.seek(0)
    assigned = make_model()
    assigned.load_state_dict(torch.load(file, weights_only=True)["model"], assign=True)
    assert next(assigned.parameters()).device.type == "tpu"
    whole = torch.load(saved(model), weights_only=False)
    assert torch.equal(whole[0].weight.cpu(), model[0].weight.cpu())
    twin = copy.deepcopy(model)
    assert twin[0].weight.data_ptr() != model[0].weight.data_ptr()
    assert torch.equal(twin[0].weight.cpu(), model[0].weight.cpu())


def test_tied_weights():
    model = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5, bias=False))
    model[1].weight = model[0].weight
    model.to("tpu")
    assert model[0].weight is model[1].weight
    twin = copy.deepcopy(model)
    assert twin[0].weight is twin[1].weight
    loaded = torch.load(saved(model), weights_only=False)
    assert loaded[0].weight is loaded[1].weight


def test_other_device_index(run_python, tmp_path):
    run_python(
        """
import sys, torch
x = torch.arange(6.0)
torch.save([x.to("tpu:0"), x.to("tpu:1")], sys.argv[1])
a, b = torch.load(sys.argv[1])
assert (a.device.index, b.device.index) == (0, 1) and torch.equal(b.cpu(), x)
for t in torch.load(sys.argv[1], map_location="tpu:1"):
    assert t.device == torch.device("tpu:1") and torch.equal(t.cpu(), x)
a, b = torch.load(sys.argv[1], map_location={"tpu:0": "tpu:1", "tpu:1": "cpu"})
assert a.device == torch.device("tpu:1") and b.device.type == "cpu"
""",
        str(tmp_path / "t.pt"),
        TORCH_TPU_DEVICE_COUNT="2",
    )
    # A process that has only one device says so, and can map.
    run_python(
        """
import sys, torch
try:
    torch.load(sys.argv[1])
    raise SystemExit("no error")
except RuntimeError as e:
    assert "tpu" in str(e)
a, b = torch.load(sys.argv[1], map_location="tpu")
assert torch.equal(a.cpu(), b.cpu())
""",
        str(tmp_path / "t.pt"),
    )


def test_without_the_package(run_python, tmp_path):
    path = tmp_path / "t.pt"
    torch.save(torch.arange(6.0, device="tpu"), path)
    run_python(
        """
import sys, torch
assert not hasattr(torch, "tpu")
assert torch.load(sys.argv[1], map_location="cpu").tolist() == [0, 1, 2, 3, 4, 5]
""",
        str(path),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
