# SPDX-License-Identifier: Apache-2.0
"""From a graph of Dynamo to callables: whose graph it is, and what AOTAutograd is asked for."""

import functools
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils._pytree import tree_leaves

from torch_tpu.compile.graph import compile_graph


def compile_dynamo_graph(gm, example_inputs, mode, options):
    if not _uses_device(gm, example_inputs):
        return torch._TorchCompileInductorWrapper(mode, options, None)(gm, example_inputs)
    if (mode or "default") != "default" or options:
        _warn_ignored()
    return aot_autograd(
        fw_compiler=compile_graph,
        decompositions={},  # every operator arrives as eager execution calls it, and runs by the same rule
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )(gm, example_inputs)


@functools.cache
def _warn_ignored() -> None:
    warnings.warn('torch.compile: mode and options have no effect on graphs of the device "tpu"')


def _uses_device(gm, example_inputs) -> bool:
    values = [*example_inputs, *gm.parameters(), *gm.buffers()]
    for module in gm.modules():
        if isinstance(module, torch.fx.GraphModule):
            values += [node.meta.get("example_value") for node in module.graph.nodes]
            values += [getattr(module, node.target, None) for node in module.graph.find_nodes(op="get_attr")]
    return any(isinstance(leaf, torch.Tensor) and leaf.device.type == "tpu" for leaf in tree_leaves(values))
