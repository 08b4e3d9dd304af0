# SPDX-License-Identifier: Apache-2.0
"""torch.tpu: the device module. Everything here asks the C++ side; nothing decides."""

import types

import torch

from torch_tpu import _C
from torch_tpu.tpu import amp, memory, random, streams
from torch_tpu.tpu._settings import eager_mode, set_eager_mode, settings
from torch_tpu.tpu._utils import _get_device_index
from torch_tpu.tpu.amp import (
    get_amp_supported_dtype,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from torch_tpu.tpu.memory import *  # noqa: F403
from torch_tpu.tpu.random import *  # noqa: F403
from torch_tpu.tpu.random import _all_generators
from torch_tpu.tpu.random import _get_generator as _get_generator
from torch_tpu.tpu.streams import *  # noqa: F403

__all__ = [
    "amp",
    "counters",
    "current_device",
    "default_generators",  # noqa: F405 (made on demand, below)
    "device",
    "device_count",
    "device_of",
    "eager_mode",
    "explain_last_miss",
    "fallback_counts",
    "get_amp_supported_dtype",
    "get_autocast_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_autocast_enabled",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "memory",
    "plugin_info",
    "random",
    "reset_counters",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_device",
    "set_eager_mode",
    "settings",
    "streams",
    "synchronize",
    *memory.__all__,
    *random.__all__,
    *streams.__all__,
]

# Activation checkpointing saves the device's random state only where this is true. The state lives on the host and exists
# before the runtime starts, so it can always be saved.
_initialized = True

is_available = _C.is_available
is_initialized = _C.is_initialized
init = _lazy_init = _C.init
_is_in_bad_fork = _C.in_bad_fork
device_count = _C.device_count
current_device = _C.current_device
counters = _C.counters
reset_counters = _C.reset_counters
plugin_info = _C.plugin_info
explain_last_miss = _C.explain_last_miss
fallback_counts = _C.fallback_counts


def set_device(device) -> None:
    _C.set_device(_get_device_index(device))


def synchronize(device=None) -> None:
    """Waits until everything recorded for the device has run, and raises what failed and nobody has read."""
    _C.synchronize(_get_device_index(device))


class device:
    """Makes a device the current one inside a with block. None and a negative index change nothing."""

    def __init__(self, device):
        self.idx = -1 if device is None else _get_device_index(device)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = _C.exchange_device(self.idx)
        return self

    def __exit__(self, *exc_info):
        if self.idx >= 0:
            _C.exchange_device(self.prev_idx)


class device_of(device):
    """Makes the device of a tensor or storage the current one; an object elsewhere changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.device.type == "tpu" else None)


def get_device_properties(device=None) -> types.SimpleNamespace:
    """name, kind, total_memory, platform, platform_version and multi_processor_count of a device."""
    return types.SimpleNamespace(**{"multi_processor_count": 1, **_C.device_properties(_get_device_index(device))})


def get_device_name(device=None) -> str:
    return get_device_properties(device).name


def get_device_capability(device=None) -> dict:
    """What the device can do, as torch.accelerator says it: {"supported_dtypes": {...}}."""
    return torch.accelerator.get_device_capability(_get_device_index(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def __getattr__(name: str):
    if name == "default_generators":
        return _all_generators()
    raise AttributeError(f"module 'torch.tpu' has no attribute '{name}'")
