# SPDX-License-Identifier: Apache-2.0
"""Memory of a device. Names and keys are those of torch.cuda: `allocated` counts the bytes of live storages, `reserved` the
buffers behind them and the temporaries of programs in flight."""

from collections import OrderedDict

from torch_tpu import _C
from torch_tpu.tpu._utils import _get_device_index

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
]


def memory_stats(device=None) -> OrderedDict[str, int]:
    """Every statistic of the device, by the keys of torch.cuda.memory_stats ("allocated_bytes.all.current", ...)."""
    return OrderedDict(sorted(_C.memory_stats(_get_device_index(device)).items()))


def _stat(key: str, device) -> int:
    return _C.memory_stats(_get_device_index(device)).get(key, 0)


def memory_allocated(device=None) -> int:
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device=None) -> int:
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device=None) -> int:
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device=None) -> int:
    return _stat("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device=None) -> None:
    _C.reset_peak_memory_stats(_get_device_index(device))


reset_max_memory_allocated = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None) -> None:
    _C.reset_accumulated_memory_stats(_get_device_index(device))


def empty_cache() -> None:
    """Drops what is kept for reuse, cached host arguments, and gives the CPU engine's free memory back to the system."""
    _C.empty_cache()


def mem_get_info(device=None) -> tuple[int, int]:
    """Free and total bytes."""
    return tuple(_C.mem_get_info(_get_device_index(device)))


def memory_summary(device=None, abbreviated: bool = False) -> str:
    stats = memory_stats(device)
    rows = [(k, v) for k, v in stats.items() if v and (not abbreviated or k.endswith(("current", "peak")))]
    width = max((len(k) for k, _ in rows), default=0)
    return "\n".join(f"{k:<{width}}  {v:>16,}" for k, v in rows)
