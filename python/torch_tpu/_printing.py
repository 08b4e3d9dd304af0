# SPDX-License-Identifier: Apache-2.0
"""Printing a tensor reads it once, instead of launching dozens of small programs.

torch copies tensors of some device types to the CPU before it formats them, but the list of types is fixed inside
torch/_tensor_str.py. The one function replaced here formats the values alone (docs/decisions/0002-printing.md).
"""

import functools

import torch


def install() -> None:
    original = torch._tensor_str._tensor_str

    @functools.wraps(original)
    def tensor_str(self, indent):
        return original(self.cpu() if self.device.type == "tpu" else self, indent)

    torch._tensor_str._tensor_str = tensor_str
