# SPDX-License-Identifier: Apache-2.0
"""torch.amp with "tpu" filled in, and the older module-level names that some libraries still ask for."""

import sys

import torch

from torch_tpu import _C

__all__ = ["GradScaler", "autocast", "get_amp_supported_dtype"]


def autocast(enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool = True) -> torch.amp.autocast:
    """`torch.autocast("tpu", ...)`; a function, so that Dynamo sees core's class."""
    return torch.amp.autocast("tpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    def __init__(self, *args, **kwargs):
        super().__init__("tpu", *args, **kwargs)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """bfloat16 and float16. Called by the constructor of `torch.autocast("tpu")`.

    That constructor has just read this thread's default dtype, which was core's float16 if the thread has done nothing on the
    device yet. Given no dtype, it takes ours instead.
    """
    _C.ensure_autocast_dtype()
    caller = sys._getframe(1).f_locals
    if isinstance(made := caller.get("self"), torch.autocast) and caller.get("dtype", made) is None:
        made.fast_dtype = torch.get_autocast_dtype("tpu")
    return [torch.bfloat16, torch.float16]


def is_autocast_enabled() -> bool:
    return torch.is_autocast_enabled("tpu")


def set_autocast_enabled(enabled: bool) -> None:
    torch.set_autocast_enabled("tpu", enabled)


def get_autocast_dtype() -> torch.dtype:
    return torch.get_autocast_dtype("tpu")


def set_autocast_dtype(dtype: torch.dtype) -> None:
    torch.set_autocast_dtype("tpu", dtype)
