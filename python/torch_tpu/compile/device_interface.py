# SPDX-License-Identifier: Apache-2.0
"""What Dynamo asks about the device. It replaces the TpuInterface that torch brings for another package."""

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from torch_tpu import _C


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    torch.tpu.set_stream(torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


class TpuInterface(DeviceInterface):
    device = torch.tpu.device
    Event = torch.tpu.Event
    Stream = torch.tpu.Stream

    class Worker:
        set_device = staticmethod(torch.tpu.set_device)
        current_device = staticmethod(torch.tpu.current_device)
        get_device_properties = staticmethod(torch.tpu.get_device_properties)

    current_device = staticmethod(torch.tpu.current_device)
    set_device = staticmethod(torch.tpu.set_device)
    exchange_device = staticmethod(_C.exchange_device)
    maybe_exchange_device = staticmethod(_C.exchange_device)
    device_count = staticmethod(torch.tpu.device_count)
    is_available = staticmethod(torch.tpu.is_available)
    stream = staticmethod(torch.tpu.stream)
    current_stream = staticmethod(torch.tpu.current_stream)
    set_stream = staticmethod(torch.tpu.set_stream)
    _set_stream_by_id = staticmethod(_set_stream_by_id)
    synchronize = staticmethod(torch.tpu.synchronize)
    get_device_properties = staticmethod(torch.tpu.get_device_properties)
    is_bf16_supported = staticmethod(torch.tpu.is_bf16_supported)
    memory_allocated = staticmethod(torch.tpu.memory_allocated)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return torch.accelerator.current_stream(device_idx).stream_id

    @staticmethod
    def get_compute_capability(device=None) -> str:
        return torch.tpu.get_device_name(device)


def register() -> None:
    register_interface_for_device("tpu", TpuInterface)
    for index in range(torch.tpu.device_count()):
        register_interface_for_device(f"tpu:{index}", TpuInterface)
