# SPDX-License-Identifier: Apache-2.0
"""Views are metadata: same geometry as on the CPU, nothing launched, reads and writes through every kind of view."""

import pytest
import torch

VIEWS = {
    "index": lambda x: x[1],
    "slice": lambda x: x[1:],
    "slice_step": lambda x: x[:, ::2],
    "slice_empty": lambda x: x[3:3],
    "ellipsis": lambda x: x[..., 1],
    "newaxis": lambda x: x[None, :, None],
    "select": lambda x: x.select(1, 2),
    "narrow": lambda x: x.narrow(2, 1, 3),
    "expand": lambda x: x[:, :1].expand(4, 6, 5),
    "expand_as": lambda x: x[0, 0].expand_as(x),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, 2),
    "movedim": lambda x: x.movedim(0, 1),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "t": lambda x: x[0].t(),
    "mT": lambda x: x.mT,
    "T": lambda x: x[0].T,
    "adjoint": lambda x: x.adjoint(),
    "diagonal": lambda x: x.diagonal(0, 0, 1),
    "diagonal_offset": lambda x: x.diagonal(1, 1, 2),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze_all": lambda x: x[:1, :, :1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "view": lambda x: x.view(24, 5),
    "view_infer": lambda x: x.view(-1),
    "view_split": lambda x: x.view(4, 2, 3, 5),
    "view_as": lambda x: x.view_as(x.new_empty(8, 15)),
    "reshape": lambda x: x.reshape(2, 60),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(1, (2, 3)),
    "ravel": lambda x: x.ravel(),
    "unfold": lambda x: x.unfold(1, 3, 3),
    "unfold_overlap": lambda x: x.unfold(2, 3, 1),
    "as_strided": lambda x: x.as_strided((3, 4), (7, 2), 5),
    "as_strided_overlap": lambda x: x.as_strided((5, 4), (1, 1), 2),
    "split": lambda x: x.split(2, 1)[1],
    "tensor_split": lambda x: x.tensor_split(3, 1)[2],
    "chunk": lambda x: x.chunk(2, 0)[1],
    "unbind": lambda x: x.unbind(1)[3],
    "hsplit": lambda x: x.hsplit(2)[1],
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "view_dtype_same": lambda x: x.view(torch.int32),
    "view_dtype_narrow": lambda x: x.view(torch.int16),
    "view_dtype_bytes": lambda x: x.view(torch.uint8),
    "view_dtype_wide": lambda x: x.view(-1).view(torch.float64),
    "chain": lambda x: x[1:].transpose(0, 2)[::2].unsqueeze(0)[:, 1],
}
COMPLEX_VIEWS = {
    "view_as_real": lambda x: torch.view_as_real(x),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conj(),
    "conj_imag": lambda x: x.conj().imag,
    "mH": lambda x: x.mH,
    "select_real": lambda x: x[1].real,
}


def pair(*shape, dtype=torch.float32):
    x = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) * 0.5 - 3
    x = torch.complex(x, -x + 1) if dtype.is_complex else x.to(dtype)
    return x, x.to("tpu")


def assert_same(device, cpu):
    assert device.device.type == "tpu"
    torch.testing.assert_close(device.cpu(), cpu, rtol=0, atol=0, equal_nan=True)


def assert_same_geometry(v, d, x, base):
    assert v.shape == x.shape and v.stride() == x.stride() and v.storage_offset() == x.storage_offset()
    assert v.dtype == x.dtype and v._is_view() == x._is_view() and v.is_contiguous() == x.is_contiguous()
    assert v.is_conj() == x.is_conj() and v.is_neg() == x.is_neg()
    assert v.untyped_storage()._cdata == d.untyped_storage()._cdata
    if x.numel():
        assert v.data_ptr() - d.data_ptr() == x.data_ptr() - base.data_ptr()


@pytest.mark.parametrize("name", VIEWS)
def test_geometry_and_values(name, count):
    x, d = pair(4, 6, 5)
    torch.tpu.synchronize()
    with count() as c:
        v = VIEWS[name](d)
    assert c["launches"] == 0 and c["records"] == 0
    expected = VIEWS[name](x)
    assert_same_geometry(v, d, expected, x)
    assert_same(v, expected)
    assert_same(v + 1, expected + 1)  # read inside a program, not on the host


