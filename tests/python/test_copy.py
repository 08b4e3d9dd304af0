# SPDX-License-Identifier: Apache-2.0
"""Copies in all directions, item, set_, resize_, storages, and results whose size depends on values."""

import pytest
import torch

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 2).contiguous().transpose(0, 2),
    "channels_last": lambda t: t.unsqueeze(0).contiguous(memory_format=torch.channels_last).squeeze(0),
    "sliced": lambda t: torch.cat([t, t], 1)[:, 1 : 1 + t.size(1)],
    "strided": lambda t: t.repeat_interleave(2, 2)[:, :, ::2],
}


def sample(dtype, shape=(3, 4, 5)):
    g = torch.Generator().manual_seed(7)
    if dtype == torch.bool:
        return torch.rand(shape, generator=g) > 0.5
    if dtype.is_complex:
        return torch.randn(shape, generator=g, dtype=dtype)
    if dtype.is_floating_point:
        return (torch.randn(shape, generator=g) * 10).to(dtype)
    return torch.randint(0, 100, shape, generator=g).to(dtype)


def assert_same(device, cpu):
    assert device.device.type == "tpu"
    torch.testing.assert_close(device.cpu(), cpu, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype):
    x = sample(dtype)
    d = x.to("tpu")
    assert d.dtype == dtype and d.stride() == x.stride()
    assert_same(d, x)
    assert_same(d.clone(), x)
    assert_same(d.transpose(0, 1).contiguous(), x.transpose(0, 1).contiguous())
    assert d[1, 2, 3].item() == x[1, 2, 3].item()
    assert d[1].tolist() == x[1].tolist()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32], ids=str)
