# SPDX-License-Identifier: Apache-2.0
"""A small ResNet learns to tell six photographs apart from pieces of 32 x 32 pixels.

    python examples/resnet.py --steps 200

It learns from the upper two thirds of each photograph and is asked about the lower third. The pieces are cut out and
mirrored on the device; only the dice are thrown on the CPU, so that every device sees the same pieces.
"""

import argparse
import itertools
import pathlib
import struct
import sys
import zlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import common
from common import UserError

PHOTOS = common.DATA / "photos.png"
CLASSES = ["brick", "coffee", "cat", "galaxies", "grass", "gravel"]  # from left to right in the file
SIZE = 32
ACTIVATIONS = {"relu": nn.ReLU, "silu": nn.SiLU}


def read_png(path: pathlib.Path) -> torch.Tensor:
    """Bytes as colour, row, column. Reads PNG files as this one is: RGB, each pixel as the difference from its left one."""
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    packed, at = b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    rows = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8).view(height, 1 + 3 * width)
    if data[24:29] != b"\x08\x02\x00\x00\x00" or not (rows[:, 0] == 1).all():
        raise UserError(f"{path} is not a PNG file of the kind that this program reads")
    pixels = rows[:, 1:].view(height, width, 3).cumsum(1) % 256
    return pixels.to(torch.uint8).permute(2, 0, 1)


class Photos:
    """The photographs on a device, and random pieces of them."""

    def __init__(self, device: torch.device, seed: int):
        pixels = read_png(PHOTOS).to(device).float() / 255
        mean, deviation = pixels.mean((1, 2), keepdim=True), pixels.std((1, 2), keepdim=True)
        whole = ((pixels - mean) / deviation).unflatten(2, (len(CLASSES), -1)).permute(2, 0, 1, 3)
        border = whole.size(2) - SIZE
        self.seen, self.unseen = whole[:, :, :border].contiguous(), whole[:, :, border:].contiguous()
        self.generator = torch.Generator().manual_seed(seed)

    def batch(self, size: int):
        device, (classes, colours, height, width) = self.seen.device, self.seen.shape

        def dice(sides: int) -> torch.Tensor:
            return torch.randint(sides, (size, 1, 1), generator=self.generator).to(device)

        labels, top, left, mirrored = dice(classes), dice(height - SIZE + 1), dice(width - SIZE + 1), dice(2)
        line = torch.arange(SIZE, device=device)
        rows, columns = top + line[:, None], left + torch.where(mirrored == 1, line.flip(0), line)
        channels = torch.arange(colours, device=device)[:, None, None]
        pieces = self.seen[labels[..., None], channels, rows[:, None], columns[:, None]]
        return pieces, labels.flatten()

    def test_set(self):
        pieces = self.unseen.unfold(3, SIZE, SIZE // 2).permute(0, 3, 1, 2, 4)  # photo, piece, colour, row, column
        labels = torch.arange(len(CLASSES), device=pieces.device).repeat_interleave(pieces.size(1))
        return pieces.flatten(0, 1), labels


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, before: int, after: int, stride: int, activation: type[nn.Module]):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.act, self.around = activation(), nn.Identity()
        if stride > 1 or before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = self.act(self.norm1(self.conv1(x)))
        return self.act(self.norm2(self.conv2(y)) + self.around(x))


class ResNet(nn.Module):
    def __init__(self, classes: int, width: int = 16, activation: type[nn.Module] = nn.SiLU, checkpointing: bool = False):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), activation(), nn.MaxPool2d(3, 2, padding=1)
        )
        widths = [width, width, 2 * width, 4 * width]
        self.blocks = nn.ModuleList(
            Block(before, after, 1 if before == after else 2, activation) for before, after in itertools.pairwise(widths)
        )
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(4 * width, classes)
        self.checkpointing = checkpointing
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(self.pool(x).flatten(1))


def train(args: argparse.Namespace) -> list[float]:
    torch.manual_seed(args.seed)
    data = Photos(args.device, args.seed)
    model = ResNet(len(CLASSES), args.width, ACTIVATIONS[args.activation], args.checkpointing).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate, momentum=0.9, weight_decay=args.decay, nesterov=args.nesterov)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(args.steps, 1))
    scores_of = common.compiled(args, model)
    with common.Progress(args, args.steps, "images") as progress:
        for _ in range(args.steps):
            total = 0
            for _ in range(args.accumulate):
                images, labels = data.batch(args.batch_size)
                with common.autocast(args):
                    loss = F.cross_entropy(scores_of(images), labels) / args.accumulate
                loss.backward()
                total = total + loss.detach()
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            progress.step(total, args.accumulate * args.batch_size)
        losses = progress.finish()

    model.eval()
    images, labels = data.test_set()
    with torch.inference_mode():
        right = (model(images).argmax(1) == labels).float().mean().item()
    print(f"pieces of the unseen thirds told apart: {right:.0%} of {len(labels)}")
    return losses


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = common.training_parser("Trains a small ResNet on pieces of six photographs.", steps=200)
    parser.add_argument("--width", type=common.positive, default=16, metavar="N", help="channels of the first block")
    parser.add_argument("--batch-size", type=common.positive, default=32, metavar="N", help="images in one forward pass")
    parser.add_argument("--accumulate", type=common.positive, default=1, metavar="N", help="forward passes in one step")
    parser.add_argument("--rate", type=float, default=0.05, metavar="LR", help="learning rate of the first step")
    parser.add_argument("--decay", type=float, default=5e-4, metavar="X", help="weight decay")
    # Smooth by default: rounding moves no value of a SiLU far, but it can open or shut a ReLU, and then two correct devices
    # differ by 1e-3 in a gradient and by more than --check allows a few steps later.
    parser.add_argument("--activation", choices=list(ACTIVATIONS), default="silu", help="default: silu")
    parser.add_argument("--nesterov", action="store_true", help="Nesterov's momentum")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again instead of keeping them")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    return common.main(lambda argv: common.run_training(parse_arguments(argv), train), argv)


if __name__ == "__main__":
    sys.exit(main())
