# SPDX-License-Identifier: Apache-2.0
"""Every operator of PyTorch's own OpInfo database, on "tpu" against the CPU at upstream's default tolerances.

Per commit the first samples of one dtype each; TORCH_TPU_TEST_SAMPLES widens that. Operators without a lowering rule run
through the CPU fallback here: this checks that its values, dtypes, strides and devices are right.

Some of the database's samples cancel so much that the CPU's own float32 results differ by more than the tolerance between
instruction sets (addbmm, conv_transpose3d). Where CPU and "tpu" disagree, the CPU's float64 result decides: "tpu" must be
within the tolerance of it, or at least as near as the CPU's float32 result is.
"""

import os
import warnings

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

SAMPLES = int(os.environ.get("TORCH_TPU_TEST_SAMPLES", "2"))

# name -> why results cannot be compared element by element.
UNDEFINED_VALUES = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
    "bernoulli": "random",
    "cauchy": "random",
    "exponential": "random",
    "geometric": "random",
    "log_normal": "random",
    "multinomial": "random",
    "normal": "random",
    "rand_like": "random",
    "randint": "random",
    "randint_like": "random",
    "randn": "random",
    "randn_like": "random",
    "uniform": "random",
    "nn.functional.dropout": "random",
    "nn.functional.dropout2d": "random",
    "nn.functional.dropout3d": "random",
    "nn.functional.alpha_dropout": "random",
    "nn.functional.feature_alpha_dropout": "random",
    "nn.functional.multi_head_attention_forward": "dropout inside",
    "nn.functional.scaled_dot_product_attention": "dropout in some samples",
    "nn.functional.rrelu": "random",
    "nn.functional.feature_alpha_dropout.with_train": "random",
    "nn.functional.fractional_max_pool2d": "random regions",
    "nn.functional.fractional_max_pool3d": "random regions",
    "pca_lowrank": "random projection",
    "svd_lowrank": "random projection",
    "linalg.eig": "eigenvectors are unique up to a factor",
    "linalg.eigh": "eigenvectors are unique up to a factor",
    "linalg.svd": "singular vectors are unique up to a factor",
    "svd": "singular vectors are unique up to a factor",
    "normal.in_place": "random",
    "normal.number_mean": "random",
}


# name -> what is raised, and why. The list only shrinks.
REFUSED = {
    "chalf": (TypeError, "no complex of half precision in PJRT"),
    "to_sparse": (NotImplementedError, "strided tensors only"),
    "sparse.sampled_addmm": (NotImplementedError, "strided tensors only"),
    "sparse.mm.reduce": (NotImplementedError, "strided tensors only"),
    "tensor_split": (RuntimeError, "core wants the indices on the CPU, for every device"),
}
# Entries of the database that no CPU kernel serves: nothing to compare with.
NOT_ON_CPU = {op.full_name for op in op_db if not op.supported_dtypes("cpu")}


# Meta and CPU kernels differ in a helper output: ours is Meta's.
HELPER_OUTPUTS = {"native_batch_norm": "the CPU kernel saves nothing in evaluation, Meta says [C]"}


def dtype_of(op):
    supported = op.supported_dtypes("cpu")
    for dtype in (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16):
        if dtype in supported:
            return dtype
    return next(iter(supported))


def move(tensor):
    """Onto "tpu"; a view takes all of its storage along, so that it is the same view there."""
    if tensor.layout != torch.strided or tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize:
        return tensor.to("tpu")
    if tensor.is_conj() or tensor.is_neg():
        return tensor.to("tpu")
    there = torch.empty(0, dtype=tensor.dtype, device="tpu")
    return there.set_(tensor.untyped_storage().tpu(), tensor.storage_offset(), tensor.size(), tensor.stride())


def to_tpu(value):
    return pytree.tree_map(lambda v: move(v) if isinstance(v, torch.Tensor) else "tpu" if v == "cpu" else v, value)


def tensors(value):
    return [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def outcome(op, sample):
    try:
        return op(sample.input, *sample.args, **sample.kwargs), None
    except Exception as error:
        return None, error


def in_float64(op, sample):
    """The tensors that the CPU computes in float64, or None if it computes none."""
    wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    torch.manual_seed(0)
    result, _error = outcome(
        op, sample.transform(lambda v: v.to(wide.get(v.dtype, v.dtype)) if isinstance(v, torch.Tensor) else v)
    )
    return tensors(result)


def assert_near(a, b, exact):
    """`a` of "tpu" equals `b` of the CPU at upstream's tolerance, or is as right as it; `exact()` is the float64 result."""
    a = a.cpu()
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        if b.dtype not in (torch.float32, torch.complex64) or (true := exact()) is None:
            raise
        own_error = (b - true).abs().max().item()
        torch.testing.assert_close(a.to(true.dtype), true, rtol=1.3e-6, atol=max(1e-5, own_error), equal_nan=True)


def compare(op, sample, mine, reference):
    mine, reference = tensors(mine), tensors(reference)
    assert len(mine) == len(reference)
    for i, (a, b) in enumerate(zip(mine, reference, strict=True)):
        if op.full_name in HELPER_OUTPUTS and a.shape != b.shape and b.numel() == 0:
            continue
        assert a.device.type == "tpu" or b.layout != torch.strided, f"result on {a.device}"
        assert a.dtype == b.dtype and a.shape == b.shape
        if op.full_name not in UNDEFINED_VALUES:
            assert_near(a, b, lambda i=i: dict(enumerate(in_float64(op, sample))).get(i))


def identity(op):
    return op.full_name


@pytest.mark.parametrize("op", [op for op in op_db if op.full_name not in NOT_ON_CPU], ids=identity)
def test_matches_cpu(op):
    if op.full_name in REFUSED:
        error, _reason = REFUSED[op.full_name]
        with pytest.raises(error):
            run_samples(op)
    else:
        run_samples(op)


def run_samples(op):
    dtype = dtype_of(op)
    for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if i == SAMPLES:
            break
        mine = type(sample)(to_tpu(sample.input), args=to_tpu(sample.args), kwargs=to_tpu(sample.kwargs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            want, cpu_error = outcome(op, sample)
            got, error = outcome(op, mine)
        if cpu_error is not None:
            assert error is not None, f"CPU raises {cpu_error!r}, tpu does not"
            continue
        if error is not None:
            raise error
        compare(op, sample, got, want)


def test_float64_decides_only_where_the_cpu_is_inexact():
    true = torch.tensor([1.0, 2.0], dtype=torch.float64)
    exact, rounded = true.float(), torch.tensor([1.0, 2.0001])
    assert_near(exact, rounded, lambda: true)  # right, and the CPU is not
    assert_near(torch.tensor([1.00009, 2.0]), rounded, lambda: true)  # no further away than the CPU
    for wrong in (torch.tensor([1.0, 2.0002]), torch.tensor([1.0, float("nan")])):
        with pytest.raises(AssertionError):
            assert_near(wrong, rounded, lambda: true)
    with pytest.raises(AssertionError):
        assert_near(torch.tensor([1.0, 2.0001]), exact, lambda: true)
    with pytest.raises(AssertionError):
        assert_near(exact, rounded, lambda: None)
