# SPDX-License-Identifier: Apache-2.0
"""What the examples share: their options, the choice of device and mode, the progress bar, and the check against the CPU.

torch is imported inside the functions, so that a mistyped option is answered at once.
"""

import argparse
import pathlib
import sys
import time

DATA = pathlib.Path(__file__).parent / "data"
TEXT = DATA / "almanac.txt"
MODES = ["strict", "fused", "compile", "debug"]
TOLERANCE = 1e-4  # of a loss, relative, in float32
TOLERANCE_BF16 = 2e-2  # eight bits of mantissa: rounded once at 0.4 %, and 20 steps add up
READ_EVERY = 10  # steps between two looks at the loss: each look waits for the device


class UserError(Exception):
    """One line for the user."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise UserError(message)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def add_device_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="tpu", help="where the model runs (default: tpu)")
    parser.add_argument("--mode", choices=MODES, default="strict", help="how it runs there (default: strict)")


def training_parser(description: str, steps: int) -> Parser:
    parser = Parser(description=description)
    add_device_options(parser)
    parser.add_argument("--steps", type=natural, default=steps, metavar="N", help=f"training steps (default: {steps})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of weights, data order and dropout")
    parser.add_argument("--clip", type=float, default=1.0, metavar="NORM", help="gradients are clipped to it; 0: not at all")
    parser.add_argument("--autocast", action="store_true", help="matrix products in bfloat16")
    parser.add_argument("--check", action="store_true", help="repeat on the CPU and compare; exit code 1 if it differs")
    return parser


def use_device(args: argparse.Namespace) -> None:
    """Makes args.device a torch.device and sets the mode there."""
    import torch

    try:
        device = torch.device(args.device)
        torch.zeros(1).to(device)  # a device that names nothing says so here
    except (RuntimeError, AssertionError) as error:  # a CUDA-less torch asserts
        raise UserError(f"cannot use the device {args.device!r}: {str(error).splitlines()[0]}") from None
    if device.type == "tpu" and args.mode != "compile":
        try:
            torch.tpu.set_eager_mode(args.mode)
        except ValueError as error:
            raise UserError(f"cannot use the mode {args.mode!r}: {error}") from None
    args.device = device


def on_cpu(args: argparse.Namespace) -> argparse.Namespace:
    """The same run on the CPU, eagerly and without leaving anything behind."""
    import torch

    return argparse.Namespace(**{**vars(args), "device": torch.device("cpu"), "mode": "strict", "save": None})


def compiled(args: argparse.Namespace, function):
    """The function or module, compiled if the mode says so. Parameters and state stay those of the original."""
    import torch

    if args.mode != "compile":
        return function
    backend = "tpu" if args.device.type == "tpu" else "inductor"
    if backend not in torch._dynamo.list_backends(exclude_tags=None):
        raise UserError(f"torch.compile has no backend {backend!r} here")
    return torch.compile(function, backend=backend, dynamic=False)


def autocast(args: argparse.Namespace):
    import torch

    return torch.autocast(args.device.type, enabled=args.autocast)  # the default type is bfloat16


def read_text(path: pathlib.Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UserError(f"{path} is not a UTF-8 text file")
    return text


class Progress:
    """A bar with the loss and how many items a second, the first step (which compiles) left out of the rate.

    The losses stay on the device, and only every READ_EVERY-th step looks at one.
    """

    def __init__(self, args: argparse.Namespace, total: int, items: str, first: int = 0):
        from tqdm import tqdm

        self.items, self.losses, self.rate = items, [], 0.0
        self._count, self._start = 0, None
        self._title = f"on {args.device}, {args.mode}"
        self._bar = tqdm(total=total, initial=first, desc=self._title, unit="step")

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._bar.close()

    def step(self, loss, items: int) -> None:
        self.losses.append(loss.detach())
        self._count += items if self._start is not None else 0
        if len(self.losses) == 1 or len(self.losses) % READ_EVERY == 0:
            self._look()
        self._bar.update()

    def _look(self) -> None:
        value = self.losses[-1].item()
        now = time.perf_counter()
        if self._start is None:
            self._start = now
        else:
            self.rate = self._count / (now - self._start)
        self._bar.set_postfix_str(f"loss={value:.4f}, {self.items}/s={self.rate:.0f}")

    def finish(self) -> list[float]:
        """The losses as numbers; prints what came of it."""
        import torch

        if not self.losses:
            return []
        self._look()
        values = torch.stack(self.losses).tolist()
        rate = f", {self.rate:.0f} {self.items} a second" if len(values) > 1 else ""
        self._bar.close()
        print(f"{self._title}: {len(values)} steps, loss {values[0]:.4f} to {values[-1]:.4f}{rate}")
        return values


def compare_losses(args: argparse.Namespace, losses: list[float], reference: list[float]) -> bool:
    worst = max((abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True)), default=0.0)
    print(f"largest relative difference of the losses between {args.device} and cpu: {worst:.2e}")
    return worst <= (TOLERANCE_BF16 if args.autocast else TOLERANCE)  # a NaN is not within anything


def run_training(args: argparse.Namespace, train) -> int:
    """Trains, with --check on the CPU as well. The exit code: 1 when the losses differ."""
    use_device(args)
    losses = train(args)
    if args.check and not compare_losses(args, losses, train(on_cpu(args))):
        return 1
    return 0


def main(run, argv: list[str] | None = None) -> int:
    try:
        return run(argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
