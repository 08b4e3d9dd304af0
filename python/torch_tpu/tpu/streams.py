# SPDX-License-Identifier: Apache-2.0
"""Streams and events. There is one queue: a stream is a label on it, an event a position in it."""

import contextlib

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import _get_device_index

__all__ = ["Event", "Stream", "current_stream", "default_stream", "set_stream", "stream"]


class Event(torch.Event):
    """An event of torch.cuda's signature: Event(enable_timing=False, blocking=False, interprocess=False, device=None)."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, *, device=None):
        device = torch.device("tpu", _get_device_index(device))
        return super().__new__(cls, device, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    def elapsed_time(self, end_event) -> float:
        """Milliseconds between the two events; both must have been made with enable_timing=True and be complete."""
        # torch.Event.elapsed_time refuses instances of subclasses as its argument.
        return _C.event_elapsed_time(self, end_event)


class Stream(torch.Stream):
    """Stream(device=None, priority=0), or the stream that stream_id, device_index and device_type name."""

    def __new__(cls, device=None, priority=0, **kwargs):
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, torch.device("tpu", _get_device_index(device)), priority=priority)

    def record_event(self, event=None):
        if event is None:
            event = Event(device=self.device)
        event.record(self)
        return event


def _wrap(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device=None) -> Stream:
    return _wrap(torch.accelerator.current_stream(_get_device_index(device)))


def default_stream(device=None) -> Stream:
    kind = torch.accelerator.current_stream(_get_device_index(device)).device_type
    return Stream(stream_id=0, device_index=_get_device_index(device), device_type=kind)


def set_stream(stream: torch.Stream | None) -> None:
    if stream is not None:
        torch.accelerator.set_stream(stream)


def stream(stream: torch.Stream | None) -> contextlib.AbstractContextManager:
    """Makes `stream` the current one inside a with block; None changes nothing."""
    return contextlib.nullcontext() if stream is None else stream