@pytest.mark.parametrize("name", COMPLEX_VIEWS)
def test_complex_geometry_and_values(name):
    x, d = pair(4, 6, 5, dtype=torch.complex64)
    v, expected = COMPLEX_VIEWS[name](d), COMPLEX_VIEWS[name](x)
    assert_same_geometry(v, d, expected, x)
    assert_same(v, expected)
    assert_same(v * 2, expected * 2)


def test_view_as_complex():
    x, d = pair(3, 2)
    v, expected = torch.view_as_complex(d), torch.view_as_complex(x)
    assert_same_geometry(v, d, expected, x)
    assert_same(v * 2, expected * 2)
    v.mul_(2)
    expected.mul_(2)
    assert_same(d, x)


WRITABLE = [n for n in VIEWS if n not in ("expand", "expand_as", "unfold_overlap", "as_strided_overlap", "slice_empty")]


@pytest.mark.parametrize("name", WRITABLE)
def test_write_through(name):
    x, d = pair(4, 6, 5)
    version = d._version
    v, expected = VIEWS[name](d), VIEWS[name](x)
    if expected.dtype.is_floating_point:
        v.mul_(-2)
        expected.mul_(-2)
    else:
        v.fill_(3)
        expected.fill_(3)
    assert d._version == version + 1 or v._version == version + 1
    assert_same(v, expected)
    assert_same(d, x)
    assert_same(d + 1, x + 1)


@pytest.mark.parametrize("name", ["index", "slice_step", "permute", "diagonal", "unfold", "as_strided", "view_dtype_same"])
def test_copy_into(name):
    x, d = pair(4, 6, 5)
    v, expected = VIEWS[name](d), VIEWS[name](x)
    source = torch.arange(expected.numel(), dtype=torch.float32).reshape(expected.shape).to(expected.dtype)
    v.copy_(source)  # from the host
    expected.copy_(source)
    assert_same(d, x)
    v.copy_(source.to("tpu") * 2)
    expected.copy_(source * 2)
    assert_same(d, x)


@pytest.mark.parametrize("name", ["real", "imag", "view_as_real", "select_real", "conj_imag"])
def test_write_through_complex(name):
    x, d = pair(4, 6, 5, dtype=torch.complex64)
    v, expected = COMPLEX_VIEWS[name](d), COMPLEX_VIEWS[name](x)
    v.copy_(torch.full(expected.shape, 7.0))
    expected.copy_(torch.full(expected.shape, 7.0))
    assert_same(d, x)


def test_write_through_conj():
    x, d = pair(3, 4, dtype=torch.complex64)
    source = torch.complex(torch.ones(3, 4), torch.full((3, 4), 2.0))
    d.conj().copy_(source)
    x.conj().copy_(source)
    assert_same(d, x)
    d.conj().copy_(source.to("tpu"))
    assert_same(d, x)
    d.conj().mul_(2j)
    x.conj().mul_(2j)
    assert_same(d, x)


@pytest.mark.parametrize("name", ["expand", "expand_as"])
def test_overlapping_write_is_refused(name):
    x, d = pair(4, 6, 5)
    for t in (x, d):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            VIEWS[name](t).mul_(2)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            VIEWS[name](t).copy_(torch.zeros(()))
    assert_same(d, x)


def test_partial_overlap_is_refused():
    x, d = pair(10)
    for t in (x, d):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            t[1:].copy_(t[:-1])


def test_writes_are_seen_by_all_aliases():
    x, d = pair(6, 6)
    aliases = [d[2], d.t()[:, 2], d.diagonal(), d.view(-1)[::7], d.unfold(1, 2, 2)]
    on_cpu = [x[2], x.t()[:, 2], x.diagonal(), x.view(-1)[::7], x.unfold(1, 2, 2)]
    for a, b in zip(aliases, on_cpu, strict=True):
        a.add_(1)
        b.add_(1)
        for left, right in zip(aliases, on_cpu, strict=True):
            assert_same(left, right)
    assert_same(d, x)


