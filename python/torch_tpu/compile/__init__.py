# SPDX-License-Identifier: Apache-2.0
"""torch.compile for "tpu": the backend that the entry point group `torch_dynamo_backends` names (docs/compile.md)."""

__all__ = ["tpu"]


def tpu(gm, example_inputs, *, mode=None, options=None):
    """Compiles a graph of Dynamo: forward and backward each become one program of the device wherever that is possible.

    A graph without any tensor on the device is inductor's, with the same mode and options.
    """
    from torch_tpu.compile import backend

    return backend.compile_dynamo_graph(gm, example_inputs, mode, options)
