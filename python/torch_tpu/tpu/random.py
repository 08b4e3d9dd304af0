# SPDX-License-Identifier: Apache-2.0
"""Random numbers. The state (16 bytes: seed and offset) lives on the host, so nothing here starts the runtime."""

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import _get_device_index

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _get_generator(device=None) -> torch.Generator:
    return _C.default_generator(_get_device_index(device))


def _all_generators() -> tuple[torch.Generator, ...]:
    return tuple(_C.default_generator(i) for i in range(_C.device_count()))


def get_rng_state(device="tpu") -> torch.Tensor:
    return _get_generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device="tpu") -> None:
    _get_generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [generator.get_state() for generator in _all_generators()]


def set_rng_state_all(new_states) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device."""
    _get_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for generator in _all_generators():
        generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the current device from the operating system and returns the seed."""
    return _get_generator().seed()


def seed_all() -> None:
    generators = _all_generators()
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed() -> int:
    return _get_generator().initial_seed()