def test_read_then_write_order():
    """A read recorded before a write sees the old value, whoever finishes first."""
    d = torch.zeros(64, device="tpu")
    seen = []
    for i in range(20):
        seen.append(d + 0)
        d[i] = i + 1
    for i, s in enumerate(seen):
        assert s.cpu().count_nonzero() == i


def test_one_program_for_every_offset(count):
    d = torch.arange(4096.0, device="tpu").view(64, 64)
    (d[1] * 2).cpu()
    (d[1:5] * 2).cpu()
    with count() as c:
        for i in range(2, 40):
            assert (d[i] * 2)[0].item() == i * 128
            assert (d[i : i + 4] * 2)[0, 0].item() == i * 128
    assert c["compiles"] == 0


def test_dtype_view_of_every_width():
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64, torch.float64, torch.bfloat16):
        x, d = pair(4, 8)
        assert_same(d.view(dtype), x.view(dtype))
        assert_same(d.view(dtype)[1:], x.view(dtype)[1:])
        y = torch.arange(4 * 8, dtype=torch.int8).view(dtype)
        assert_same(torch.arange(4 * 8, dtype=torch.int8, device="tpu").view(dtype).clone(), y)


def test_bool_as_bytes():
    x = torch.tensor([True, False, True])
    d = x.to("tpu")
    assert_same(d.view(torch.uint8) + 1, x.view(torch.uint8) + 1)
    d.view(torch.uint8).copy_(torch.tensor([0, 1, 1], dtype=torch.uint8))
    assert d.tolist() == [False, True, True]
    assert (~d).tolist() == [True, False, False]


def test_empty_reads_as_zeros():
    e = torch.empty(3, 4, device="tpu")
    assert e.cpu().eq(0).all() and e[1, 2].item() == 0 and (e + 1).cpu().eq(1).all()
    e[1] = 5
    assert e.cpu().sum() == 20


def test_empty_arguments():
    cl = torch.empty(2, 3, 4, 5, device="tpu", memory_format=torch.channels_last)
    assert cl.stride() == torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
    assert torch.empty_strided((2, 3), (1, 2), device="tpu").stride() == (1, 2)
    assert torch.empty_strided((2, 3), (10, 2), device="tpu").untyped_storage().nbytes() == 4 * (10 + 4 + 1)
    assert torch.empty(0, 3, device="tpu").untyped_storage().nbytes() == 0
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(2, device="tpu", pin_memory=True)
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        torch.empty(-1, device="tpu")
    with pytest.raises(TypeError, match="dtype"):
        torch.empty(2, device="tpu", dtype=torch.complex32)
    with pytest.raises(RuntimeError, match="overflow"):
        torch.empty(1 << 40, 1 << 40, device="tpu")
    with pytest.raises(RuntimeError):
        torch.empty(2, device="tpu:77")


def test_deterministic_fill():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="tpu").cpu().isnan().all()
        assert torch.empty(3, dtype=torch.int32, device="tpu").cpu().eq(torch.iinfo(torch.int32).max).all()
        assert torch.empty_strided((2, 2), (1, 2), device="tpu").cpu().isnan().all()
        grown = torch.zeros(2, device="tpu").resize_(4)
        assert grown.cpu()[:2].eq(0).all() and grown.cpu()[2:].isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_more_than_eight_dimensions():
    x = torch.arange(2.0**10).reshape([2] * 10)
    d = x.to("tpu")
    assert_same(d, x)
    assert_same(d.transpose(0, 9), x.transpose(0, 9))
    assert_same(d[1].clone(), x[1].clone())
    d[0].copy_(x[1].transpose(0, 3))
    x[0].copy_(x[1].transpose(0, 3).clone())
    assert_same(d, x)
    d.transpose(2, 5).add_(1)
    assert_same(d, x + 1)


def test_autograd_through_views():
    x = torch.randn(4, 6)
    results = []
    for device in ("cpu", "tpu"):
        t = x.detach().clone().to(device).requires_grad_()
        y = t * 2
        y[1:3, ::2].mul_(3)
        y.t()[0].zero_()
        y.unfold(1, 2, 2).sum().backward()
        results.append(t.grad.cpu())
    torch.testing.assert_close(results[0], results[1])
