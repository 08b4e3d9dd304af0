# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a graph of ATen operators become programs, which run on the host, and in what order.

A node is a host node when it touches a tensor elsewhere than on the graph's device, or when what it returns depends on the
values of tensors. Nodes are gathered in as few steps as their data, their writes and their random numbers allow.
"""

import dataclasses
import operator

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)
_NAMESPACES = ("aten", "prims", "torch_tpu")  # of operators that read and write what their schemas say, and nothing else


@dataclasses.dataclass
class Step:
    """Nodes that run together, in the order of the graph: one program of the device, or one after the other."""

    on_device: bool
    nodes: list[fx.Node]


def value_of(node: fx.Node):
    """What the node returned when the graph was traced: fake tensors and numbers."""
    if node.op == "get_attr":
        return operator.attrgetter(node.target)(node.graph.owning_module)
    return node.meta.get("val")


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    value = value_of(node)
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def device_of(graph: fx.Graph) -> torch.device | None:
    """The device of the graph's programs: the first "tpu" in it."""
    for node in graph.nodes:
        for tensor in tensors_of(node):
            if tensor.device.type == "tpu":
                return tensor.device
    return None


def is_source(node: fx.Node) -> bool:
    """Its value is there before the first step: an input or a constant tensor."""
    return node.op == "placeholder" or (node.op == "get_attr" and isinstance(value_of(node), torch.Tensor))


def is_free(node: fx.Node) -> bool:
    """It is made again wherever it is needed: arithmetic on numbers among the inputs, or a submodule."""
    if node.op == "get_attr":
        return not is_source(node)
    return (
        node.op == "call_function"
        and not isinstance(node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator))
        and isinstance(value_of(node), _NUMBERS)
        and all(is_free(n) or (n.op == "placeholder" and not tensors_of(n)) for n in node.all_input_nodes)
    )


def sources_of(node: fx.Node) -> list[fx.Node]:
    """The nodes whose values a node needs, free nodes replaced by what they are made of."""
    found = []
    for n in node.all_input_nodes:
        found += sources_of(n) if is_free(n) else [n]
    return found


def is_only_read(node: fx.Node) -> bool:
    """Neither it nor a view of it is written or returned, as far as the schemas of its users say."""
    for user in node.users:
        if user.target is operator.getitem:
            aliases = True
        elif not isinstance(user.target, torch._ops.OpOverload):
            return False
        else:
            schema = user.target._schema
            named = dict(zip((a.name for a in schema.arguments), user.args, strict=False)) | user.kwargs
            infos = [a.alias_info for a in schema.arguments if node in tree_leaves(named.get(a.name)) and a.alias_info]
            if any(info.is_write for info in infos):
                return False
            aliases = bool(infos)
        if aliases and not is_only_read(user):
            return False
    return True


def _is_opaque(node: fx.Node) -> bool:
    """What it does is written in Python, or by the user: it runs each time, and in order with its like."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target.namespace not in _NAMESPACES
    return not isinstance(value_of(node), _NUMBERS)


def plan(nodes: list[fx.Node], device: torch.device | None, host_nodes: frozenset[fx.Node]) -> list[Step]:
    """The steps, first to last. `host_nodes` run on the host whatever they touch."""
    # A node's level is the earliest step it can be in: even levels run on the host, odd ones on the device.
    level: dict[fx.Node, int] = {}
    touched = {True: 0, False: 0}  # the last level that touches a tensor of the device (True), or of the host (False)
    written = {True: 0, False: 0}  # the same for writes
    in_order = 0  # the last level that draws random numbers of the device or does something opaque
    for node in nodes:
        parent = node.args[0] if node.target is operator.getitem else None
        if parent in level:
            level[node] = level[parent]
            continue
        tensors = [t for n in [node, *node.all_input_nodes] for t in tensors_of(n)]
        sides = {t.device == device for t in tensors}
        opaque = _is_opaque(node)
        on_host = opaque or node in host_nodes or False in sides or bool(node.meta.get("unbacked_bindings"))
        writes = isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
        ordered = opaque or (True in sides and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()))
        after = [level.get(n, 0) for n in sources_of(node)] + [written[side] for side in sides]
        after += [touched[side] for side in sides] if writes else []
        earliest = max([0, *after, *([in_order] if ordered else [])])
        if tensors or on_host:
            earliest += earliest % 2 if on_host else 1 - earliest % 2
        else:  # numbers alone: wherever their operands are
            earliest = earliest or 1
        level[node] = earliest
        for side in sides:
            touched[side] = max(touched[side], earliest)
            written[side] = max(written[side], earliest) if writes else written[side]
        in_order = earliest if ordered else in_order
    steps: dict[int, Step] = {}
    for node in nodes:
        steps.setdefault(level[node], Step(level[node] % 2 == 1, [])).nodes.append(node)
    return [steps[key] for key in sorted(steps)]


def upload_scalars(graph: fx.Graph, device: torch.device | None) -> None:
    """Moves the CPU scalars that operators of the device take to the device first, so that these need not split."""
    moved: dict[fx.Node, fx.Node] = {}

    def move(arg: fx.Node) -> fx.Node:
        tensor = value_of(arg)
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu":
            return arg
        if arg not in moved:
            with graph.inserting_after(arg):
                copy = graph.call_function(torch.ops.aten._to_copy.default, (arg,), {"device": device})
            with results[0].fake_mode:
                copy.meta["val"] = torch.empty((), dtype=tensor.dtype, device=device)
            moved[arg] = copy
        return moved[arg]

    for node in list(graph.nodes):
        results = tensors_of(node)
        if node.op != "call_function" or not results or any(t.device != device for t in results):
            continue
        operands = [t for n in node.all_input_nodes for t in tensors_of(n)]
        others = [t for t in operands if t.device != device]
        if others and len(others) < len(operands) and all(t.device.type == "cpu" and t.dim() == 0 for t in others):
            node.args = fx.map_arg(node.args, move)
            node.kwargs = fx.map_arg(node.kwargs, move)
