# SPDX-License-Identifier: Apache-2.0
import torch

from torch_tpu import _C


def _get_device_index(device=None, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that int, "tpu", "tpu:1" or torch.device name; the current device for no index, -1 for the CPU if allowed."""
    if isinstance(device, bool):
        raise TypeError(f"expected a device, got {device!r}")
    if isinstance(device, int):
        return device
    if device is None:
        return _C.current_device()
    device = torch.device(device)
    if allow_cpu and device.type == "cpu":
        return -1
    if device.type != "tpu":
        raise ValueError(f"Expected a tpu device, but got: {device}")
    return _C.current_device() if device.index is None else device.index
