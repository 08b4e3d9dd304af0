# SPDX-License-Identifier: Apache-2.0
"""A small Llama: trained for a moment on the characters of a text file, then it goes on writing from a prompt.

    python examples/llama.py --steps 100 --prompt "The harbour "
    python examples/llama.py --steps 100 --sample --temperature 0.8 --top-k 10

The cache of keys and values has its full length from the start and the place of the next character is a tensor, so every
step of the decoding is the same program, and nothing waits for the device until the last character is there.
"""

import argparse
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import common
from common import UserError


def rotate(x, cos, sin):
    """Rotary embedding: turns the pairs (i, i + half) of each head by an angle that grows with the place."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    """Grouped queries: several heads of queries share one of keys and values."""

    def __init__(self, dim: int, heads: int, kv_heads: int):
        super().__init__()
        self.head = dim // heads
        self.q = nn.Linear(dim, heads * self.head, bias=False)
        self.k = nn.Linear(dim, kv_heads * self.head, bias=False)
        self.v = nn.Linear(dim, kv_heads * self.head, bias=False)
        self.out = nn.Linear(heads * self.head, dim, bias=False)

    def forward(self, x, cos, sin, places=None, mask=None, cache=None):
        q, k, v = (linear(x).unflatten(2, (-1, self.head)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            k, v = (kept.index_copy_(2, places, new) for kept, new in zip(cache, (k, v), strict=True))
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
        return self.out(x.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, kv_heads: int):
        super().__init__()
        hidden = (8 * dim // 3 + 31) // 32 * 32
        self.norm1, self.norm2 = nn.RMSNorm(dim, eps=1e-5), nn.RMSNorm(dim, eps=1e-5)
        self.attention = Attention(dim, heads, kv_heads)
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x, *where):
        x = x + self.attention(self.norm1(x), *where)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, symbols: int, layers=3, dim=256, heads=8, kv_heads=2, length=256, checkpointing=False):
        super().__init__()
        self.tokens = nn.Embedding(symbols, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, kv_heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(dim, eps=1e-5), nn.Linear(dim, symbols, bias=False)
        self.checkpointing = checkpointing
        self.cache_shape = (kv_heads, length, dim // heads)
        half = dim // heads // 2
        angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        """The scores of the next character at every place."""
        x, places = self.tokens(tokens), slice(tokens.size(1))
        for block in self.blocks:
            where = (x, self.cos[places], self.sin[places])
            x = checkpoint(block, *where, use_reentrant=False) if self.checkpointing else block(*where)
        return self.head(self.norm(x))

    def make_cache(self, batch: int):
        """Empty keys and values, a pair for each block."""
        return [tuple(self.head.weight.new_zeros(batch, *self.cache_shape) for _ in range(2)) for _ in range(len(self.blocks))]

    def decode(self, tokens, places, cache):
        """The scores after the last of these tokens, whose keys and values go to their places in the cache."""
        x = self.tokens(tokens)
        mask = torch.arange(self.cache_shape[1], device=x.device) <= places[:, None]
        for block, kept in zip(self.blocks, cache, strict=True):
            x = block(x, self.cos[places], self.sin[places], places, mask, kept)
        return self.head(self.norm(x[:, -1]))


def choose(scores, args: argparse.Namespace, generator):
    """The next token: the likeliest, or one of the top k by chance."""
    if not args.sample:
        return scores.argmax(dim=-1, keepdim=True)
    scores = scores / args.temperature
    if args.top_k:
        least = scores.topk(min(args.top_k, scores.size(-1))).values[:, -1:]
        scores = scores.masked_fill(scores < least, float("-inf"))
    return torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)


@torch.inference_mode()
def write(model: Llama, prompt: torch.Tensor, args: argparse.Namespace) -> list[int]:
    """Goes on from the prompt for args.tokens tokens."""
    decode = common.compiled(args, model.decode)
    generator = torch.Generator(args.device).manual_seed(args.seed)
    tokens = prompt.to(args.device)[None]
    places = torch.arange(tokens.size(1), device=args.device)
    cache, written = model.make_cache(1), []
    with common.autocast(args):
        for _ in range(args.tokens):
            tokens = choose(decode(tokens, places, cache), args, generator)
            written.append(tokens)
            places = places[-1:] + 1
    return torch.cat(written, dim=1)[0].tolist()


def train(args: argparse.Namespace, model: Llama, text: torch.Tensor) -> list[float]:
    torch.manual_seed(args.seed)
    dice = torch.Generator().manual_seed(args.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, betas=(0.9, 0.95))
    scores_of = common.compiled(args, model)
    with common.Progress(args, args.steps, "tokens") as progress:
        for _ in range(args.steps):
            starts = torch.randint(len(text) - args.length, (args.batch_size, 1), generator=dice)
            pieces = text[starts + torch.arange(args.length + 1)].to(args.device)
            with common.autocast(args):
                loss = F.cross_entropy(scores_of(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
            loss.backward()
            if args.clip:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            optimizer.zero_grad()
            progress.step(loss, args.batch_size * args.length)
        return progress.finish()


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = common.training_parser("Trains a small Llama on the characters of a text file and lets it write.", steps=50)
    parser.add_argument("--file", type=pathlib.Path, default=common.TEXT, help="a UTF-8 text file (default: a sample)")
    parser.add_argument("--layers", type=common.positive, default=3, metavar="N")
    parser.add_argument("--dim", type=common.positive, default=256, metavar="N")
    parser.add_argument("--heads", type=common.positive, default=8, metavar="N", help="heads of queries")
    parser.add_argument("--kv-heads", type=common.positive, default=2, metavar="N", help="heads of keys and values")
    parser.add_argument("--length", type=common.positive, default=64, metavar="N", help="characters in one piece of text")
    parser.add_argument("--batch-size", type=common.positive, default=8, metavar="N", help="pieces in one step of training")
    parser.add_argument("--rate", type=float, default=1e-3, metavar="LR", help="learning rate")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again instead of keeping them")
    parser.add_argument("--prompt", default="The harbour ", help="what the text begins with")
    parser.add_argument("--tokens", type=common.positive, default=64, metavar="N", help="characters to write")
    parser.add_argument("--sample", action="store_true", help="write by chance instead of always the likeliest")
    parser.add_argument("--temperature", type=float, default=1.0, metavar="T", help="below 1: more careful")
    parser.add_argument("--top-k", type=common.natural, default=0, metavar="N", help="among how many; 0: all")
    args = parser.parse_args(argv)
    if args.dim % args.heads or args.dim // args.heads % 2 or args.heads % args.kv_heads:
        raise UserError("--dim must be an even multiple of --heads, and --heads a multiple of --kv-heads")
    if not args.prompt:
        raise UserError("the prompt is empty")
    if args.temperature <= 0:
        raise UserError("--temperature must be above 0")
    if args.check and (args.sample or args.autocast):
        raise UserError("--check compares the likeliest characters in float32: leave out --sample and --autocast")
    return args


def run(argv: list[str] | None) -> int:
    args = parse_arguments(argv)
    text = common.read_text(args.file)
    symbols = sorted(set(text))
    if not set(args.prompt) <= set(symbols):
        raise UserError(f"the prompt has characters that {args.file} does not have")
    if len(text) <= args.length:
        raise UserError(f"{args.file} has fewer than {args.length + 1} characters")
    numbers = {symbol: i for i, symbol in enumerate(symbols)}
    text, prompt = (torch.tensor([numbers[symbol] for symbol in s]) for s in (text, args.prompt))

    common.use_device(args)
    torch.manual_seed(args.seed)
    longest = max(args.length, len(prompt) + args.tokens)
    model = Llama(len(symbols), args.layers, args.dim, args.heads, args.kv_heads, longest, args.checkpointing)
    untrained = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.to(args.device)
    losses = train(args, model, text)
    start = time.perf_counter()
    written = write(model, prompt, args)
    seconds = time.perf_counter() - start
    print(f"on {args.device}, {args.mode}: {len(written)} tokens in {seconds:.2f} s, {len(written) / seconds:.0f} a second")
    print(args.prompt + "".join(symbols[token] for token in written))

    if args.check:
        reference = common.on_cpu(args)
        same = write(model.to("cpu"), prompt, reference) == written
        model.load_state_dict(untrained)
        close = common.compare_losses(args, losses, train(reference, model, text))
        print(f"the {len(written)} tokens on {args.device} and cpu are {'the same' if same else 'different'}")
        return 0 if same and close else 1
    return 0


def main(argv: list[str] | None = None) -> int:
    return common.main(run, argv)


if __name__ == "__main__":
    sys.exit(main())
