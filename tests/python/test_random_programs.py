# SPDX-License-Identifier: Apache-2.0
"""Random programs give the same values in strict, fused and captured execution and on the CPU (see random_programs.py)."""

import os
import pathlib

import pytest
import torch

import random_programs

PROGRAMS = int(os.environ.get("TORCH_TPU_RANDOM_PROGRAMS", "2000"))
# A program of several operations is compiled for each of them: by default for some of them only.
FUSED_PROGRAMS = int(os.environ.get("TORCH_TPU_RANDOM_FUSED_PROGRAMS", "150"))
CHUNK = 100

# In one program XLA's CPU compiler makes fused multiply-adds (a * b + c) and its algebraic simplifier rewrites chains
# (a / b / c, exp(a) * exp(b), a / sqrt(b), a * mask.float()), which change last bits. Without both, bits are equal.
# Multiply-adds have no switch of their own: they need instructions that come with AVX2.
NO_CONTRACTION = "--xla_cpu_max_isa=AVX --xla_disable_hlo_passes=algsimp"


def chunks(n):
    return [range(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)]


@pytest.mark.parametrize("seeds", chunks(PROGRAMS), ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_strict_gives_the_cpus_values(seeds):
    random_programs.check_seeds(seeds, random_programs.check_strict)


@pytest.mark.parametrize("seeds", chunks(FUSED_PROGRAMS // 3), ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_fused_and_captured_give_stricts_values(seeds):
    before = torch.tpu.counters()["composed"]
    captured = random_programs.check_seeds(seeds, lambda p: random_programs.check_entrances(p, same_bits=False))
    assert torch.tpu.counters()["composed"] - before > 2 * len(seeds)
    assert sum(captured) > len(seeds) // 4


@pytest.mark.parametrize("seeds", chunks(FUSED_PROGRAMS - FUSED_PROGRAMS // 3), ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_fused_and_captured_give_stricts_bits_without_contraction(seeds, run_python):
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import random_programs
first, last = int(sys.argv[2]), int(sys.argv[3])
random_programs.check_seeds(range(first, last), lambda p: random_programs.check_entrances(p, same_bits=True))
"""
    offset = FUSED_PROGRAMS // 3
    here = str(pathlib.Path(__file__).parent)
    run_python(code, here, str(seeds.start + offset), str(seeds.stop + offset), timeout=900, XLA_FLAGS=NO_CONTRACTION)
