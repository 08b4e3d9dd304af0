# SPDX-License-Identifier: Apache-2.0
"""A case: one operator of a database, one dtype, one form. Found by asking the databases, never listed by hand."""

import dataclasses
from collections.abc import Iterator

import torch
from forms import FORMS, Form
from torch.testing._internal import common_methods_invocations as databases
from torch.utils import _pytree as pytree

SAMPLES_OF_OTHERS = 5  # of distinct shape class; float32 has all


@dataclasses.dataclass(frozen=True)
class Case:
    op: object  # OpInfo
    dtype: torch.dtype
    form: Form

    @property
    def name(self) -> str:
        return f"{self.op.full_name}|{str(self.dtype).removeprefix('torch.')}|{self.form.name}"

    def samples(self, limit: int | None) -> Iterator:
        """All samples, or `limit` of distinct shape class."""
        seen = set()
        for sample in self.form.samples(self.op, self.dtype):
            if limit is not None:
                kind = shape_class(sample)
                if kind in seen:
                    continue
                seen.add(kind)
                if len(seen) > limit:
                    return
            yield sample


def shape_class(sample) -> tuple:
    """Which dimensions there are and which are 0 or 1, and the types of the other arguments."""
    if hasattr(sample, "sample_input"):  # error inputs: each stands for itself
        return (id(sample),)

    def of(v):
        if isinstance(v, torch.Tensor):
            return tuple(min(n, 2) for n in v.shape)
        return v if isinstance(v, bool | str | None) else type(v).__name__

    leaves, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    return (str(tree), *map(of, leaves))


def foreach_database() -> list:
    names = [name for name in dir(databases) if name.startswith("foreach_") and name.endswith("_db")]
    return [op for name in names for op in getattr(databases, name)]


def operators(database: str) -> list:
    """Those that some CPU kernel serves."""
    found = {"op_db": lambda: databases.op_db, "foreach_fn_db": foreach_database}[database]()
    return [op for op in found if op.supported_dtypes("cpu")]


def cases(database: str) -> Iterator[Case]:
    for op in operators(database):
        for dtype in sorted(op.supported_dtypes("cpu"), key=lambda d: (d != torch.float32, str(d))):
            for form in FORMS.values():
                if form.applies(op, dtype):
                    yield Case(op, dtype, form)


def limit_of(case: Case) -> int | None:
    return None if case.dtype == torch.float32 and case.form.name in ("forward", "in-place", "out=") else SAMPLES_OF_OTHERS
