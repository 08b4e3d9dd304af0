# SPDX-License-Identifier: Apache-2.0
"""Seeded random programs over a pool of small tensors, as lines of Python, with the ways to run, compare and shrink them.

`generate(seed)` builds a program by running each line on the CPU as it is drawn: lines that fail or leave the range of
well-conditioned numbers are drawn again. A program is the same for the same seed, whatever ran before. One-operation
programs are compiled once for each operator and geometry, so most geometries are left out, by a checksum of their line:
other values of SALT test others.
"""

import dataclasses
import os
import random
import re
import zlib

import torch
import torch.nn.functional as F

SALT = os.environ.get("TORCH_TPU_RANDOM_SALT", "0")
LARGEST = 16.0  # of float values: beyond that a cancellation loses more than upstream's absolute tolerances
SHAPES = {(), (3,), (4,), (3, 4), (4, 3), (1, 4), (3, 1), (2, 4), (2, 3, 4), (3, 3), (4, 4)}
NAME = re.compile(r"\bt\d+\b")

# How exact a value is: bits equal to the CPU's, or rounded in this dtype on the way.
PRECISION = {None: 0, torch.float64: 1, torch.float32: 2, torch.bfloat16: 3}


@dataclasses.dataclass
class Flags:
    """What may be asked of the values of a storage."""

    worst: torch.dtype | None = None  # None: bit for bit the CPU's, but for fused multiply-adds
    reordered: bool = False  # sums of several elements are in it: their order is the compiler's choice
    random: bool = False  # the device's own random numbers are in it
    computed: bool = False  # more than moves, casts and constants: what a compiler may contract or simplify

    def join(self, other: "Flags") -> "Flags":
        worst = max(self.worst, other.worst, key=PRECISION.__getitem__)
        return Flags(worst, self.reordered or other.reordered, self.random or other.random, self.computed or other.computed)


@dataclasses.dataclass
class Step:
    code: str
    outs: tuple[str, ...] = ()
    effect: str = "exact"  # exact | rounded | reduced | random
    writes: tuple[str, ...] = ()
    host: bool = False  # reads a value on the host
    grad: bool = False  # needs autograd
    computes: bool = False

    @property
    def names(self) -> set[str]:
        return set(NAME.findall(self.code))

    @property
    def ins(self) -> set[str]:
        return self.names - set(self.outs)


@dataclasses.dataclass
class Program:
    seed: int
    inputs: list[Step]
    steps: list[Step]
    flags: dict[str, Flags]

    def __str__(self):
        lines = [
            f"# seed {self.seed}",
            "import torch",
            "import torch.nn.functional as F",
            f"torch.manual_seed({self.seed})",
            "log = []",
        ]
        return "\n".join(lines + [s.code for s in self.inputs + self.steps])

    @property
    def reads_host(self) -> bool:
        return any(s.host for s in self.steps)

    @property
    def uses_grad(self) -> bool:
        return any(s.grad for s in self.inputs + self.steps)

    def __len__(self):
        return len(self.inputs) + len(self.steps)


_compiled: dict[str, object] = {}


def execute(step: Step, space: dict) -> bool:
    """False when a name of it does not exist: the step that makes it has been shrunk away."""
    if not all(name in space for name in step.ins):
        return False
    code = _compiled.get(step.code)
    if code is None:
        code = _compiled[step.code] = compile(step.code, "<step>", "exec")
        if len(_compiled) > 100_000:
            _compiled.clear()
    exec(code, space)
    return True


def new_space(device: str) -> dict:
    return {"torch": torch, "F": F, "device": device, "log": []}


# ---- generation

