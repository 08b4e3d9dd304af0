# SPDX-License-Identifier: Apache-2.0
"""What the sweep knows about operators beforehand, each with its reason. The lists only shrink."""

# Operators whose values cannot be compared element by element; shapes, dtypes and devices are.
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

# Operators that raise: the exception, and why.
REFUSED = {
    "chalf": (TypeError, "no complex of half precision in PJRT"),
    "to_sparse": (NotImplementedError, "strided tensors only"),
    "sparse.sampled_addmm": (NotImplementedError, "strided tensors only"),
    "sparse.mm.reduce": (NotImplementedError, "strided tensors only"),
    "tensor_split": (RuntimeError, "core wants the indices on the CPU, for every device"),
}

# Helper outputs in which Meta and CPU kernels differ; ours are Meta's.
HELPER_OUTPUTS = {"native_batch_norm": "the CPU kernel saves nothing in evaluation, Meta says [C]"}