def test_rare_types(dtype):
    x = torch.tensor([1, 2, 3, 4]).to(dtype)
    d = x.to("tpu")
    assert d.cpu().view(torch.uint8).tolist() == x.view(torch.uint8).tolist()
    assert d[2].item() == 3


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_layouts(source, target):
    x = LAYOUTS[source](sample(torch.float32))
    other = LAYOUTS[target](torch.zeros(3, 4, 5))
    # Fresh storage with the target's geometry, filled with a mark to see what is not to be written.
    space = torch.full((other.untyped_storage().nbytes() // 4,), -1.0)

    def make(device):
        return space.clone().to(device).as_strided(other.shape, other.stride(), other.storage_offset())

    def base(t):
        return t.as_strided((space.numel(),), (1,), 0).cpu()

    expected = make("cpu").copy_(x)
    to_device = make("tpu").copy_(x)
    assert torch.equal(base(to_device), base(expected))
    on_device = make("tpu").copy_(x.to("tpu"))
    assert torch.equal(base(on_device), base(expected))
    geometry = x.untyped_storage().nbytes() // 4
    same = torch.empty(geometry, device="tpu")
    same.copy_(x.as_strided((geometry,), (1,), 0))
    view = same.as_strided(x.shape, x.stride(), x.storage_offset())
    to_host = make("cpu").copy_(view)
    assert torch.equal(base(to_host), base(expected))
    assert torch.equal(base(make("tpu").copy_(view)), base(expected))


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("of", [torch.float32, torch.int64, torch.bool, torch.bfloat16], ids=str)
def test_conversion(of, to):
    x = sample(of)
    if not to.is_floating_point and not to.is_complex and of.is_floating_point:
        x = x.abs()  # negative to unsigned is undefined
    expected = x.to(to)
    assert_same(x.to("tpu", to), expected)  # on the way up
    assert_same(x.to("tpu").to(to), expected)  # on the device
    down = torch.empty(x.shape, dtype=to)
    down.copy_(x.to("tpu"))  # on the way down
    assert torch.equal(down, expected)


def test_complex_to_real_warns():
    d = sample(torch.complex64).to("tpu")
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        torch.set_warn_always(True)
        try:
            r = torch.empty(3, 4, 5, device="tpu").copy_(d)
        finally:
            torch.set_warn_always(False)
    assert_same(r, sample(torch.complex64).real)


@pytest.mark.parametrize("direction", ["up", "across", "down"])
def test_broadcast(direction):
    x = torch.arange(5.0)
    source = x if direction == "up" else x.to("tpu")
    target = torch.zeros(3, 4, 5, device="cpu" if direction == "down" else "tpu")
    assert torch.equal(target.copy_(source).cpu(), x.expand(3, 4, 5))
    assert torch.equal(target.copy_(source[2]).cpu(), torch.full((3, 4, 5), 2.0))
    target[:, 1:3].copy_(source * 2)
    assert torch.equal(target[:, 1:3].cpu(), (x * 2).expand(3, 2, 5))
    with pytest.raises(RuntimeError, match=r"must match the size of tensor b \(4\)"):
        target.copy_(source[:4])
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        target[0, 0].copy_(source.expand(2, 5))
    empty = torch.zeros(0, 5, device=target.device)
    assert empty.copy_(source).shape == (0, 5)


def test_broadcast_of_a_large_target(count):
    d = torch.empty(1024, 512, device="tpu")
    d.copy_(torch.arange(512.0))
    assert torch.equal(d.cpu()[1000], torch.arange(512.0))


@pytest.mark.parametrize("bits", ["conj", "neg", "conj_neg"])
def test_bits(bits):
    x = sample(torch.complex64)
    views = {
        "conj": lambda t: t.conj(),
        "neg": lambda t: t.conj().imag,
        "conj_neg": lambda t: torch._neg_view(t).conj(),
    }
    view = views[bits]
    d = x.to("tpu")
    assert torch.equal(view(d).cpu().resolve_conj().resolve_neg(), view(x).resolve_conj().resolve_neg())
    assert_same(view(d).clone().resolve_conj().resolve_neg(), view(x).clone().resolve_conj().resolve_neg())
    assert view(d)[1, 2, 3].item() == view(x)[1, 2, 3].item()
    up = view(x).to("tpu")
    assert torch.equal(up.cpu().resolve_conj().resolve_neg(), view(x).resolve_conj().resolve_neg())
    target, expected = torch.zeros_like(x).to("tpu"), torch.zeros_like(x)
    source = sample(torch.float32)
    view(target).copy_(source)
    view(expected).copy_(source)
    assert_same(target, expected)
    view(target).copy_(view(d))
    view(expected).copy_(view(x))
    assert_same(target, expected)
    down = torch.zeros_like(x)
    view(down).copy_(view(d))
    assert torch.equal(down, expected)


def test_upload_takes_a_copy():
    x = torch.arange(1024.0)
    d = x.to("tpu", non_blocking=True)
    x.zero_()
    assert d[5].item() == 5
    h = d.to("cpu", non_blocking=True)
    d.zero_()
    torch.tpu.synchronize()
    assert h[5].item() == 5
    h.fill_(1)
    assert d.cpu().eq(0).all()


def test_download_does_not_alias():
    d = torch.arange(8.0, device="tpu")
    h = d.cpu()
    h += 100
    assert d.cpu().tolist() == list(range(8))
    n = d.cpu().numpy()
    n[:] = 7
    assert d.cpu().tolist() == list(range(8))


def test_pinned():
    x = torch.arange(64.0).pin_memory()
    assert x.is_pinned()
    d = x.to("tpu", non_blocking=True)
    back = d.to("cpu", non_blocking=True)
    torch.tpu.synchronize()
    assert torch.equal(back, x)
    with pytest.raises(RuntimeError, match="cannot pin"):
        d.pin_memory()


def test_clone_shares_until_written(count):
    d = torch.arange(1000.0, device="tpu")
    d.add_(0)
    torch.tpu.synchronize()
    with count() as c:
        e = d.clone()
        f = e.detach().clone()
    assert c["launches"] == 0
    assert e.data_ptr() != d.data_ptr()
    e.add_(1)
    d[3] = -1
    assert f[3].item() == 3 and e[3].item() == 4 and d[3].item() == -1
    assert f.cpu().tolist() == list(map(float, range(1000)))


def test_bool_bytes_are_normalised():
    odd = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    d = odd.to("tpu")
    assert d.view(torch.uint8).tolist() == [0, 1, 1, 1]
    assert d.int().tolist() == [0, 1, 1, 1]


def test_item():
    d = torch.arange(6.0, device="tpu").view(2, 3)
    assert d[1, 1].item() == 4.0 and int(d[0, 2]) == 2 and bool(d[0, 1]) and not bool(d[0, 0])
    assert torch.tensor([7], device="tpu").item() == 7 and isinstance(torch.tensor([7], device="tpu").item(), int)
    assert d.t()[2, 1].item() == 5.0
    assert d.view(torch.int32)[0, 1].item() == torch.tensor(1.0).view(torch.int32).item()
    assert torch.empty((), device="tpu").item() == 0
    assert [10, 20, 30][torch.tensor(1, device="tpu")] == 20
    assert f"{d[1, 1]:.1f}" == "4.0"
    for bad in (d, d[:0]):
        with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
            bad.item()


def test_interop():
    d = torch.tensor([[1.0, 2.0]], device="tpu")
    with pytest.raises(TypeError, match="cpu"):
        d.numpy()
    numpy = pytest.importorskip("numpy")
    a = numpy.arange(6.0).reshape(2, 3)
    assert_same(torch.as_tensor(a, device="tpu"), torch.from_numpy(a))
    assert_same(torch.from_numpy(a).to("tpu"), torch.from_numpy(a))
    assert_same(torch.tensor(d, device="tpu"), d.cpu())


def test_meta_and_device_errors():
    d = torch.zeros(3, device="tpu")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        d.copy_(torch.zeros(3, device="meta"))
    assert torch.zeros(3, device="meta").copy_(d).device.type == "meta"


# ---- set_, resize_, storages


def test_set():
    x = torch.arange(12.0)
    d = x.to("tpu")
    t = torch.empty(0, device="tpu").set_(d)
    assert t.data_ptr() == d.data_ptr() and t.is_set_to(d)
    t = torch.empty(0, device="tpu").set_(d.untyped_storage(), 2, (2, 3), (5, 1))
    assert_same(t, x.as_strided((2, 3), (5, 1), 2))
    t.fill_(9)
    assert_same(d, x.clone().as_strided_scatter(torch.full((2, 3), 9.0), (2, 3), (5, 1), 2))
    assert not t.is_set_to(d)
    t.set_()
    assert t.numel() == 0 and t.untyped_storage().nbytes() == 0
    s = torch.empty(0, device="tpu").set_(d.untyped_storage())
    assert s.shape == (12,)
    with pytest.raises(RuntimeError, match="different device"):
        torch.empty(0, device="tpu").set_(x)
    with pytest.raises(RuntimeError, match="invalid storage offset"):
        torch.empty(0, device="tpu").set_(d.untyped_storage(), -1, (2,), (1,))
    big = torch.empty(0, device="tpu").set_(d.untyped_storage(), 0, (20,), (1,))
    assert big.untyped_storage().nbytes() == 80 and torch.equal(big.cpu()[:2], d.cpu()[:2])
    p = torch.nn.Parameter(torch.zeros(3, device="tpu"))
    p.data = torch.ones(4, device="tpu")
    assert p.shape == (4,) and p.cpu().eq(1).all()


def test_resize():
    x = torch.arange(6.0)
    d = x.to("tpu")
    address = d.data_ptr()
    d.resize_(2, 2)
    assert d.data_ptr() == address and d.untyped_storage().nbytes() == 24
    assert_same(d, x[:4].view(2, 2))
    d.resize_(6)
    assert_same(d, x)
    d.resize_(3, 4)
    assert torch.equal(d.cpu().view(-1)[:6], x) and d.untyped_storage().nbytes() == 48
    d.add_(1)
    assert torch.equal(d.cpu().view(-1)[:6], x + 1)
    e = torch.empty(0, device="tpu").resize_(2, 3, 4, 5, memory_format=torch.channels_last)
    assert e.stride() == torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
    e.copy_(sample(torch.float32, (2, 3, 4, 5)))
    assert_same(e, sample(torch.float32, (2, 3, 4, 5)))
    assert torch.empty(0, device="tpu").resize_as_(d).shape == d.shape
    view = torch.arange(6.0, device="tpu")[2:]
    view.resize_(8)
    assert view.storage_offset() == 2 and view.untyped_storage().nbytes() == 40
    assert view.cpu()[:4].tolist() == [2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="negative"):
        d.resize_(-1)


def test_resize_of_a_pending_value():
    d = torch.ones(1000, device="tpu") * 3
    d.resize_(2000)
    assert d.cpu()[:1000].eq(3).all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.bfloat16, torch.complex64], ids=str)
