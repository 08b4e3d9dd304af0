# SPDX-License-Identifier: Apache-2.0
"""Every operator of PyTorch's own OpInfo database, on "tpu" against the CPU at upstream's default tolerances.

Per commit the first samples of one dtype each, a part of what `make sweep` does; TORCH_TPU_TEST_SAMPLES widens it. Operators
without a lowering rule run through the CPU fallback here: this checks that its values, dtypes, strides and devices are right.

Some of the database's samples cancel so much that the CPU's own float32 results differ by more than the tolerance between
instruction sets (addbmm, conv_transpose3d). Where CPU and "tpu" disagree, the CPU's float64 result decides: "tpu" must be
within the tolerance of it, or at least as near as the CPU's float32 result is.
"""

import itertools
import os
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sweep"))

from cases import Case, operators
from compare import WrongResult, assert_near
from forms import FORMS
from known import REFUSED

SAMPLES = int(os.environ.get("TORCH_TPU_TEST_SAMPLES", "2"))


def dtype_of(op):
    supported = op.supported_dtypes("cpu")
    for dtype in (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16):
        if dtype in supported:
            return dtype
    return next(iter(supported))


def run_samples(op):
    case = Case(op, dtype_of(op), FORMS["forward"])
    for sample in itertools.islice(case.samples(None), SAMPLES):
        case.form.check(op, sample)


@pytest.mark.parametrize("op", operators("op_db"), ids=lambda op: op.full_name)
def test_matches_cpu(op):
    if op.full_name in REFUSED:
        error, _reason = REFUSED[op.full_name]
        with pytest.raises(error):
            run_samples(op)
    else:
        run_samples(op)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_out_decides_the_dtype_of_sums(name):
    op = next(op for op in operators("op_db") if op.full_name == name)
    case = Case(op, torch.float32, FORMS["out="])
    for sample in itertools.islice(case.samples(5), 5):
        case.form.check(op, sample)


def test_float64_decides_only_where_the_cpu_is_inexact():
    true = torch.tensor([1.0, 2.0], dtype=torch.float64)
    exact, rounded = true.float(), torch.tensor([1.0, 2.0001])
    assert_near(exact, rounded, lambda: true)  # right, and the CPU is not
    assert_near(torch.tensor([1.00009, 2.0]), rounded, lambda: true)  # no further away than the CPU
    for wrong in (torch.tensor([1.0, 2.0002]), torch.tensor([1.0, float("nan")])):
        with pytest.raises(WrongResult):
            assert_near(wrong, rounded, lambda: true)
    with pytest.raises(WrongResult):
        assert_near(torch.tensor([1.0, 2.0001]), exact, lambda: true)
    with pytest.raises(WrongResult):
        assert_near(exact, rounded, lambda: None)
