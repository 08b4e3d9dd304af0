# SPDX-License-Identifier: Apache-2.0
"""The ways in which an operator of OpInfo's database is called. A check raises, or returns False when the CPU cannot do it.

The CPU always goes first and has its own copy of the inputs: what it raises, "tpu" has to raise as well.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator

import torch
from compare import WrongResult, compare, outcome, tensors, to_tpu, widened
from known import HELPER_OUTPUTS, UNDEFINED_VALUES
from torch.utils import _pytree as pytree


class NotRaised(AssertionError):
    """The CPU refuses what "tpu" accepts."""


@dataclasses.dataclass(frozen=True)
class Form:
    name: str
    applies: Callable[..., bool]  # to (op, dtype)
    samples: Callable[..., Iterator]  # of (op, dtype)
    check: Callable[..., bool | None]  # of (op, sample)


def plain_samples(op, dtype, requires_grad=False):
    yield from op.sample_inputs("cpu", dtype, requires_grad=requires_grad)


def call(function, sample):
    return function(sample.input, *sample.args, **sample.kwargs)


def both(function, sample, mine=None):
    """CPU's result and ours for one sample; None if the CPU raises and "tpu" does too."""
    mine = to_tpu_sample(sample) if mine is None else mine
    if not on_tpu((mine.input, mine.args, mine.kwargs)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        want, cpu_error = outcome(call, function, sample)
        torch.manual_seed(0)
        got, error = outcome(call, function, mine)
    if cpu_error is not None:
        if error is None and outcome(torch.tpu.synchronize)[1] is None:
            raise NotRaised(f"CPU raises {type(cpu_error).__name__}: {cpu_error}; tpu does not")
        return None
    if error is not None:
        raise error
    return want, got


def on_tpu(value) -> bool:
    """Whether anything names the device; a factory without `device=` is the CPU's."""
    return any(v == "tpu" or (isinstance(v, torch.Tensor) and v.device.type == "tpu") for v in pytree.tree_leaves(value))


def to_tpu_sample(sample):
    return type(sample)(to_tpu(sample.input), args=to_tpu(sample.args), kwargs=to_tpu(sample.kwargs))


def copy_of(value):
    """The same values in the same strides, and a leaf again."""

    def copied(t):
        return t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)

    return pytree.tree_map_only(torch.Tensor, copied, value)


def copied_sample(sample, inputs=copy_of):
    return type(sample)(inputs(sample.input), args=inputs(sample.args), kwargs=inputs(sample.kwargs))


def in_float64(function, sample):
    def exact():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            return outcome(call, function, copied_sample(sample, widened))[0]

    return exact


def same(op, got, want, exact=lambda: None) -> None:
    mine, reference = tensors(got), tensors(want)
    if op.full_name in HELPER_OUTPUTS and len(mine) == len(reference):
        kept = [i for i, (a, b) in enumerate(zip(mine, reference, strict=True)) if a.shape == b.shape or b.numel()]
        mine, reference = [mine[i] for i in kept], [reference[i] for i in kept]
    compare(mine, reference, exact, values=op.full_name not in UNDEFINED_VALUES)


def forward(op, sample):
    results = both(op, sample)
    if results is None:
        return False
    same(op, results[1], results[0], in_float64(op, sample))


def inplace(op, sample):
    if getattr(sample, "broadcasts_input", False):
        return False
    function = op.get_inplace()
    copied, ours = copied_sample(sample), to_tpu_sample(sample)
    results = both(function, copied, ours)
    if results is None:
        return False
    same(op, ours.input, copied.input, in_float64(function, sample))
    if isinstance(ours.input, torch.Tensor) and results[1] is not ours.input:
        raise WrongResult("the result is not the tensor itself")


def outs(want) -> Iterator[tuple[str, Callable]]:
    """What an `out=` may look like, made from the expected tensors. Some CPU kernels refuse a wider dtype; we need not."""
    yield "right", lambda t: torch.empty_like(t)
    yield "empty", lambda t: torch.empty(0, dtype=t.dtype)
    yield "wrong size", lambda t: torch.empty(*t.shape, 1, dtype=t.dtype)
    if any(t.numel() > 1 for t in want):
        yield "strided", lambda t: torch.empty(*t.shape, 2, dtype=t.dtype)[..., 0]
        yield "transposed", lambda t: torch.empty(t.shape[::-1], dtype=t.dtype).permute(*range(t.dim() - 1, -1, -1))
    yield "float64", lambda t: torch.empty(t.shape, dtype=torch.float64)
    yield "int64", lambda t: torch.empty(t.shape, dtype=torch.int64)


def same_out(op, ours, theirs, want, exact) -> None:
    """Values in the precision in which they were computed, and the layout."""
    for a, b in zip(tensors(ours), tensors(theirs), strict=True):
        if a.dtype != b.dtype or a.shape != b.shape or (a.numel() > 1 and a.stride() != b.stride()):
            raise WrongResult(f"{a.dtype} {tuple(a.shape)} {a.stride()}, on the CPU {b.dtype} {tuple(b.shape)} {b.stride()}")
    dtypes = [t.dtype for t in tensors(want)]
    same(op, *([t.to(d) for t, d in zip(tensors(side), dtypes, strict=True)] for side in (ours, theirs)), exact)