UNARY_EXACT = [
    "torch.neg({})",
    "torch.abs({})",
    "torch.relu({})",
    "torch.square({})",
    "{} * 0.5",
    "{} + 1.25",
    "1.5 - {}",
    "{}.clamp(-1, 2)",
    "{}.clone()",
]
UNARY_ROUNDED = [
    "torch.tanh({})",
    "torch.sigmoid({})",
    "torch.sin({})",
    "torch.cos({})",
    "torch.exp({}.clamp(max=2))",
    "torch.sqrt({}.abs() + 0.5)",
    "torch.log({}.abs() + 0.5)",
    "F.gelu({})",
    "F.silu({})",
    "torch.erf({})",
    "F.softplus({})",
    "torch.rsqrt({}.square() + 1)",
]
UNARY_STEP = [
    "torch.floor({})",
    "torch.round({})",
    "torch.sign({})",
    "{}.to(torch.int32)",
    "{}.to(torch.int64)",
    "{}.to(torch.bool)",
    "{} > 0",
    "{}.ge(1)",
]
UNARY_INT = [
    "torch.neg({})",
    "{} + 3",
    "{} * 2",
    "{}.abs()",
    "{} % 3",
    "{} // 2",
    "{}.clamp(-2, 5)",
    "{} >> 1",
    "{}.bitwise_and(3)",
    "{} == 2",
    "{}.to(torch.float32)",
    "{}.to(torch.int64)",
    "{}.to(torch.int32)",
    "{}.to(torch.bool)",
    "{}.clone()",
]
UNARY_BOOL = ["torch.logical_not({})", "{}.to(torch.float32)", "{}.to(torch.int64)", "{}.clone()", "~{}"]
BINARY = [
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "torch.maximum({}, {})",
    "torch.minimum({}, {})",
    "torch.add({}, {}, alpha=2)",
    "torch.sub({}, {}, alpha=0.5)",
]
BINARY_INT = ["{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "{} & {}", "{} ^ {}", "{} == {}", "{} < {}"]
BINARY_BOOL = ["torch.logical_and({}, {})", "{} | {}", "{} ^ {}", "{} == {}"]
MOVES = [
    "{}.clone()",
    "{}.contiguous()",
    "torch.flip({}, [0])",
    "torch.roll({}, 1, 0)",
    "torch.cat([{}, {}])[1:4]",
    "{}.detach()",
    "{}.unsqueeze(0).squeeze(0)",
]
MOVES_2D = ["{}.t().contiguous()", "torch.triu({})", "torch.tril({}, 1)", "{}.repeat(2, 1)[1:4]", "torch.rot90({})"]
VIEWS_1D = ["{}[1:]", "{}[::2]", "{}.view(-1, 1)", "{}.unsqueeze(0)", "{}.expand(3, -1)", "{}[2]", "{}.unfold(0, 2, 1)"]
VIEWS_2D = [
    "{}.t()",
    "{}[1]",
    "{}[:, 1]",
    "{}[1:]",
    "{}[:2]",
    "{}[::2]",
    "{}.reshape(-1)",
    "{}.view(-1)[:4]",
    "{}[0, 1]",
    "{}.diagonal()",
    "{}.expand(2, -1, -1)",
    "{}[:, 1:]",
    "{}.as_strided((2, 4), (4, 1), 4)",
    "{}.as_strided((3,), (5,), 0)",
]
VIEWS_3D = ["{}[0]", "{}[1]", "{}.transpose(1, 2)[0]", "{}[:, 0]", "{}.select(1, 2)", "{}.flatten(0, 1)[2:5]"]
REDUCE = [
    "{}.sum()",
    "{}.mean()",
    "{}.sum(0)",
    "{}.mean(-1)",
    "{}.sum(-1, keepdim=True)",
    "{}.cumsum(0)",
    "F.softmax({}, -1)",
    "F.log_softmax({}, -1)",
    "{}.logsumexp(-1)",
    "{}.square().sum().sqrt()",
]
ORDERLESS = ["{}.amax(0)", "{}.amin(-1)", "{}.max()", "{}.amax(-1, keepdim=True)"]
INPLACE_FLOAT = [
    "{0}.add_(1.25)",
    "{0}.mul_(0.5)",
    "{0}.neg_()",
    "{0}.relu_()",
    "{0}.clamp_(-1, 2)",
    "{0}.zero_()",
    "{0}.fill_(0.75)",
]
INPLACE_ROUNDED = ["{0}.tanh_()", "{0}.sigmoid_()"]
INPLACE_INT = ["{0}.add_(3)", "{0}.neg_()", "{0}.clamp_(-2, 5)", "{0}.zero_()", "{0}.fill_(2)"]
INPLACE_BINARY = [
    "{0}.add_({1})",
    "{0}.sub_({1}, alpha=2)",
    "{0}.mul_({1})",
    "{0}.copy_({1})",
    "{0}[:1] = {1}[:1]",
    "{0}[-1] = {1}[0]",
    "torch.add({1}, 0.5, out={0})",
    "torch.mul({1}, {1}, out={0})",
]
ERRORS = [
    ("torch.ones(3, device=device) + {}.new_zeros(5)", "RuntimeError"),
    ("{}.view(7, 11)", "RuntimeError"),
    ("torch.matmul({}.new_zeros(2, 3), {}.new_zeros(2, 3))", "RuntimeError"),
    ("torch.cat([{}.new_zeros(2, 3), {}.new_zeros(2, 2)])", "RuntimeError"),
    ("{}.sum(7)", "IndexError"),
    ("{}.expand(5, 5, 5, 5)[9]", "(RuntimeError, IndexError)"),
    ("{}.add_(torch.ones(7, 5, 3, 2, device=device))", "RuntimeError"),
]
RANDOM = [
    "torch.rand(3, 4, device=device)",
    "torch.randn(3, 4, device=device)",
    "torch.randn(4, device=device)",
    "torch.bernoulli(torch.full((3, 4), 0.5, device=device))",
    "torch.rand_like({})",
    "F.dropout({}, 0.5)",
    "torch.randint(0, 5, (3, 4), device=device)",
    "torch.randperm(4, device=device)",
    "torch.randn_like({})",
]
RANDOM_INPLACE = ["{0}.uniform_(-1, 1)", "{0}.normal_()", "{0}.bernoulli_(0.5)"]
FOREACH = [
    "torch._foreach_add([{0}, {1}], 1.5)",
    "torch._foreach_mul([{0}, {1}], 0.5)",
    "torch._foreach_neg([{0}, {1}])",
    "torch._foreach_mul([{0}, {1}], [{1}, {0}])",
]
FOREACH_INPLACE = [
    "torch._foreach_add_([{0}, {1}], 0.5)",
    "torch._foreach_mul_([{0}, {1}], 0.5)",
    "torch._foreach_neg_([{0}, {1}])",
    "torch._foreach_zero_([{0}, {1}])",
]


def _overlaps(t: torch.Tensor) -> bool:
    """Whether two of its elements may be the same memory."""
    if t.numel() < 2:
        return False
    offsets = sum(
        torch.arange(n).mul(s).reshape([-1 if i == d else 1 for i in range(t.dim())])
        for d, (n, s) in enumerate(zip(t.shape, t.stride(), strict=True))
    )
    return offsets.unique().numel() < t.numel()


class Generator:
    def __init__(self, seed: int):
        self.seed = seed
        self.rng = random.Random(f"{SALT}/{seed}")
        self.pure = self.rng.random() < 0.5  # elementwise and movement only
        self.with_grad = not self.pure and self.rng.random() < 0.4
        self.with_host = self.rng.random() < 0.4
        self.with_random = self.rng.random() < 0.3
        self.main_dtype = self.rng.choice([torch.float32] * 8 + [torch.float64, torch.bfloat16])
        self.next_name = 0
        self.inputs: list[Step] = []
        self.steps: list[Step] = []
        self.space = new_space("cpu")
        self.flags: dict[str, Flags] = {}

    # ---- the pool

    def fresh(self, n: int = 1) -> tuple[str, ...]:
        first, self.next_name = self.next_name, self.next_name + n
        return tuple(f"t{i}" for i in range(first, first + n))

    def tensors(self) -> dict[str, torch.Tensor]:
        return {k: v for k, v in self.space.items() if NAME.fullmatch(k)}

    def pick(self, accept=lambda t: True, not_in: tuple[str, ...] = ()) -> str | None:
        found = [n for n, t in self.tensors().items() if n not in not_in and accept(t)]
        return self.rng.choice(found) if found else None

    def float_name(self, accept=lambda t: True):
        return self.pick(lambda t: t.is_floating_point() and accept(t))

    def may_compute(self, name: str) -> bool:
        """A bfloat16 that may already differ in its last bit is only moved."""
        return self.flags[name].worst != torch.bfloat16

    def far_from_steps(self, name: str) -> bool:
        """Whether a jump of an operator cannot fall between this device's value and another's."""
        flags = self.flags[name]
        if flags.random or flags.reordered:
            return False
        t = self.space[name].detach().double()
        if flags.worst is None and not (flags.computed and t.is_floating_point()):
            return True
        if flags.worst is None and bool((t * 1024 == (t * 1024).round()).all()):
            return True  # no operation before it has rounded
        near = (t * 2 - (t * 2).round()).abs() / 2
        return bool((near > 0.01).all())

    def writable(self, name: str, *others: str) -> bool:
        t = self.space[name]
        if _overlaps(t) or (t.requires_grad and not self.rng.random() < 0.3):
            return False
        return all(o == name or self.space[o].untyped_storage()._cdata != t.untyped_storage()._cdata for o in others)

    # ---- lines

    def data(self, shape: tuple[int, ...], dtype: torch.dtype) -> str:
        n = 1
        for s in shape:
            n *= s
        if dtype == torch.bool:
            values = [self.rng.random() < 0.5 for _ in range(n)]
        elif dtype.is_floating_point:
            values = [self.rng.randint(-24, 24) / 8 for _ in range(n)]
        else:
            values = [self.rng.randint(-5, 5) for _ in range(n)]
        return f"torch.tensor({values}, dtype={dtype}).reshape({shape}).to(device)"

    def make_inputs(self):
        dtypes = [self.main_dtype, self.main_dtype, self.main_dtype, torch.float32, torch.int64, torch.bool]
        shapes = [(3, 4), (3, 4), (4,), (3, 4), (3, 4), (3, 4)]
        for shape, dtype in zip(shapes, dtypes, strict=True):
            (name,) = self.fresh()
            code = f"{name} = {self.data(shape, dtype)}"
            grad = self.with_grad and dtype.is_floating_point and self.rng.random() < 0.5
            self.inputs.append(Step(code + (".requires_grad_()" if grad else ""), (name,), grad=grad))

    def propose(self) -> Step | None:
        kinds = {
            "unary": 10,
            "binary": 12,
            "view": 10,
            "move": 6,
            "inplace": 10,
            "cast": 2,
            "create": 3,
            "index": 5,
            "where": 3,
            "error": 2,
            "drop": 3,
            "save": 2,
            "foreach": 3,
            "compare": 2,
        }
        if not self.pure:
            kinds |= {"reduce": 5, "matmul": 4}
        if self.with_host:
            kinds |= {"host": 3}
        if self.with_random:
            kinds |= {"random": 4}
        if self.with_grad:
            kinds |= {"backward": 3}
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        step = getattr(self, "step_" + kind)()
        if step:
            step.computes = kind not in ("view", "move", "where", "save", "drop", "cast", "create", "compare", "error")
        return step

    def of(self, template: str, *names: str, effect: str = "exact") -> Step:
        (out,) = self.fresh()
        return Step(f"{out} = " + template.format(*names), (out,), effect)

    def step_unary(self):
        name = self.pick()
        t = self.space[name]
        if not self.may_compute(name):
            return None
        if t.dtype == torch.bool:
            return self.of(self.rng.choice(UNARY_BOOL), name)
        if not t.is_floating_point():
            return self.of(self.rng.choice(UNARY_INT), name)
        if self.rng.random() < 0.15:
            return self.of(self.rng.choice(UNARY_STEP), name) if self.far_from_steps(name) else None
        if self.rng.random() < 0.5:
            return self.of(self.rng.choice(UNARY_EXACT), name)
        return self.of(self.rng.choice(UNARY_ROUNDED), name, effect="rounded")

    def step_binary(self):
        a, b = self.pick(), self.pick()
        if not (self.may_compute(a) and self.may_compute(b)):
            return None
        kinds = {self.space[n].dtype for n in (a, b)}
        if kinds == {torch.bool}:
            return self.of(self.rng.choice(BINARY_BOOL), a, b)
        if not any(k.is_floating_point for k in kinds):
            return self.of(self.rng.choice(BINARY_INT), a, b)
        if self.rng.random() < 0.1 and self.space[b].is_floating_point() and bool((self.space[b].detach().abs() > 0.25).all()):
            return self.of("{} / {}", a, b)
        if torch.bool in kinds:
            return self.of("{} * {}", a, b)
        if self.rng.random() < 0.1:
            return self.of("torch.lerp({0}, {1}, 0.5)", a, b, effect="rounded") if len(kinds) == 1 else None
        return self.of(self.rng.choice(BINARY), a, b)

    def step_compare(self):
        a = self.float_name()
        if not a or not self.far_from_steps(a):
            return None
        b = self.float_name(lambda t: t.shape == self.space[a].shape)
        if not b or not self.far_from_steps(b) or (self.flags[a].worst or self.flags[b].worst):
            return self.of("{} > 0.125", a)
        return self.of(self.rng.choice(["{} < {}", "{} >= {}", "torch.eq({}, {})"]), a, b)

    def step_view(self):
        name = self.pick(lambda t: t.dim() in (1, 2, 3))
        if not name:
            return None
        t = self.space[name]
        if t.dim() == 2 and t.shape[0] == 3 and not self.with_grad and self.rng.random() < 0.1:
            outs = self.fresh(3)
            return Step(f"{', '.join(outs)} = {name}.unbind(0)", outs)
        return self.of(self.rng.choice([VIEWS_1D, VIEWS_2D, VIEWS_3D][t.dim() - 1]), name)

    def step_move(self):
        name = self.pick(lambda t: t.dim() > 0)
        t = self.space[name]
        if t.dim() == 2 and self.rng.random() < 0.5:
            return self.of(self.rng.choice(MOVES_2D), name)
        if self.rng.random() < 0.3:
            other = self.pick(lambda o: o.shape == t.shape)
            return self.of(
                self.rng.choice(["torch.stack([{}, {}])", "torch.cat([{}, {}])[1:4]", "torch.stack([{0}, {1}], -1)[..., 1]"]),
                name,
                other,
            )
        return self.of(self.rng.choice(MOVES).replace("{}, {}", "{0}, {0}"), name)

    def step_cast(self):
        name = self.pick()
        if not self.may_compute(name):
            return None
        target = self.rng.choice(["float32", "float32", "float64", "bfloat16"])
        effect = "exact" if self.flags[name].worst is None else "rounded"
        return self.of(f"{{}}.to(torch.{target})", name, effect=effect)

    def step_create(self):
        shape = self.rng.choice([(3, 4), (4,), (3, 4)])
        dtype = self.rng.choice([self.main_dtype, self.main_dtype, torch.int64])
        return self.of(
            self.rng.choice(
                [
                    f"torch.zeros({shape}, dtype={dtype}, device=device)",
                    f"torch.full({shape}, 0.5, device=device)",
                    f"torch.arange(4, dtype={dtype}, device=device)",
                    f"torch.ones({shape}, dtype={dtype}, device=device)",
                    f"torch.eye(3, 4, dtype={dtype}, device=device)",
                    self.data(shape, dtype),
                    f"torch.full_like({self.pick(lambda t: t.shape == (3, 4))}, 1)",
                    "torch.linspace(-1, 1, 4, device=device)" if not self.pure else "torch.ones(4, device=device)",
                ]
            )
        )

    def step_index(self):
        name = self.pick(lambda t: t.dim() == 2 and t.shape[0] == 3)
        if not name:
            return None
        i = [self.rng.randint(0, 2) for _ in range(3)]
        index = f"torch.tensor({i}, device=device)"
        t = self.space[name]
        mask = self.pick(lambda m: m.dtype == torch.bool and m.shape == t.shape)
        choices = [
            f"{{}}.index_select(0, {index})",
            f"{{}}[{index}]",
            f"{{}}.gather(0, {index}.unsqueeze(1).expand(-1, {t.shape[1]}))",
            f"{{}}[{index}, 1]",
        ]
        if mask and t.dtype != torch.bool:
            choices += [f"{{}}.masked_fill({mask}, 1)"] * 2
        if not t.is_complex() and self.writable(name):
            writes = [f"{name}[{index}] = 1", f"{name}.index_fill_(0, {index}, 0)"]
            writes += [f"{name}.masked_fill_({mask}, 1)", f"{name}[{mask}] = 0"] * 2 if mask and mask != name else []
            if len(set(i)) == 3:
                writes += [
                    f"{name}[{index}] = {name}.flip(0)",
                    f"{name}.index_copy_(0, {index}, {name} * 1)",
                    f"{name}.index_add_(0, {index}, {name} * 1)",
                ]
            if self.rng.random() < 0.5:
                return Step(self.rng.choice(writes), writes=(name,))
        return self.of(self.rng.choice(choices), name)

    def step_where(self):
        mask = self.pick(lambda t: t.dtype == torch.bool)
        if not mask:
            return None
        a = self.pick()
        b = self.pick(lambda t: t.shape == self.space[a].shape and t.dtype == self.space[a].dtype)
        return self.of(self.rng.choice(["torch.where({}, {}, {})", "torch.where({}, {}, 0)"]), mask, a, b)

    def step_inplace(self):
        name = self.pick()
        t = self.space[name]
        if not self.writable(name) or not self.may_compute(name) or t.dtype == torch.bool:
            return None
        if self.rng.random() < 0.5:
            other = self.pick(lambda o: torch.can_cast(o.dtype, t.dtype) and o.dim() <= t.dim())
            if (
                not other
                or not self.writable(name, other)
                or not self.may_compute(other)
                or self.space[other].dtype == torch.bool
            ):
                return None
            template = self.rng.choice(INPLACE_BINARY)
            if ("[" in template or "out=" in template) and (self.space[other].shape != t.shape or t.dim() == 0):
                return None
            if "0.5" in template and not t.is_floating_point():
                return None
            return Step(template.format(name, other), writes=(name,))
        if not t.is_floating_point():
            return Step(self.rng.choice(INPLACE_INT).format(name), writes=(name,))
        if self.rng.random() < 0.25:
            return Step(self.rng.choice(INPLACE_ROUNDED).format(name), effect="rounded", writes=(name,))
        return Step(self.rng.choice(INPLACE_FLOAT).format(name), writes=(name,))

    def step_foreach(self):
        a = self.float_name(lambda t: not t.requires_grad)
        b = a and self.float_name(
            lambda t: t.shape == self.space[a].shape and t.dtype == self.space[a].dtype and not t.requires_grad
        )
        if not b or not (self.may_compute(a) and self.may_compute(b)):
            return None
        if self.rng.random() < 0.5 and self.writable(a, b) and self.writable(b, a) and a != b:
            return Step(self.rng.choice(FOREACH_INPLACE).format(a, b), writes=(a, b))
        outs = self.fresh(2)
        return Step(f"{', '.join(outs)} = " + self.rng.choice(FOREACH).format(a, b), outs)

    def step_reduce(self):
        name = self.float_name(lambda t: t.dim() > 0)
        if not name or not self.may_compute(name):
            return None
        if self.rng.random() < 0.25:
            return self.of(self.rng.choice(ORDERLESS), name)
        return self.of(self.rng.choice(REDUCE), name, effect="reduced")

    def step_matmul(self):
        a = self.float_name(lambda t: t.dim() == 2)
        if not a or not self.may_compute(a):
            return None
        dtype = self.space[a].dtype
        b = self.float_name(lambda t: t.dim() in (1, 2) and t.dtype == dtype and t.shape[-1] == self.space[a].shape[1])
        if not b or not self.may_compute(b):
            return None
        template = "{} @ {}.t()" if self.space[b].dim() == 2 else "torch.mv({}, {})"
        return self.of(f"({template}) * 0.125" if self.rng.random() < 0.5 else template, a, b, effect="reduced")

    def step_random(self):
        name = self.float_name(lambda t: t.shape == (3, 4))
        if name and self.rng.random() < 0.3 and self.writable(name) and not self.space[name].requires_grad:
            return Step(self.rng.choice(RANDOM_INPLACE).format(name), effect="random", writes=(name,))
        template = self.rng.choice(RANDOM)
        if "{}" in template and not name:
            return None
        return self.of(template, name, effect="random")

    def element(self, name: str) -> str:
        return f"{name}.reshape(-1)[{self.rng.randrange(min(self.space[name].numel(), 3))}].item()"

    def step_host(self):
        name = self.pick(lambda t: t.numel() > 0)
        if not self.far_from_steps(name) or self.flags[name].worst == torch.bfloat16:
            return None
        other = self.float_name()
        (out,) = self.fresh()
        i = self.element(name)
        dtype = self.space[name].dtype
        codes = [
            f"if {i} > 0:\n    {out} = {other} * 2\nelse:\n    {out} = -{other}",
            f"{out} = {other}\nfor _ in range(int(abs({i})) % 3):\n    {out} = {out} * 0.5 + 1",
            f"log.append({i})\n{out} = {other} * 0.5",
        ]
        if dtype == torch.bool:
            codes = [
                f"if {name}.any():\n    {out} = {other} + 1\nelse:\n    {out} = {other} - 1",
                f"{out} = {name}.nonzero()[:1].sum(0)",
                f"log.append(len({name}.nonzero()))\n{out} = {name}.clone()",
                f"{out} = torch.masked_select({name}, {name})[:0].sum()",
            ]
        if not self.may_compute(other):
            return None
        return Step(self.rng.choice(codes), (out,), host=True)

    def step_error(self):
        code, kind = self.rng.choice(ERRORS)
        name = self.pick()
        text = code.replace("{}", name)
        return Step(f"try:\n    {text}\n    log.append('no error')\nexcept {kind}:\n    log.append('error')")

    def step_drop(self):
        if len(self.tensors()) < 6:
            return None
        return Step(f"del {self.pick()}")

    def step_save(self):
        name = self.pick()
        return self.of(self.rng.choice(["{}", "{}.detach()", "{}.view_as({})".replace("{}", "{0}")]), name)

    def step_backward(self):
        name = self.pick(lambda t: t.requires_grad and t.is_floating_point())
        if not name or not self.may_compute(name):
            return None
        loss = self.rng.choice(["{}.sum()", "{}.square().mean()", "({} * 0.25).sum()"]).format(name)
        return Step(f"{loss}.backward(retain_graph=True)", grad=True)

    # ---- acceptance

    def replay(self):
        self.space = new_space("cpu")
        torch.manual_seed(self.seed)
        for s in self.inputs + self.steps:
            execute(s, self.space)

    def signature_kept(self, step: Step, kept: int) -> bool:
        """Thins out the lines by what the compiler sees of them."""

        def geometry(match):
            t = self.space.get(match.group())
            if t is None:
                return "out"
            return f"<{t.dtype} {tuple(t.shape)} {t.stride()} {t.storage_offset()} {t.untyped_storage().nbytes()}>"

        if step.code.startswith(("del ", "try:", "log")):
            return True
        text = NAME.sub(geometry, step.code)
        plain = "torch.float32 (3, 4) (4, 1) 0 48" in text and text.count("<") == text.count(
            "<torch.float32 (3, 4) (4, 1) 0 48"
        )
        return plain or zlib.crc32((SALT + re.sub(r"tensor\(\[[^]]*\]", "data", text)).encode()) % 100 < kept

    def well_formed(self, t) -> bool:
        if not isinstance(t, torch.Tensor) or tuple(t.shape) not in SHAPES:
            return False
        if t.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.bool):
            return False
        v = t.detach()
        if t.is_floating_point():
            return bool(v.isfinite().all()) and (v.numel() == 0 or bool(v.abs().max() <= LARGEST))
        return t.dtype == torch.bool or v.numel() == 0 or bool(v.abs().max() <= 1 << 20)

    def note_flags(self, step: Step):
        """Flags of what the step made or wrote: those of what it read, and its own."""
        joined = Flags()
        for n in step.ins:
            joined = joined.join(self.flags[n])
        joined.computed |= step.computes
        if step.effect == "random":
            joined.random = True
        if step.effect == "reduced":
            joined.reordered = True
        for n in set(step.outs + step.writes):
            t = self.space[n]
            flags = dataclasses.replace(joined)
            if step.effect in ("rounded", "reduced") and t.is_floating_point():
                flags = flags.join(Flags(t.dtype))
            elif flags.worst and t.is_floating_point() and PRECISION[t.dtype] > PRECISION[flags.worst]:
                flags.worst = t.dtype
            if not t.is_floating_point() and not flags.random:
                flags = Flags()  # integers are exact, and floats were far from where they jump
            storage = t.untyped_storage()._cdata
            for other, o in self.tensors().items():  # aliases, old and new
                if o.untyped_storage()._cdata == storage:
                    self.flags[other] = self.flags.get(other, Flags()).join(flags)

    def run(self) -> Program:
        self.make_inputs()
        self.replay()
        for s in self.inputs:
            self.flags[s.outs[0]] = Flags()
        goal = self.rng.randint(5, 40) - len(self.inputs)
        tries = 0
        while len(self.steps) < max(goal, 3) and tries < 4000:
            tries += 1
            step = self.propose()
            if step is None or not self.signature_kept(step, KEPT):
                continue
            try:
                complete = execute(step, self.space)
                good = complete and all(self.well_formed(t) for t in self.tensors().values())
            except Exception:
                good = False
            if not good:
                self.replay()
                continue
            self.note_flags(step)
            self.steps.append(step)
        return Program(self.seed, self.inputs, self.steps, self.flags)