def test_storage_resize_keeps_the_prefix(dtype):
    x = sample(dtype, (10,))
    d = x.to("tpu")
    s = d.untyped_storage()
    item = x.element_size()
    s.resize_(16 * item)
    assert s.nbytes() == 16 * item
    assert_same(d, x)
    s.resize_(10 * item)
    s.resize_(0)
    assert s.nbytes() == 0 and s.data_ptr() == 0
    s.resize_(10 * item)
    d.copy_(x)  # as FSDP refills parameters
    assert_same(d, x)
    assert_same(d.clone(), x)


def test_odd_storage_resize():
    d = torch.arange(4, dtype=torch.float32, device="tpu")
    d.untyped_storage().resize_(18)
    assert d.cpu().tolist() == [0, 1, 2, 3]
    d.untyped_storage().resize_(6)
    assert d[:1].cpu().tolist() == [0]


def test_storage_copies():
    x = torch.arange(10, dtype=torch.int32)
    d = x.to("tpu")
    s = d.untyped_storage()
    assert bytes(s.cpu().tolist()) == x.numpy().tobytes()
    assert s.device.type == "tpu" and s.nbytes() == 40
    fresh = torch.UntypedStorage(40, device="tpu")
    fresh.copy_(x.untyped_storage())
    t = torch.empty(0, dtype=torch.int32, device="tpu").set_(fresh, 0, (2, 5), (5, 1))
    assert_same(t, x.view(2, 5))
    assert_same(t + 1, x.view(2, 5) + 1)
    again = torch.UntypedStorage(40, device="tpu")
    again.copy_(s)
    s.fill_(0)
    assert d.cpu().eq(0).all()
    assert again.cpu().tolist() == x.untyped_storage().tolist()
    assert s[3] == 0
    host = torch.UntypedStorage(40)
    host.copy_(again)
    assert host.tolist() == x.untyped_storage().tolist()
    assert x.untyped_storage().to(device="tpu").cpu().tolist() == x.untyped_storage().tolist()
    typed = x.to("tpu").untyped_storage().clone()
    assert typed.cpu().tolist() == x.untyped_storage().tolist()


