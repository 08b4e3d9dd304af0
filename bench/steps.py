# SPDX-License-Identifier: Apache-2.0
"""The steps of the example models, for any device. Peers run them too: nothing here knows ours."""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples"))


def make_step(model: nn.Module, optimizer: torch.optim.Optimizer, loss_of, clip: float = 1.0):
    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    return step


def mingpt(device: str, mode: str):
    """4 layers of width 128 with 4 heads, 8 x 128 characters, AdamW, dropout 0."""
    import mingpt as example

    torch.manual_seed(0)
    model = example.GPT(65, dropout=0.0).to(device)
    tokens, targets = (torch.randint(65, (8, 128)).to(device) for _ in range(2))
    call = torch.compile(model, dynamic=False) if mode == "compile" else model
    return make_step(model, example.make_optimizer(model, 3e-4, 0.1), lambda: call(tokens, targets))


class SmallCnn(nn.Sequential):
    """1 to 32 to 64 channels of 3 x 3, maximum over 2 x 2, one linear layer: the usual first network for 28 x 28 digits."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 10)
        )


def classifier(make, image: tuple[int, ...], device: str, mode: str):
    """A step of a network of 10 classes on 64 images, SGD with momentum."""
    torch.manual_seed(0)
    model = make().to(device)
    images, labels = torch.randn(64, *image).to(device), torch.randint(10, (64,)).to(device)
    call = torch.compile(model, dynamic=False) if mode == "compile" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return make_step(model, optimizer, lambda: F.cross_entropy(call(images), labels))


def cnn(device: str, mode: str):
    return classifier(SmallCnn, (1, 28, 28), device, mode)


def resnet(device: str, mode: str):
    """The example's network."""
    import resnet as example

    return classifier(lambda: example.ResNet(10), (3, 32, 32), device, mode)


def llama(device: str, mode: str):
    """One greedy token of one sequence over a static cache, as the example decodes."""
    import llama as example

    torch.manual_seed(0)
    model = example.Llama(65).to(device).eval()
    cache = model.make_cache(1)
    decode = torch.compile(model.decode, dynamic=False) if mode == "compile" else model.decode
    state = {"tokens": torch.zeros(1, 1, dtype=torch.int64).to(device), "places": torch.zeros(1, dtype=torch.int64).to(device)}

    @torch.inference_mode()
    def step() -> None:
        state["tokens"] = decode(state["tokens"], state["places"], cache).argmax(dim=-1, keepdim=True)
        state["places"] = (state["places"] + 1) % 200

    return step