def out(op, sample):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, cpu_error = outcome(call, op, sample)
    if cpu_error is not None or not tensors(want):
        return False
    for name, make in outs(tensors(want)):

        def filled(t, make=make):
            return make(t).fill_(1)

        theirs = pytree.tree_map_only(torch.Tensor, filled, want)
        ours = to_tpu(theirs)
        made = iter((theirs, ours))
        try:
            results = both(lambda *args, made=made, **kwargs: op(*args, **kwargs, out=next(made)), sample)
            if results is not None:
                same_out(op, ours, theirs, want, in_float64(op, sample))
        except NotRaised:
            if name != "float64":
                raise
        except WrongResult as error:
            raise WrongResult(f"out= that is {name}: {error}") from None


def noncontiguous_samples(op, dtype):
    for sample in plain_samples(op, dtype):
        yield sample.noncontiguous()


def in_memory_format(value):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def changed(t):
        return t.contiguous(memory_format=formats[t.dim()]) if t.dim() in formats and t.layout == torch.strided else t

    return pytree.tree_map_only(torch.Tensor, changed, value)


def channels_last_samples(op, dtype):
    for sample in plain_samples(op, dtype):
        if any(t.dim() in (4, 5) for t in tensors((sample.input, sample.args, sample.kwargs))):
            yield copied_sample(sample, in_memory_format)


def as_neg_view(t):
    return torch._neg_view(t.neg()) if t.is_floating_point() or t.is_complex() else t


def as_conj_view(t):
    return t.conj().resolve_conj().conj() if t.is_complex() else t


def math_view_samples(op, dtype):
    views = (as_neg_view, as_conj_view) if dtype.is_complex else (as_neg_view,)
    for sample, view in itertools.product(plain_samples(op, dtype), views):

        def viewed(value, view=view):
            return pytree.tree_map_only(torch.Tensor, view, value)

        yield copied_sample(sample, viewed)


def grad_samples(op, dtype):
    yield from plain_samples(op, dtype, requires_grad=True)


def gradients(op, sample, twice: bool):
    """The gradients with respect to all inputs for a fixed cotangent; or those of their sum of squares."""

    def function(*args, **kwargs):
        result = op(*args, **kwargs)
        if sample.output_process_fn_grad is not None:
            result = sample.output_process_fn_grad(result)
        inputs = [t for t in tensors((args, kwargs)) if t.requires_grad]
        outputs = [t for t in tensors(result) if t.requires_grad]
        if not outputs or not inputs:
            return []
        generator = torch.Generator().manual_seed(1)
        cotangents = [torch.randn(t.shape, dtype=t.dtype, generator=generator).to(t.device) for t in outputs]
        first = torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True, create_graph=twice)
        if not twice:
            return first
        kept = [t for t in first if t is not None and t.requires_grad]
        if not kept:
            return []
        total = sum((t.abs() ** 2).sum() for t in kept)
        return torch.autograd.grad(total, inputs, allow_unused=True)

    return function


def grad(op, sample, twice: bool = False):
    function = gradients(op, sample, twice)
    exact = in_float64(function, sample)
    results = both(function, sample)
    if results is None or not tensors(results[0]):
        return False
    if [t is None for t in results[0]] != [t is None for t in results[1]]:
        raise WrongResult("other inputs have a gradient than on the CPU")
    same(op, results[1], results[0], exact)


def gradgrad(op, sample):
    return grad(op, sample, twice=True)


def error_samples(op, dtype):
    yield from op.error_inputs("cpu")


def error(op, sample):
    """Upstream's bad inputs: the exception that the CPU raises, at the call or at the synchronize after it."""
    _, cpu_error = outcome(call, op, sample.sample_input)
    if cpu_error is None:
        return False

    def run():
        call(op, to_tpu_sample(sample.sample_input))
        torch.tpu.synchronize()

    _, raised = outcome(run)
    if raised is None:
        raise NotRaised(f"CPU raises {type(cpu_error).__name__}: {cpu_error}; tpu does not")
    if not isinstance(raised, type(cpu_error)):
        raise AssertionError(f"{type(raised).__name__}: {raised}; on the CPU {type(cpu_error).__name__}: {cpu_error}")


def has_floats(op, dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def has_math_views(op, dtype) -> bool:
    return has_floats(op, dtype) and op.test_neg_view


def has_double_grad(op, dtype) -> bool:
    return has_grad(op, dtype) and op.supports_gradgrad


def has_errors(op, dtype) -> bool:
    return dtype == torch.float32 and op.error_inputs_func is not None


def has_grad(op, dtype) -> bool:
    return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and dtype.itemsize >= 4


FORMS = {
    form.name: form
    for form in (
        Form("forward", lambda op, dtype: True, plain_samples, forward),
        Form("in-place", lambda op, dtype: op.get_inplace() is not None, plain_samples, inplace),
        Form("out=", lambda op, dtype: op.supports_out, plain_samples, out),
        Form("non-contiguous", lambda op, dtype: True, noncontiguous_samples, forward),
        Form("channels_last", has_floats, channels_last_samples, forward),
        Form("conj and neg views", has_math_views, math_view_samples, forward),
        Form("gradient", has_grad, grad_samples, grad),
        Form("double gradient", has_double_grad, grad_samples, gradgrad),
        Form("error inputs", has_errors, error_samples, error),
    )
}
