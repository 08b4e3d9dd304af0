# SPDX-License-Identifier: Apache-2.0
"""Value-dependent mistakes: the exception that the CPU raises, at the next read or synchronize, in debug mode at the call;
never silence.
"""

import pytest
import torch
from torch.nn import functional

DEVICE = "tpu"
X = torch.arange(12.0).reshape(4, 3)


def ints(device, *values, shape=None):
    t = torch.tensor(values, device=device)
    return t if shape is None else t.reshape(shape)


MISTAKES = {
    "index": lambda d: X.to(d)[ints(d, 0, 9)],
    "index negative": lambda d: X.to(d)[ints(d, 0, -5)],
    "index of the second dimension": lambda d: X.to(d)[:, ints(d, 0, 7)],
    "index of both": lambda d: X.to(d)[ints(d, 0, 1), ints(d, 0, 7)],
    "index_select": lambda d: X.to(d).index_select(0, ints(d, 0, 9)),
    "index_select of the second dimension": lambda d: X.to(d).index_select(1, ints(d, 0, 9)),
    "index_select negative": lambda d: X.to(d).index_select(0, ints(d, 0, -1)),
    "gather": lambda d: X.to(d).gather(1, ints(d, 0, 9, shape=(1, 2))),
    "take": lambda d: X.to(d).take(ints(d, 0, 12)),
    "take negative": lambda d: X.to(d).take(ints(d, 0, -13)),
    "scatter": lambda d: X.to(d).scatter(1, ints(d, 0, 9, shape=(1, 2)), torch.ones(1, 2, device=d)),
    "scatter of a value": lambda d: X.to(d).scatter(1, ints(d, 0, 9, shape=(1, 2)), 2.0),
    "scatter_add": lambda d: X.to(d).scatter_add(1, ints(d, 0, 9, shape=(1, 2)), torch.ones(1, 2, device=d)),
    "scatter_reduce": lambda d: X.to(d).scatter_reduce(1, ints(d, 0, 9, shape=(1, 2)), torch.ones(1, 2, device=d), "amax"),
    "index_add": lambda d: X.to(d).index_add(0, ints(d, 0, 9), torch.ones(2, 3, device=d)),
    "index_copy": lambda d: X.to(d).index_copy(0, ints(d, 0, 9), torch.ones(2, 3, device=d)),
    "index_fill": lambda d: X.to(d).index_fill(0, ints(d, 0, 9), 1.0),
    "index_put": lambda d: X.to(d).index_put((ints(d, 0, 9),), torch.ones(3, device=d)),
    "put": lambda d: X.to(d).put(ints(d, 0, 99), torch.ones(2, device=d)),
    "embedding": lambda d: functional.embedding(ints(d, 0, 9), X.to(d)),
    "embedding negative": lambda d: functional.embedding(ints(d, 0, -1), X.to(d)),
    "nll_loss": lambda d: functional.nll_loss(X.to(d), ints(d, 0, 1, 2, 3)),
    "cross_entropy": lambda d: functional.cross_entropy(X.to(d), ints(d, 0, 1, 2, -1)),
    "floor division": lambda d: ints(d, 1, 2) // ints(d, 1, 0),
    "floor division by a number": lambda d: ints(d, 1, 2) // 0,
    "division that truncates": lambda d: torch.div(ints(d, 1, 2), ints(d, 1, 0), rounding_mode="trunc"),
    "remainder": lambda d: ints(d, 1, 2) % ints(d, 1, 0),
    "fmod": lambda d: torch.fmod(ints(d, 1, 2), ints(d, 1, 0)),
    "negative power": lambda d: torch.pow(ints(d, 1, 2), -1),
    "bernoulli": lambda d: torch.bernoulli(torch.tensor([0.5, 1.5], device=d)),
    "normal": lambda d: torch.normal(torch.zeros(2, device=d), torch.tensor([1.0, -1.0], device=d)),
    "multinomial, negative": lambda d: torch.multinomial(torch.tensor([0.5, -1.0], device=d), 1),
    "multinomial of zeros": lambda d: torch.multinomial(torch.zeros(3, device=d), 1),
    "poisson": lambda d: torch.poisson(torch.tensor([-1.0], device=d)),
    "bincount": lambda d: torch.bincount(ints(d, 0, -1)),
    "repeat_interleave": lambda d: torch.repeat_interleave(X.to(d), ints(d, 1, -1, 0, 0), dim=0),
    "cholesky": lambda d: torch.linalg.cholesky(-torch.eye(2, device=d)),
    "inv": lambda d: torch.linalg.inv(torch.zeros(2, 2, device=d)),
    "_assert_async": lambda d: torch._assert_async(ints(d, 0), "no good"),
}
# Operators that run on the CPU raise at the call anyway.
DEFERRED = ["index", "gather", "scatter_add", "embedding", "nll_loss", "floor division", "bernoulli"]


@pytest.fixture(autouse=True)
def nothing_is_left():
    torch.tpu.synchronize()
    with torch.tpu.settings(fallback="silent"):
        yield
    torch.tpu.synchronize()


def error_of(function) -> Exception:
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def expected(name: str) -> Exception:
    return error_of(lambda: MISTAKES[name]("cpu"))


def assert_same_error(error: Exception, cpu: Exception):
    assert type(error) is type(cpu) and str(error) == str(cpu)


def read(result):
    return None if result is None else result.cpu()


@pytest.mark.parametrize("name", MISTAKES)
def test_the_read_raises_what_the_cpu_raises(name):
    assert_same_error(error_of(lambda: read(MISTAKES[name](DEVICE))), expected(name))