def test_typed_view_of_loaded_bytes_needs_no_bitcast(count):
    """Storages arrive as bytes; programs over them are those of typed tensors."""
    a = torch.arange(10.0)
    (a.to("tpu") * 3).cpu()
    s = torch.UntypedStorage(40, device="tpu")
    s.copy_(a.untyped_storage())
    t = torch.empty(0, device="tpu").set_(s, 0, (10,), (1,))
    with count() as c:
        assert torch.equal((t * 3).cpu(), a * 3)
    assert c["compiles"] == 0


def test_record_stream_and_equal():
    d = torch.arange(5.0, device="tpu")
    d.record_stream(torch.tpu.current_stream())
    assert torch.equal(d, d.clone()) and not torch.equal(d, d + 1) and not torch.equal(d, d[:4])
    assert torch.equal(d[:0], d[:0].clone())
    assert not torch.equal(torch.full((2,), float("nan"), device="tpu"), torch.full((2,), float("nan"), device="tpu"))
    with pytest.raises(RuntimeError, match="different devices"):
        torch.equal(d, d.cpu())


def test_two_devices(run_python):
    run_python(
        """
import torch
x = torch.arange(12.0).view(3, 4)
a = x.to("tpu:0")
b = a.to("tpu:1")
assert b.device == torch.device("tpu:1") and torch.equal(b.cpu(), x)
b += 1
assert torch.equal(a.cpu(), x) and torch.equal(b.cpu(), x + 1)
assert torch.equal(a.t().to("tpu:1").cpu(), x.t())
assert torch.equal(a[1:, ::2].to("tpu:1", torch.float64).cpu(), x[1:, ::2].double())
b[0].copy_(a[2])
assert torch.equal(b.cpu()[0], x[2])
b.copy_(a[0])
assert torch.equal(b.cpu(), x[0].expand(3, 4))
c = torch.complex(x, x).to("tpu:0")
assert torch.equal(c.conj().to("tpu:1").cpu().resolve_conj(), torch.complex(x, -x))
p = (a * 2).to("tpu:1")  # not finished yet
assert torch.equal(p.cpu(), x * 2)
try:
    a + b
    raise SystemExit("no error")
except RuntimeError as e:
    assert "Expected all tensors to be on the same device" in str(e)
""",
        TORCH_TPU_DEVICE_COUNT="2",
    )


