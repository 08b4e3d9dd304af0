# SPDX-License-Identifier: Apache-2.0
"""A graph of ATen operators as a callable: programs of the device, and what has to run on the host between them.

A program is captured when its arguments are first there: its nodes run once on placeholders that record and compute nothing.
"""

import dataclasses
import logging

import torch
from torch import fx

from torch_tpu import _C
from torch_tpu.compile.partition import (
    Step,
    device_of,
    is_free,
    is_only_read,
    is_source,
    plan,
    sources_of,
    upload_scalars,
    value_of,
)

_log = logging.getLogger(__name__)
_MAX_PROGRAMS = 16
_MANY_PROGRAMS = 4  # with so many, an input is copied out of its storage rather than captured where it lies


class _NeedsHost(Exception):
    """Nodes that cannot be part of a program."""

    def __init__(self, nodes: set[fx.Node]):
        super().__init__(", ".join(node.name for node in nodes))
        self.nodes = nodes


class _Recorder(fx.Interpreter):
    """Runs a module and knows which node it is at."""

    def __init__(self, module: fx.GraphModule):
        super().__init__(module)
        self.node = None
        self.extra_traceback = False

    def run_node(self, n):
        self.node = n
        return super().run_node(n)

    def run_list(self, *args):
        return list(self.run(*args))


class Piece:
    """Nodes that become one program for each geometry of their inputs."""

    def __init__(self, root: fx.GraphModule, nodes: list[fx.Node], inputs: list[fx.Node], outputs):
        self.module, self._origin = _module_of(root, nodes, inputs, outputs)
        self._read_only = [i for i, n in enumerate(self.module.graph.find_nodes(op="placeholder")) if is_only_read(n)]
        self._programs = []  # most recently used first; replaced and never changed, so that threads need no lock

    def __call__(self, args: list):
        for program in self._programs:
            outputs = program.call(args)
            if outputs is not None:
                if program is not self._programs[0]:
                    self._put_first(program)
                return outputs
        if len(self._programs) >= _MANY_PROGRAMS and self._copy_parts(args):
            return self(args)
        return self._capture(args)

    def _copy_parts(self, args: list) -> bool:
        """Copies the inputs that are parts of a larger tensor and only read: rows of a data set are all the same then."""
        parts = [i for i in self._read_only if _is_part(args[i])]
        for i in parts:
            args[i] = args[i].clone()
        return bool(parts)

    def _put_first(self, program) -> None:
        self._programs = [program, *(p for p in self._programs if p is not program)][:_MAX_PROGRAMS]

    def _capture(self, args: list):
        recorder = _Recorder(self.module)
        try:
            with torch.no_grad():
                program = _C.capture(recorder.run_list, args)
        except Exception as error:  # what is wrong with the node itself is raised again when it runs on the host
            nodes = self._to_blame(recorder.node)
            _log.info("%s: no program: %s", ", ".join(n.name for n in nodes), error)
            raise _NeedsHost(nodes) from None
        self._put_first(program)
        return program.call(args)

    def _to_blame(self, node: fx.Node) -> set[fx.Node]:
        """What has to run on the host after the capture failed at a node of the module."""
        if node in self._origin:
            return {self._origin[node]}
        return set(self._origin.values())  # it failed at the end: no program can be made of all of them


def _is_part(value) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() * value.element_size() < value.untyped_storage().nbytes()


class HostPiece:
    """Nodes that run one after the other, each as eager execution runs it."""

    def __init__(self, root: fx.GraphModule, nodes: list[fx.Node], inputs: list[fx.Node], outputs):
        self._module, _ = _module_of(root, nodes, inputs, outputs)

    def __call__(self, args: list):
        return self._module(*args)


def _module_of(root: fx.GraphModule, nodes, inputs, outputs) -> tuple[fx.GraphModule, dict[fx.Node, fx.Node]]:
    """The nodes as a module of their own, and for each of its nodes the one it was copied from."""
    graph = fx.Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    origin = {}

    def copy(node: fx.Node) -> fx.Node:
        if node not in copies:
            copies[node] = graph.node_copy(node, copy)
        return copies[node]

    for node in nodes:
        origin[copy(node)] = node
    graph.output(fx.map_arg(outputs, copy))
    return fx.GraphModule(root, graph), origin