KEPT = int(os.environ.get("TORCH_TPU_RANDOM_KEPT", "8"))  # lines of 100


def generate(seed: int) -> Program:
    with torch.random.fork_rng(devices=[]):
        return Generator(seed).run()


# ---- running


@dataclasses.dataclass
class Outcome:
    values: dict[str, torch.Tensor]  # on the CPU
    grads: dict[str, torch.Tensor]
    layouts: dict[str, tuple]  # dtype, sizes, strides where there is more than one element
    aliases: dict[str, str]  # the first name that shares the storage
    log: list


def _outcome(space: dict) -> Outcome:
    tensors = {k: v for k, v in space.items() if NAME.fullmatch(k)}
    first: dict[int, str] = {}
    aliases = {k: first.setdefault(t.untyped_storage()._cdata, k) for k, t in tensors.items()}
    layouts = {
        k: (t.dtype, tuple(t.shape), tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1))
        for k, t in tensors.items()
    }
    values = {k: t.detach().to("cpu", copy=True) for k, t in tensors.items()}
    grads = {k: t.grad.detach().to("cpu", copy=True) for k, t in tensors.items() if t.is_leaf and t.grad is not None}
    return Outcome(values, grads, layouts, aliases, space["log"])


def run_eager(program: Program, device: str) -> Outcome:
    space = new_space(device)
    torch.manual_seed(program.seed)
    for step in program.inputs + program.steps:
        execute(step, space)
    return _outcome(space)