# ---- sizes that depend on values


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (0,), (3, 0), ()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64, torch.complex64], ids=str)
def test_nonzero(shape, dtype):
    x = sample(torch.int64, shape).remainder(3).to(dtype)
    d = x.to("tpu")
    assert_same(d.nonzero(), x.nonzero())
    assert [t.tolist() for t in d.nonzero(as_tuple=True)] == [t.tolist() for t in x.nonzero(as_tuple=True)]
    assert_same(torch.argwhere(d), torch.argwhere(x))


def test_nonzero_forms():
    x = torch.tensor([[0, 1, 0], [2, 0, 3]])
    d = x.to("tpu")
    assert_same(d.t().nonzero(), x.t().nonzero())
    assert_same(d[:, 1:].nonzero(), x[:, 1:].nonzero())
    assert_same(torch.zeros(5, device="tpu").nonzero(), torch.zeros(5).nonzero())
    out = torch.empty(0, dtype=torch.int64, device="tpu")
    assert torch.nonzero(d, out=out) is out
    assert_same(out, x.nonzero())
    with pytest.raises(RuntimeError, match="Long"):
        torch.nonzero(d, out=torch.empty(0, device="tpu"))
    big = torch.zeros(20000)
    big[::1999] = 1
    found = big.to("tpu").nonzero()
    assert_same(found, big.nonzero())
    assert found.untyped_storage().nbytes() < 1000  # trimmed
    found += 1
    assert_same(found, big.nonzero() + 1)


def test_masked_select():
    x = torch.randn(4, 5)
    d = x.to("tpu")
    assert_same(d.masked_select(d > 0), x.masked_select(x > 0))
    row = torch.tensor([True, False, True, False, False])
    assert_same(d.masked_select(row.to("tpu")), x.masked_select(row))
    assert_same(d[0].masked_select(d > 0.3), x[0].masked_select(x > 0.3))
    assert_same(d.masked_select(d > 100), x.masked_select(x > 100))
    assert_same(d[0, 0].masked_select(torch.tensor(True, device="tpu")), x[0, 0].masked_select(torch.tensor(True)))
    out = torch.empty(0, device="tpu")
    torch.masked_select(d, d > 0, out=out)
    assert_same(out, x[x > 0])
    with pytest.raises(RuntimeError, match="BoolTensor"):
        d.masked_select(d)


