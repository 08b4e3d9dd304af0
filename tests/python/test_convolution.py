# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling against the CPU: values, gradients, indices and memory formats, without one fallback."""

import itertools

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("forbid_fallback")

FORMATS = {
    1: (torch.contiguous_format,),
    2: (torch.contiguous_format, torch.channels_last),
    3: (torch.contiguous_format, torch.channels_last_3d),
}
CONVOLUTIONS = {
    (1, False): F.conv1d, (2, False): F.conv2d, (3, False): F.conv3d,
    (1, True): F.conv_transpose1d, (2, True): F.conv_transpose2d, (3, True): F.conv_transpose3d,
}  # fmt: skip


def run(function, tensors, device, dtype=None):
    """The result and the gradients of every floating-point tensor."""
    moved = [t.detach().to(device=device, dtype=dtype).requires_grad_() for t in tensors]
    result = function(*moved)
    results = result if isinstance(result, tuple) else (result,)
    generator = torch.Generator().manual_seed(7)
    weight = torch.randn(results[0].shape, generator=generator).to(device=device, dtype=results[0].dtype)
    gradients = torch.autograd.grad((results[0] * weight).sum(), moved)
    return [r.detach() for r in results], gradients


def compare(function, *tensors, dtype=None, strides=True, **tolerance):
    torch.tpu.synchronize()
    before = torch.tpu.counters()["fallbacks"]
    got, got_gradients = run(function, tensors, "tpu", dtype)
    want, want_gradients = run(function, tensors, "cpu", dtype)
    for mine, reference in zip(got, want, strict=True):
        torch.testing.assert_close(mine.cpu(), reference, **tolerance)
        if strides:
            assert mine.stride() == reference.stride()
    for mine, reference in zip(got_gradients, want_gradients, strict=True):
        torch.testing.assert_close(mine.cpu(), reference, **tolerance)
    torch.tpu.synchronize()
    assert torch.tpu.counters()["fallbacks"] == before