def run_captured(program: Program, calls: int = 2) -> list[Outcome]:
    """The inputs are made in eager, the rest is captured and called on inputs made anew each time."""
    from torch_tpu import _C

    names: list[str] = []
    log: list = []

    def function(*inputs):
        space = new_space("tpu") | dict(zip(given, inputs, strict=True))
        for step in program.steps:
            execute(step, space)
        names[:] = [k for k in space if NAME.fullmatch(k)]
        log[:] = space["log"]
        return [space[k] for k in names]

    def fresh() -> dict:
        space = new_space("tpu")
        torch.manual_seed(program.seed)
        for step in program.inputs:
            execute(step, space)
        return space

    start = fresh()
    given = [k for k in start if NAME.fullmatch(k)]
    graph = _C.capture(function, [start[k] for k in given])
    outcomes = []
    for _ in range(calls):
        start = fresh()
        results = graph.call([start[k] for k in given])
        assert results is not None, "the geometry of the inputs is that of the capture"
        outcomes.append(_outcome(dict(zip(names, results, strict=True)) | {"log": list(log)}))
    return outcomes


# ---- comparing


def _compare_logs(got: list, expected: list):
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        assert g == e if isinstance(e, str) else abs(g - e) <= 1e-4 * max(1, abs(e)), f"log: {got} against {expected}"


