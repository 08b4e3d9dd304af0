# SPDX-License-Identifier: Apache-2.0
"""Values of "tpu" against the CPU's, at the tolerances that upstream's tests have by default."""

import torch
from torch.utils import _pytree as pytree

WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class WrongResult(AssertionError):
    """A value, dtype, shape, stride or device that is not the CPU's: never to be expected."""


def move(tensor: torch.Tensor) -> torch.Tensor:
    """Onto "tpu"; a view takes all of its storage along, so that it is the same view there."""
    if tensor.layout != torch.strided:
        return tensor.to("tpu")
    if tensor.is_conj():
        return move(tensor.conj()).conj()
    if tensor.is_neg():
        return torch._neg_view(move(torch._neg_view(tensor)))
    if tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize and tensor.is_contiguous():
        there = tensor.detach().to("tpu")
    else:
        there = torch.empty(0, dtype=tensor.dtype, device="tpu")
        there.set_(tensor.untyped_storage().tpu(), tensor.storage_offset(), tensor.size(), tensor.stride())
    return there.requires_grad_(tensor.requires_grad)


def to_tpu(value):
    return pytree.tree_map(lambda v: move(v) if isinstance(v, torch.Tensor) else "tpu" if v == "cpu" else v, value)


def tensors(value) -> list[torch.Tensor]:
    return [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def outcome(function, *args, **kwargs):
    """What the function returns and None, or None and what it raises."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def widened(value):
    return pytree.tree_map_only(torch.Tensor, lambda t: t.to(WIDE.get(t.dtype, t.dtype)), value)


def assert_near(a: torch.Tensor, b: torch.Tensor, exact=lambda: None) -> None:
    """`a` of "tpu" equals `b` of the CPU at upstream's tolerance, or is as right as it; `exact()` is the float64 result."""
    a = a.detach().cpu()
    try:
        torch.testing.assert_close(a, b.detach(), equal_nan=True)
    except AssertionError as error:
        if b.dtype not in WIDE or (true := exact()) is None:
            raise WrongResult(str(error)) from None
        own_error = (b.detach() - true).abs().max().item()
        try:
            torch.testing.assert_close(a.to(true.dtype), true, rtol=1.3e-6, atol=max(1e-5, own_error), equal_nan=True)
        except AssertionError as worse:
            raise WrongResult(str(worse)) from None


def compare(mine, reference, exact=lambda: None, values: bool = True) -> None:
    """Nested results: as many tensors, on "tpu", of the same dtype and shape, near in value. `exact()`: all in float64."""
    mine, reference = tensors(mine), tensors(reference)
    if len(mine) != len(reference):
        raise WrongResult(f"{len(mine)} tensors, on the CPU {len(reference)}")
    for i, (a, b) in enumerate(zip(mine, reference, strict=True)):
        if a.device.type != "tpu" and b.layout == torch.strided:
            raise WrongResult(f"result on {a.device}")
        if a.dtype != b.dtype or a.shape != b.shape:
            raise WrongResult(f"{a.dtype} {tuple(a.shape)}, on the CPU {b.dtype} {tuple(b.shape)}")
        if values:
            assert_near(a, b, lambda i=i: dict(enumerate(tensors(exact()))).get(i))
