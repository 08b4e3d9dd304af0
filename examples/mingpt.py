# SPDX-License-Identifier: Apache-2.0
"""A small GPT learns to write like a text file, character by character.

    python examples/mingpt.py --steps 200 --save gpt.pt
    python examples/mingpt.py --steps 400 --resume gpt.pt

An ordinary PyTorch program: decoupled weight decay for the matrices alone, dropout, clipping, a schedule, gradient
accumulation, checkpoints from which it goes on as if it had never stopped.
"""

import argparse
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import common
from common import UserError


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, length: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop_weights, self.drop_out = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        length, width = x.shape[1:]
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        weights = self.drop_weights(scores.softmax(dim=-1))
        return self.drop_out(self.out((weights @ v).transpose(1, 2).flatten(2)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, length: int, dropout: float):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, length, dropout)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, symbols: int, layers=4, width=128, heads=4, length=128, dropout=0.1, checkpointing=False):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, length, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
        self.checkpointing = checkpointing
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                shrink = math.sqrt(2 * layers) if name.endswith(("out.weight", "mlp.2.weight")) else 1
                nn.init.normal_(parameter, std=0.02 / shrink)

    def forward(self, tokens, targets):
        """The mean cross entropy of the next character."""
        places = torch.arange(tokens.size(1), device=tokens.device)
        x = self.drop(self.tokens(tokens) + self.positions(places))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def make_optimizer(model: nn.Module, rate: float, decay: float):
    """Weight decay pulls on the matrices of linear layers, and on nothing else."""
    matrices = {module.weight for module in model.modules() if isinstance(module, nn.Linear)}
    groups = [
        {"params": [p for p in model.parameters() if p in matrices], "weight_decay": decay},
        {"params": [p for p in model.parameters() if p not in matrices], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95))


def schedule(step: int, warmup: int = 10, length: int = 1000, least: float = 0.1) -> float:
    """A factor of the learning rate: up in a line, down to a tenth along a cosine."""
    if step < warmup:
        return (step + 1) / warmup
    done = min((step - warmup) / (length - warmup), 1.0)
    return least + (1 - least) * (1 + math.cos(math.pi * done)) / 2


class Characters:
    """A text as numbers, and random pieces of it."""

    def __init__(self, text: str, length: int, seed: int):
        self.symbols = sorted(set(text))
        numbers = {symbol: i for i, symbol in enumerate(self.symbols)}
        self.text = torch.tensor([numbers[symbol] for symbol in text])
        self.length, self.generator = length, torch.Generator().manual_seed(seed)

    def batch(self, size: int, device: torch.device):
        starts = torch.randint(len(self.text) - self.length, (size, 1), generator=self.generator)
        pieces = self.text[starts + torch.arange(self.length + 1)].to(device)
        return pieces[:, :-1], pieces[:, 1:]


def random_states(device: torch.device) -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        states[device.type] = getattr(torch, device.type).get_rng_state()
    return states


def set_random_states(states: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if device.type in states and device.type != "cpu":
        getattr(torch, device.type).set_rng_state(states[device.type])


def load(path: pathlib.Path) -> dict:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except Exception as error:  # what torch.load raises depends on what it finds
        raise UserError(f"{path} is not a checkpoint: {str(error).splitlines()[0]}") from None


def train(args: argparse.Namespace) -> list[float]:
    torch.manual_seed(args.seed)
    text = common.read_text(args.file)
    if len(text) <= args.length:
        raise UserError(f"{args.file} has fewer than {args.length + 1} characters")
    data = Characters(text, args.length, args.seed)
    model = GPT(len(data.symbols), args.layers, args.width, args.heads, args.length, args.dropout, args.checkpointing).to(
        args.device
    )
    optimizer = make_optimizer(model, args.rate, args.decay)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    first = 0
    if args.resume:
        saved = load(args.resume)
        if saved["symbols"] != data.symbols:
            raise UserError(f"{args.resume} was trained on other characters than those of {args.file}")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        data.generator.set_state(saved["data"])
        set_random_states(saved["random"], args.device)
        first = saved["step"]

    loss_of = common.compiled(args, model)
    with common.Progress(args, max(args.steps, first), "tokens", first) as progress:
        for _ in range(first, args.steps):
            total = 0
            for _ in range(args.accumulate):
                tokens, targets = data.batch(args.batch_size, args.device)
                with common.autocast(args):
                    loss = loss_of(tokens, targets) / args.accumulate
                loss.backward()
                total = total + loss.detach()
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            progress.step(total, args.accumulate * args.batch_size * args.length)
        losses = progress.finish()

    if args.save:
        state = {
            "symbols": data.symbols,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "data": data.generator.get_state(),
            "random": random_states(args.device),
            "step": max(args.steps, first),
        }
        try:
            torch.save(state, args.save)
        except (OSError, RuntimeError) as error:
            raise UserError(f"cannot write {args.save}: {str(error).splitlines()[0]}") from None
    return losses


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = common.training_parser("Trains a small GPT on the characters of a text file.", steps=200)
    parser.add_argument("--file", type=pathlib.Path, default=common.TEXT, help="a UTF-8 text file (default: a sample)")
    parser.add_argument("--layers", type=common.positive, default=4, metavar="N")
    parser.add_argument("--width", type=common.positive, default=128, metavar="N")
    parser.add_argument("--heads", type=common.positive, default=4, metavar="N")
    parser.add_argument("--length", type=common.positive, default=128, metavar="N", help="characters in one piece of text")
    parser.add_argument("--batch-size", type=common.positive, default=8, metavar="N", help="pieces in one forward pass")
    parser.add_argument("--accumulate", type=common.positive, default=1, metavar="N", help="forward passes in one step")
    parser.add_argument("--dropout", type=float, metavar="P", help="default: 0.1, with --check 0")
    parser.add_argument("--rate", type=float, default=3e-3, metavar="LR", help="learning rate at its highest")
    parser.add_argument("--decay", type=float, default=0.1, metavar="X", help="weight decay of the matrices")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again instead of keeping them")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="write a checkpoint after the last step")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FILE", help="go on from a checkpoint; --steps counts from 0")
    args = parser.parse_args(argv)
    if args.width % args.heads:
        raise UserError("--width must be a multiple of --heads")
    if args.dropout is None:
        args.dropout = 0.0 if args.check else 0.1
    if args.check and args.dropout:
        raise UserError("--check needs --dropout 0: two devices draw different numbers")
    return args


def main(argv: list[str] | None = None) -> int:
    return common.main(lambda argv: common.run_training(parse_arguments(argv), train), argv)


if __name__ == "__main__":
    sys.exit(main())