@pytest.mark.parametrize("name", DEFERRED)
def test_synchronize_raises_it_once(name):
    result = MISTAKES[name](DEVICE)
    assert_same_error(error_of(torch.tpu.synchronize), expected(name))
    torch.tpu.synchronize()
    assert_same_error(error_of(result.cpu), expected(name))


@pytest.mark.parametrize("name", DEFERRED)
def test_synchronize_raises_it_when_nobody_keeps_the_result(name):
    MISTAKES[name](DEVICE)
    assert_same_error(error_of(torch.tpu.synchronize), expected(name))


@pytest.mark.parametrize("name", MISTAKES)
def test_debug_mode_raises_at_the_call(name):
    with torch.tpu.settings(eager_mode="debug"):
        assert_same_error(error_of(lambda: MISTAKES[name](DEVICE)), expected(name))


@pytest.mark.parametrize("name", DEFERRED)
def test_dependents_raise_too(name):
    bad = MISTAKES[name](DEVICE)
    sum_ = (bad * 2).sum()
    view = bad.reshape(-1)[0:1] + 1
    copy = torch.empty_like(bad)
    copy.copy_(bad)
    for result in (sum_, view, copy, sum_):
        assert_same_error(error_of(result.cpu), expected(name))
    assert_same_error(error_of(lambda: sum_.item()), expected(name))
    assert_same_error(error_of(lambda: bool(sum_ > 0)), expected(name))
    assert_same_error(error_of(lambda: repr(view)), expected(name))


def bad_index_cpu() -> Exception:
    return error_of(lambda: X.clone().index_copy_(0, ints("cpu", 0, 9), torch.ones(2, 3)))


def test_targets_written_in_place_are_poisoned():
    x = X.to(DEVICE)
    before = x.clone()
    x.index_copy_(0, ints(DEVICE, 0, 9), torch.ones(2, 3, device=DEVICE))
    for result in (x, x + 1, x[2], x.t()):
        assert_same_error(error_of(result.cpu), bad_index_cpu())
    assert torch.equal(before.cpu(), X)
    x[0] = 5.0  # a partial write cures nothing
    assert_same_error(error_of(x.cpu), bad_index_cpu())
    x.copy_(X)
    assert torch.equal(x.cpu(), X)


def test_a_write_through_a_view_poisons_the_base():
    base = torch.zeros(6, 3, device=DEVICE)
    base[1:5].index_copy_(0, ints(DEVICE, 0, 9), torch.ones(2, 3, device=DEVICE))
    assert_same_error(error_of(base.cpu), bad_index_cpu())
    assert_same_error(error_of(base[5].cpu), bad_index_cpu())
    base.zero_()
    assert base.sum().item() == 0


def test_out_is_poisoned():
    out = torch.zeros(2, 3, device=DEVICE)
    torch.index_select(X.to(DEVICE), 0, ints(DEVICE, 0, 9), out=out)
    assert isinstance(error_of(out.cpu), IndexError)
    torch.index_select(X.to(DEVICE), 0, ints(DEVICE, 0, 1), out=out)
    assert torch.equal(out.cpu(), X[:2])


def test_large_results_whose_check_comes_late():
    # Work on the plugin's own threads: the check is under way when the dependents are recorded.
    n = 1 << 20
    x = torch.arange(n, device=DEVICE, dtype=torch.float32)
    good = torch.arange(n, device=DEVICE).flip(0)
    for i in range(5):
        bad = good.clone()
        bad[i * 1000] = n + i
        y = x[bad]
        z = (y * 2 + 1).exp()
        w = torch.zeros_like(x)
        w += z
        fine = x[good] + 1
        error = error_of(w.cpu)
        assert type(error) is IndexError and f"index {n + i} is out of bounds for dimension 0 with size {n}" == str(error)
        assert fine[0].item() == n


def test_many_checks_in_flight():
    x = torch.arange(1000.0, device=DEVICE)
    results = []
    for i in range(300):
        index = torch.arange(500, device=DEVICE) + (700 if i % 50 == 13 else 0)
        results.append(x[index].sum())
    for i, result in enumerate(results):
        if i % 50 == 13:
            assert type(error_of(result.item)) is IndexError
        else:
            assert result.item() == 499 * 500 / 2


def test_losses_and_gradients_of_a_bad_target():
    x = X.to(DEVICE).requires_grad_()
    loss = functional.cross_entropy(x, ints(DEVICE, 0, 1, 2, 3))
    loss.backward()
    cpu = error_of(lambda: functional.cross_entropy(X, ints("cpu", 0, 1, 2, 3)))
    assert_same_error(error_of(loss.item), cpu)
    assert_same_error(error_of(x.grad.cpu), cpu)
    while True:  # the backward pass has the same mistake for itself
        try:
            torch.tpu.synchronize()
            break
        except IndexError as error:
            assert "out of bounds" in str(error)


def test_the_same_mistake_again_is_raised_again():
    for _ in range(3):
        assert type(error_of(X.to(DEVICE)[ints(DEVICE, 0, 9)].cpu)) is IndexError
        assert torch.equal(X.to(DEVICE)[ints(DEVICE, 0, 1)].cpu(), X[:2])


def test_right_values_pass():
    assert torch.equal(X.to(DEVICE)[ints(DEVICE, -4, 3)].cpu(), X[[-4, 3]])
    assert torch.equal(X.to(DEVICE).take(ints(DEVICE, -12, 11)).cpu(), X.take(ints("cpu", -12, 11)))
    assert torch.equal((ints(DEVICE, 7, -7) // ints(DEVICE, 2, 2)).cpu(), ints("cpu", 3, -4))
    assert functional.nll_loss(X.to(DEVICE), ints(DEVICE, 0, -100, 2, 1)).isfinite().item()