def convolution_tensors(spatial, groups, transposed, bias, memory_format, channels=4, filters=6, kernel=3, size=9):
    torch.manual_seed(0)
    x = torch.randn(2, channels, *[size + i for i in range(spatial)]).contiguous(memory_format=memory_format)
    ends = (channels, filters // groups) if transposed else (filters, channels // groups)
    w = torch.randn(*ends, *[kernel] * spatial).contiguous(memory_format=memory_format)
    return [x, w, torch.randn(filters)] if bias else [x, w]


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(spatial, transposed, groups):
    function = CONVOLUTIONS[spatial, transposed]
    for stride, padding, dilation in itertools.product((1, 2), (0, 1), (1, 2)):
        for number, memory_format in enumerate(FORMATS[spatial]):
            bias = (stride + padding + dilation + number) % 2 == 0
            tensors = convolution_tensors(spatial, groups, transposed, bias, memory_format, size=6)
            options = {"output_padding": 1} if transposed and stride == 2 else {}

            def call(x, w, b=None, s=stride, p=padding, d=dilation, options=options):
                return function(x, w, b, stride=s, padding=p, dilation=d, groups=groups, **options)

            # The CPU's strides of one spatial dimension follow from the library that it picks.
            compare(call, *tensors, strides=spatial > 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("memory_format", FORMATS[2])
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("stride,padding,dilation", [(1, 1, 1), (2, 1, 1), (2, 0, 2), (1, 4, 1)])
def test_depthwise(memory_format, multiplier, stride, padding, dilation):
    x, w, b = convolution_tensors(2, 4, False, True, memory_format, filters=4 * multiplier)
    call = lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups=4)  # noqa: E731
    compare(call, x, w, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("memory_format", FORMATS[2])
@pytest.mark.parametrize("each,filters", [(2, 2), (3, 2), (4, 4), (8, 8)])  # channels and filters a group
@pytest.mark.parametrize("stride,padding,dilation", [(1, 1, 1), (2, 1, 1), (2, 0, 2)])
def test_few_channels_a_group(memory_format, each, filters, stride, padding, dilation):
    tensors = convolution_tensors(2, 3, False, True, memory_format, channels=3 * each, filters=3 * filters, size=10)
    compare(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups=3), *tensors, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("memory_format", FORMATS[2])
@pytest.mark.parametrize("kernel,stride,size", [(3, 1, 13), (3, 2, 17), (5, 1, 11), (2, 3, 16)])
def test_depthwise_of_many_images(memory_format, kernel, stride, size):
    """More images than the gradient of the weight takes at once, and numbers of rows that do not divide."""
    torch.manual_seed(0)
    x = torch.randn(37, 24, size, size + 1).contiguous(memory_format=memory_format)
    w = torch.randn(24, 1, kernel, kernel).contiguous(memory_format=memory_format)
    compare(lambda x, w: F.conv2d(x, w, None, stride, 1, groups=24), x, w, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("transposed", [False, True])
def test_depthwise_lines(transposed):
    """One spatial dimension, in both memory orders, as a Conformer has it."""
    torch.manual_seed(0)
    x, w = torch.randn(12, 96, 50), torch.randn(48, 1, 9)
    compare(lambda x, w: F.conv1d(x, w, None, padding=4, groups=48), x[:, :48], w, strides=False, rtol=1e-4, atol=1e-3)
    turned = torch.randn(12, 150, 48)
    call = F.conv_transpose1d if transposed else F.conv1d
    compare(lambda x, w: call(x.transpose(1, 2), w, None, groups=48), turned, w, strides=False, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("memory_format", FORMATS[2])
def test_depthwise_volumes(memory_format):
    last = memory_format == torch.channels_last
    x, w = convolution_tensors(3, 4, False, False, torch.channels_last_3d if last else memory_format, size=6, filters=4)
    compare(lambda x, w: F.conv3d(x, w, None, 2, 1, groups=4), x, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("memory_format", FORMATS[2])
def test_depthwise_of_numbers_that_are_not_finite(memory_format):
    """They reach the elements whose windows have them, and no others."""
    x, w = convolution_tensors(2, 4, False, False, memory_format, filters=4)
    x[0, 1, 2, 3] = torch.inf
    x[1, 0, 8, 9] = torch.nan
    compare(lambda x, w: F.conv2d(x, w, None, 1, 0, groups=4), x, w, rtol=1e-4, atol=1e-4, equal_nan=True)
    w[2, 0, 1, 1] = torch.inf
    want = F.conv2d(x, w, groups=4)
    torch.testing.assert_close(F.conv2d(x.tpu(), w.tpu(), groups=4).cpu(), want, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("memory_format", FORMATS[2])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 9])
def test_pointwise(memory_format, stride, size):
    tensors = convolution_tensors(2, 1, False, True, memory_format, channels=8, kernel=1, size=size)
    compare(lambda x, w, b: F.conv2d(x, w, b, stride), *tensors, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
def test_unequal_dimensions(transposed):
    torch.manual_seed(0)
    x, w = torch.randn(3, 4, 8, 11), torch.randn(4, 4, 3, 2)
    call = F.conv_transpose2d if transposed else F.conv2d
    compare(lambda x, w: call(x, w, None, (2, 1), (0, 3), dilation=(1, 2)), x, w, rtol=1e-4, atol=1e-4)


def test_many_images_and_rows():
    """Sums so long that their weight gradient is cut into parts."""
    torch.manual_seed(0)
    x, w = torch.randn(37, 2, 40, 40), torch.randn(3, 2, 5, 5)
    compare(lambda x, w: F.conv2d(x, w, None, 1, 2), x, w, rtol=1e-4, atol=5e-3)
    compare(lambda x, w: F.conv2d(x, w, None, 2, 7), x, w, rtol=1e-4, atol=5e-3)


def test_more_padding_than_kernel():
    compare(lambda x, w: F.conv2d(x, w, None, 1, 5), torch.randn(2, 3, 4, 4), torch.randn(4, 3, 2, 2), rtol=1e-4, atol=1e-4)
    compare(lambda x, w: F.conv2d(x, w, None, 9, 3), torch.randn(2, 3, 2, 2), torch.randn(4, 3, 1, 1), rtol=1e-4, atol=1e-4)


def test_views_as_operands():
    torch.manual_seed(0)
    x, w = torch.randn(9, 8, 4, 2), torch.randn(3, 3, 4, 6)
    call = lambda x, w: F.conv2d(x.permute(3, 2, 1, 0)[:, :, ::2], w.permute(3, 2, 0, 1))  # noqa: E731
    compare(call, x, w, strides=False, rtol=1e-4, atol=1e-4)


def test_empty_batch():
    compare(lambda x, w, b: F.conv2d(x, w, b, padding=1), torch.randn(0, 3, 4, 4), torch.randn(4, 3, 3, 3), torch.randn(4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_dtypes(dtype):
    tensors = convolution_tensors(2, 1, False, True, torch.contiguous_format)
    tolerance = {"rtol": 1e-7, "atol": 1e-7} if dtype == torch.float64 else {"rtol": 2e-2, "atol": 5e-2}
    compare(lambda x, w, b: F.conv2d(x, w, b, padding=1), *tensors, dtype=dtype, **tolerance)


def test_second_derivatives():
    def penalty(device):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 6, 6).to(device).requires_grad_()
        w = torch.randn(4, 3, 3, 3).to(device).requires_grad_()
        b = torch.randn(4).to(device).requires_grad_()
        y = F.conv2d(x, w, b, stride=2, padding=1)
        gradients = torch.autograd.grad((y**3).sum(), (x, w, b), create_graph=True)
        return torch.autograd.grad(sum((g**2).sum() for g in gradients), (x, w, b))

    for mine, reference in zip(penalty("tpu"), penalty("cpu"), strict=True):
        torch.testing.assert_close(mine.cpu(), reference, rtol=1e-4, atol=1e-1)


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_only_the_gradients_asked_for(wanted):
    x, w = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3)
    for device in ("tpu", "cpu"):
        leaves = [t.to(device).requires_grad_(r) for t, r in zip((x, w), wanted, strict=True)]
        F.conv2d(*leaves).sum().backward()
        gradients = [leaf.grad for leaf in leaves]
        assert [g is not None for g in gradients] == list(wanted)
        if device == "tpu":
            mine = [g.cpu() for g in gradients if g is not None]
    torch.testing.assert_close(mine[0], next(g for g in gradients if g is not None), rtol=1e-4, atol=1e-4)


# ---- pooling


def image(*size, memory_format=torch.contiguous_format, ties=False):
    torch.manual_seed(0)
    x = torch.randint(0, 3, size).float() if ties else torch.randn(*size)
    return x.contiguous(memory_format=memory_format)


POOLS = [  # kernel, stride, padding, dilation, ceil_mode
    (2, 2, 0, 1, False),
    (2, 2, 0, 1, True),
    (3, 2, 1, 1, False),
    (3, 2, 1, 1, True),
    (3, 1, 1, 2, False),
    ((2, 3), (1, 2), (1, 0), 1, True),
    (3, 5, 0, 1, False),
]


@pytest.mark.parametrize("memory_format", FORMATS[2])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_max_pool2d(pool, ties, memory_format):
    compare(lambda x: F.max_pool2d(x, *pool, return_indices=True), image(2, 3, 9, 8, memory_format=memory_format, ties=ties))


@pytest.mark.parametrize("ties", [False, True])
def test_max_pool_of_other_ranks(ties):
    compare(lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), image(2, 3, 9, ties=ties))
    compare(lambda x: F.max_pool2d(x, 2, return_indices=True), image(3, 8, 9, ties=ties))
    compare(lambda x: F.max_pool3d(x, 2, return_indices=True), image(2, 3, 4, 6, 5, ties=ties))
    compare(lambda x: F.max_pool3d(x, (2, 3, 3), 2, (0, 1, 1), return_indices=True), image(2, 3, 4, 6, 5, ties=ties))


def test_max_pool_of_unordered_values():
    x = image(1, 2, 6, 6)
    x[0, 0, 1, 1] = x[0, 0, 2, 2] = x[0, 1, 5, 5] = torch.nan
    x[0, 1, :3, :3] = -torch.inf
    for pool in POOLS[:4]:
        want = F.max_pool2d(x, *pool, return_indices=True)
        got = F.max_pool2d(x.tpu(), *pool, return_indices=True)
        for mine, reference in zip(got, want, strict=True):
            torch.testing.assert_close(mine.cpu(), reference, equal_nan=True)


@pytest.mark.parametrize("memory_format", FORMATS[2])
@pytest.mark.parametrize("pool", [p for p in POOLS if p[3] == 1], ids=str)
@pytest.mark.parametrize("include_pad,divisor", [(True, None), (False, None), (True, 3)])
def test_avg_pool2d(pool, include_pad, divisor, memory_format):
    kernel, stride, padding, _dilation, ceil_mode = pool
    call = lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil_mode, include_pad, divisor)  # noqa: E731
    compare(call, image(2, 3, 9, 8, memory_format=memory_format))


def test_avg_pool_of_other_ranks():
    compare(lambda x: F.avg_pool1d(x, 3, 2, 1), image(2, 3, 9))
    compare(lambda x: F.avg_pool3d(x, 2, 2, 1, True, False), image(2, 3, 4, 6, 5))


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (5, 3), (9, 8), (11, 20)])
def test_adaptive(size):
    compare(lambda x: F.adaptive_avg_pool2d(x, size), image(2, 3, 9, 8))
    compare(lambda x: F.adaptive_max_pool2d(x, size, return_indices=True), image(2, 3, 9, 8, ties=True))
    compare(lambda x: F.adaptive_avg_pool3d(x, (2, *size)), image(2, 3, 4, 9, 8))
    compare(lambda x: F.adaptive_max_pool3d(x, (2, *size), return_indices=True), image(2, 3, 4, 9, 8))