@dataclasses.dataclass(frozen=True)
class _Bound:
    """A step with the slots that it reads, fills, and empties because no later step reads them."""

    step: Step
    run: Piece | HostPiece
    reads: list[int]
    fills: list[int]
    empties: list[int]


class Graph:
    """Called with the list of its inputs, which it empties; returns the list of its outputs."""

    def __init__(self, gm: fx.GraphModule):
        self._boxed_call = True  # on the instance: torch's wrappers copy only what they find there
        self._gm = gm
        self._device = device_of(gm.graph)
        upload_scalars(gm.graph, self._device)
        self._outputs = list(gm.graph.output_node().args[0])
        constants = [node for node in gm.graph.nodes if node.op == "get_attr" and is_source(node)]
        self._constants = [value_of(node) for node in constants]
        self._sources = gm.graph.find_nodes(op="placeholder") + constants
        computed = [node for node in gm.graph.nodes if node.op == "call_function"]
        returned = {n for n in self._outputs if isinstance(n, fx.Node)}
        self._nodes = [node for node in computed if not is_free(node) or node in returned]
        self._slots = {node: slot for slot, node in enumerate(self._sources + computed)}
        self._host_nodes: frozenset[fx.Node] = frozenset()
        self._arrange()

    def __call__(self, args: list) -> list:
        whole = self._whole
        if whole is None:
            return self._run_steps(args)
        try:
            outputs = whole([*args, *self._constants] if self._constants else args)
        except _NeedsHost as need:
            self._host_nodes |= need.nodes
            self._arrange()
            return self(args)
        args.clear()
        return outputs

    def _arrange(self) -> None:
        steps = plan(self._nodes, self._device, self._host_nodes)
        if len(steps) == 1 and steps[0].on_device:
            self._whole = Piece(self._gm, self._nodes, self._sources, self._outputs)
        else:
            self._steps = self._bind(steps, ())
            self._whole = None

    def _bind(self, steps: list[Step], before: tuple[_Bound, ...]) -> tuple[_Bound, ...]:
        """Connects the steps; what was bound before keeps its programs."""
        runs = {id(bound.step): bound.run for bound in before}
        results = {n for n in self._outputs if isinstance(n, fx.Node)}
        reads = []
        for step in steps:
            own = set(step.nodes)
            reads.append([n for n in dict.fromkeys(n for node in step.nodes for n in sources_of(node)) if n not in own])
        last_use = {n: i for i, found in enumerate(reads) for n in found} | dict.fromkeys(results, len(steps))
        bound = []
        for i, (step, found) in enumerate(zip(steps, reads, strict=True)):
            fills = [n for n in step.nodes if n in last_use]
            run = runs.get(id(step)) or (Piece if step.on_device else HostPiece)(self._gm, step.nodes, found, fills)
            empties = [n for n in found if last_use[n] == i]
            bound.append(_Bound(step, run, *([self._slots[n] for n in nodes] for nodes in (found, fills, empties))))
        return tuple(bound)

    def _run_steps(self, args: list) -> list:
        values = [*args, *self._constants, *[None] * (len(self._slots) - len(self._sources))]
        args.clear()
        steps, i = self._steps, 0
        while i < len(steps):
            bound = steps[i]
            try:
                results = bound.run([values[slot] for slot in bound.reads])
            except _NeedsHost as need:  # nothing of this step has run: what it is split into takes its place
                self._host_nodes |= need.nodes
                split = plan(bound.step.nodes, self._device, self._host_nodes)
                steps = self._bind([*(b.step for b in steps[:i]), *split, *(b.step for b in steps[i + 1 :])], steps)
                self._steps = steps
                continue
            for slot, result in zip(bound.fills, results, strict=True):
                values[slot] = result
            for slot in bound.empties:
                values[slot] = None
            i += 1
        return [values[self._slots[n]] if isinstance(n, fx.Node) else n for n in self._outputs]


def compile_graph(gm: fx.GraphModule, example_inputs) -> Graph:
    """What AOTAutograd calls for forward, backward and inference graphs."""
    return Graph(gm)
