# SPDX-License-Identifier: Apache-2.0
import contextlib
import enum

import torch


class EagerMode(enum.Enum):
    STRICT = "strict"
    DEBUG = "debug"


def get_eager_mode() -> EagerMode:
    return EagerMode(torch.tpu.eager_mode())


def set_eager_mode(mode: EagerMode | str) -> contextlib.AbstractContextManager:
    return torch.tpu.set_eager_mode(EagerMode(mode).value)


def cpu_fallback_mode(enabled: bool) -> contextlib.AbstractContextManager:
    return torch.tpu.settings(fallback="warn" if enabled else "forbid")