def compare_with_cpu(program: Program, expected: Outcome, got: Outcome):
    assert got.layouts == expected.layouts
    assert got.aliases == expected.aliases
    _compare_logs(got.log, expected.log)
    for name, value in expected.values.items():
        flags = program.flags[name]
        if flags.random:
            continue
        torch.testing.assert_close(
            got.values[name], value, msg=lambda m, name=name: f"{name} against the CPU: {m}", **_tolerance(flags, value)
        )
    assert got.grads.keys() == expected.grads.keys()
    if any(f.random for f in program.flags.values()):
        return
    for name, value in expected.grads.items():
        torch.testing.assert_close(got.grads[name], value, msg=lambda m, name=name: f"{name}.grad against the CPU: {m}")


def bits(t: torch.Tensor) -> torch.Tensor:
    words = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
    return t.contiguous().view(words[t.element_size()]) if t.dtype != torch.bool else t


def compare_entrances(program: Program, strict: Outcome, got: Outcome, what: str, same_bits: bool):
    assert got.layouts == strict.layouts, what
    assert got.aliases == strict.aliases, what
    _compare_logs(got.log, strict.log)
    for name, value in strict.values.items():
        flags = program.flags[name]
        if flags.reordered or (not same_bits and flags.computed and value.is_floating_point()):
            torch.testing.assert_close(
                got.values[name],
                value,
                msg=lambda m, name=name: f"{name} in {what} against strict: {m}",
                **_tolerance(flags, value),
            )
        else:
            same = torch.equal(bits(got.values[name]), bits(value))
            assert same, f"bits of {name} in {what} against strict: {got.values[name]} against {value}"
    assert got.grads.keys() == strict.grads.keys()
    for name, value in strict.grads.items():
        torch.testing.assert_close(
            got.grads[name], value, msg=lambda m, name=name: f"{name}.grad in {what} against strict: {m}"
        )


