# SPDX-License-Identifier: Apache-2.0
"""steps.cnn in JAX: the same network, loss, clipping and SGD with momentum, one jitted program a step."""

import jax
import jax.numpy as jnp
import numpy
from jax import lax

RATE, MOMENTUM, CLIP = 0.01, 0.9, 1.0


def loss_of(p, images, labels):
    def convolution(x, weight, bias):
        y = lax.conv_general_dilated(x, weight, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return jax.nn.relu(y + bias[None, :, None, None])

    x = convolution(convolution(images, p["w1"], p["b1"]), p["w2"], p["b2"])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    logits = x.reshape(x.shape[0], -1) @ p["w3"].T + p["b3"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def step(p, momentum, images, labels):
    grads = jax.grad(loss_of)(p, images, labels)
    norm = jnp.sqrt(sum((g * g).sum() for g in grads.values()))
    factor = jnp.minimum(CLIP / (norm + 1e-6), 1.0)
    momentum = {name: MOMENTUM * momentum[name] + factor * grads[name] for name in grads}
    return {name: p[name] - RATE * momentum[name] for name in p}, momentum


def make():
    """(a call that does one step, a call that waits for it)"""
    random = numpy.random.default_rng(0)
    shapes = {"w1": (32, 1, 3, 3), "b1": (32,), "w2": (64, 32, 3, 3), "b2": (64,), "w3": (10, 9216), "b3": (10,)}
    p = {name: jnp.asarray(0.05 * random.standard_normal(shape), "float32") for name, shape in shapes.items()}
    state = {"p": p, "momentum": jax.tree.map(jnp.zeros_like, p)}
    images = jnp.asarray(random.standard_normal((64, 1, 28, 28)), "float32")
    labels = jnp.asarray(random.integers(10, size=64))
    jitted = jax.jit(step, donate_argnums=(0, 1))

    def run():
        state["p"], state["momentum"] = jitted(state["p"], state["momentum"], images, labels)

    return run, lambda: jax.block_until_ready(state)