MASKS = {
    "whole": lambda x: (x > 0,),
    "front": lambda x: (x.sum((1, 2)) > 0,),
    "front_two": lambda x: (x.sum(2) > 0,),
    "behind": lambda x: (slice(None), x.sum((0, 2)) > 0),
    "last": lambda x: (Ellipsis, x.sum((0, 1)) > 0),
    "with_index": lambda x: (torch.tensor([1, 0], device=x.device), slice(None), torch.arange(5, device=x.device) < 2),
    "none": lambda x: (x > 1e9,),
    "bytes": lambda x: ((x > 0).to(torch.uint8),),
}


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("name", MASKS)
def test_mask_reads_and_writes(name):
    x = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    d = x.to("tpu")
    on_cpu, on_device = MASKS[name](x), MASKS[name](d)
    expected = x[on_cpu]
    assert_same(d[on_device].contiguous(), expected.contiguous())
    assert_same(d[on_device] * 2, expected * 2)
    values = torch.arange(float(expected.numel())).view(expected.shape)
    for value in (5.0, torch.tensor(6.0), values):
        if name == "bytes" and value is not values:
            continue  # PyTorch's own masked_fill_ refuses them
        d[on_device] = value.to("tpu") if isinstance(value, torch.Tensor) else value
        x[on_cpu] = value
        assert_same(d, x)
    if not any(isinstance(i, slice) or i is Ellipsis for i in on_cpu):
        d.index_put_(on_device, torch.ones((), device="tpu"), accumulate=True)
        x.index_put_(on_cpu, torch.ones(()), accumulate=True)
        assert_same(d, x)


def test_mask_writes_of_rows():
    x = torch.zeros(4, 5)
    d = x.to("tpu")
    mask = torch.tensor([True, False, True, False])
    for values in (torch.arange(5.0), torch.arange(5.0).view(1, 5) + 1, torch.tensor([2.0])):
        d[mask.to("tpu")] = values.to("tpu")
        x[mask] = values
        assert_same(d, x)
    d.t()[:, mask.to("tpu")] = torch.arange(5.0, device="tpu").view(5, 1)
    x.t()[:, mask] = torch.arange(5.0).view(5, 1)
    assert_same(d, x)
    with pytest.raises(RuntimeError):
        d[mask.to("tpu")] = torch.zeros(3, device="tpu")
    with pytest.raises(IndexError, match="does not match the shape of the indexed tensor"):
        d[mask[:3].to("tpu")]
    with pytest.raises(RuntimeError, match="dtypes match"):
        d.index_put_((mask.to("tpu"),), torch.tensor(1, device="tpu"))
    assert_same(d.index_put((mask.to("tpu"),), torch.tensor(3.0, device="tpu")), x.index_put((mask,), torch.tensor(3.0)))
    assert_same(d, x)


def test_masked_write_does_not_wait(count):
    d = torch.randn(64, 64, device="tpu")
    d[d > 0] = 1.0
    torch.tpu.synchronize()
    with count() as c:
        d[d > 0] = 1.0
        d[d.sum(1) > 0] = torch.zeros(64, device="tpu")
    assert c["host_waits"] == 0 and c["reads"] == 0


def test_indices_on_the_host():
    x = torch.arange(12.0).view(3, 4)
    d = x.to("tpu")
    index = torch.tensor([2, 0])
    mask = torch.tensor([True, False, True])
    assert_same(d[index], x[index])
    assert_same(d[mask], x[mask])
    assert_same(d[index, [1, 2]], x[index, [1, 2]])
    assert d[[0, 2], [1, 3]].tolist() == [1.0, 11.0]
    d[index] = 1.0
    x[index] = 1.0
    assert_same(d, x)
    with pytest.raises(RuntimeError, match="indices should be either on"):
        x[index.to("tpu")]


def test_mask_compiles_once_a_bucket(count):
    x = torch.arange(256.0, device="tpu")
    for n in range(129, 256, 16):  # one bucket: 256
        x[x < n].cpu()
    with count() as c:
        for n in range(130, 256, 16):
            assert x[x < n].shape == (n,)
    assert c["compiles"] == 0


def test_mask_gradient():
    grads = []
    for device in ("cpu", "tpu"):
        t = (torch.arange(12.0).view(3, 4) - 5).to(device).requires_grad_()
        (t[t > 0] ** 2).sum().backward()
        grads.append(t.grad.cpu())
        t.grad = None
        t.masked_select(t < 0).sum().backward()
        grads.append(t.grad.cpu())
    torch.testing.assert_close(grads[0], grads[2])
    torch.testing.assert_close(grads[1], grads[3])