def _tolerance(flags: Flags, value: torch.Tensor) -> dict:
    """Upstream's for the least precise dtype that the value has been rounded in."""
    if flags.worst and value.is_floating_point() and PRECISION[flags.worst] > PRECISION[value.dtype]:
        rtol, atol = torch.testing._comparison.default_tolerances(torch.empty(0, dtype=flags.worst))
        return {"rtol": rtol, "atol": atol}
    return {}


# ---- shrinking


def shrink(program: Program, fails) -> Program:
    """Leaves out steps as long as `fails(program)` stays true."""
    changed = True
    while changed:
        changed = False
        for part in ("steps", "inputs"):
            i = len(getattr(program, part)) - 1
            while i >= 0:
                steps = getattr(program, part)
                smaller = dataclasses.replace(program, **{part: steps[:i] + steps[i + 1 :]})
                if fails(smaller):
                    program, changed = smaller, True
                i -= 1
    return program


# ---- checks

# What a capture refuses besides host reads: an uploaded constant cannot be told from a tensor of somebody else's.
REFUSED = ("a tensor that is not an input is written",)


def check_strict(program: Program):
    compare_with_cpu(program, run_eager(program, "cpu"), run_eager(program, "tpu"))


def check_entrances(program: Program, same_bits: bool) -> int:
    """Fused three times (records, learned, reused) and captured, against strict. 1 when it could be captured."""
    from torch_tpu import _C

    strict = run_eager(program, "tpu")
    with torch.tpu.set_eager_mode("fused"):
        for i in range(3):
            compare_entrances(program, strict, run_eager(program, "tpu"), f"fused run {i + 1}", same_bits)
    if program.uses_grad:
        return 0
    try:
        outcomes = run_captured(program)
    except _C.CaptureError as refused:
        assert program.reads_host or any(why in str(refused) for why in REFUSED), f"not captured: {refused}"
        return 0
    assert not program.reads_host
    for i, outcome in enumerate(outcomes):
        compare_entrances(program, strict, outcome, f"capture, call {i + 1}", same_bits)
    return 1


def check_seeds(seeds, check) -> list:
    """What `check` returns of each program; the first that fails is shrunk and raised as the program it is."""
    results = []
    for seed in seeds:
        program = generate(seed)
        try:
            results.append(check(program))
        except Exception as error:
            kind = type(error)

            def fails(smaller: Program, kind=kind) -> bool:
                try:
                    check(smaller)
                except Exception as e:
                    return type(e) is kind
                return False

            if not fails(program):
                raise AssertionError(f"once, not when repeated: {error}\n{program}") from error
            program = shrink(program, fails)
            try:
                check(program)
            except Exception as e:
                error = e
            raise AssertionError(f"{error}\n\n{program}") from error
    return results
