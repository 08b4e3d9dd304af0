# SPDX-License-Identifier: Apache-2.0
"""Operators that run on the CPU: right in value, aliasing, out=, device and gradient; warned once, counted, forbidden."""

import warnings

import pytest
import torch

from torch_tpu import _C

pytestmark = pytest.mark.filterwarnings("ignore:torch_tpu. aten::")


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def r(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=gen(), dtype=dtype)


def spd(n):
    a = r(n, n)
    return a @ a.t() + n * torch.eye(n)


def ints(high, *shape):
    return torch.randint(0, high, shape, generator=gen())


# m moves a tensor to the device under test. Most of these have no rule; where one is added the test still holds.
CASES = {
    "linalg_eig": lambda m: torch.linalg.eigvals(m(spd(4))).real.sort().values,
    "linalg_svd": lambda m: torch.linalg.svd(m(r(4, 3)))[1],
    "linalg_svdvals": lambda m: torch.linalg.svdvals(m(r(3, 4))),
    "linalg_eigh": lambda m: torch.linalg.eigh(m(spd(4)))[0],
    "linalg_qr": lambda m: [q.abs() for q in torch.linalg.qr(m(r(4, 3)))],
    "linalg_lu": lambda m: list(torch.linalg.lu(m(r(4, 4)))),
    "linalg_lu_factor": lambda m: list(torch.linalg.lu_factor(m(r(4, 4)))),
    "linalg_solve": lambda m: torch.linalg.solve(m(spd(4)), m(r(4, 2))),
    "linalg_inv": lambda m: torch.linalg.inv(m(spd(4))),
    "linalg_det": lambda m: torch.linalg.det(m(spd(3))),
    "linalg_slogdet": lambda m: list(torch.linalg.slogdet(m(spd(3)))),
    "linalg_cholesky": lambda m: torch.linalg.cholesky(m(spd(4))),
    "cholesky_inverse": lambda m: torch.cholesky_inverse(m(torch.linalg.cholesky(spd(3)))),
    "linalg_lstsq": lambda m: torch.linalg.lstsq(m(r(5, 3)), m(r(5, 2)))[0],
    "linalg_pinv": lambda m: torch.linalg.pinv(m(r(4, 3))),
    "linalg_matrix_exp": lambda m: torch.linalg.matrix_exp(m(r(3, 3))),
    "linalg_householder": lambda m: torch.linalg.householder_product(*map(m, torch.geqrf(r(4, 3)))),
    "ldl": lambda m: list(torch.linalg.ldl_factor(m(spd(3)))),
    "triangular_solve": lambda m: torch.linalg.solve_triangular(m(spd(3).triu()), m(r(3, 2)), upper=True),
    "geqrf": lambda m: list(torch.geqrf(m(r(4, 3)))),
    "unique": lambda m: list(torch.unique(m(ints(4, 12)), return_inverse=True, return_counts=True)),
    "unique_dim": lambda m: list(torch.unique(m(ints(2, 6, 2)), dim=0, return_inverse=True)),
    "unique_consecutive": lambda m: torch.unique_consecutive(m(torch.tensor([1, 1, 2, 2, 1]))),
    "bincount": lambda m: torch.bincount(m(ints(5, 20)), m(r(20)), minlength=7),
    "histc": lambda m: torch.histc(m(r(50)), 8, -2, 2),
    "histogram": lambda m: list(torch.histogram(m(r(50)), 5)),
    "mode": lambda m: list(torch.mode(m(ints(3, 4, 9)))),
    "kthvalue": lambda m: list(torch.kthvalue(m(r(4, 9)), 3)),
    "median": lambda m: list(torch.median(m(r(4, 9)), 1)),
    "nanmedian": lambda m: torch.nanmedian(m(r(4, 9))),
    "logcumsumexp": lambda m: torch.logcumsumexp(m(r(3, 6)), 1),
    "cummax": lambda m: list(torch.cummax(m(r(3, 6)), 1)),
    "renorm": lambda m: torch.renorm(m(r(3, 4)), 2, 0, 1.0),
    "searchsorted": lambda m: torch.searchsorted(m(torch.arange(8.0)), m(r(5) * 4)),
    "bucketize": lambda m: torch.bucketize(m(r(5)), m(torch.arange(-2.0, 2.0))),
    "cdist": lambda m: torch.cdist(m(r(3, 4)), m(r(5, 4)), p=1.5),
    "pdist": lambda m: torch.pdist(m(r(4, 3))),
    "repeat_interleave": lambda m: torch.repeat_interleave(m(r(4)), m(torch.tensor([1, 0, 2, 3]))),
    "take": lambda m: torch.take(m(r(3, 4)), m(ints(12, 5))),
    "ctc_loss": lambda m: torch.nn.functional.ctc_loss(
        m(r(10, 2, 5)).log_softmax(2), m(ints(4, 2, 3) + 1), torch.tensor([10, 10]), torch.tensor([3, 2])
    ),
    "grid_sample": lambda m: torch.nn.functional.grid_sample(m(r(1, 2, 4, 4)), m(r(1, 3, 3, 2)), align_corners=False),
    "max_unpool": lambda m: torch.nn.functional.max_unpool2d(
        *map(m, torch.nn.functional.max_pool2d(r(1, 2, 4, 4), 2, return_indices=True)), 2
    ),
    "adaptive_max_pool": lambda m: torch.nn.functional.adaptive_max_pool2d(m(r(1, 2, 7, 7)), 3),
    "adaptive_max_pool3d": lambda m: torch.nn.functional.adaptive_max_pool3d(m(r(1, 1, 5, 5, 5)), 2),
    "fold": lambda m: torch.nn.functional.fold(m(r(1, 8, 4)), (3, 3), 2),
    "interpolate": lambda m: torch.nn.functional.interpolate(m(r(1, 1, 4, 4)), scale_factor=1.7, mode="bicubic"),
    "trilinear": lambda m: torch.nn.functional.bilinear(m(r(3, 4)), m(r(3, 5)), m(r(2, 4, 5))),
    "embedding_bag": lambda m: torch.nn.functional.embedding_bag(
        m(ints(9, 6)), m(r(9, 4)), m(torch.tensor([0, 2, 3])), mode="mean"
    ),
    "embedding_renorm": lambda m: torch.nn.functional.embedding(m(ints(4, 3)), m(r(4, 5)), max_norm=1.0),
    "multi_margin": lambda m: torch.nn.functional.multi_margin_loss(m(r(4, 5)), m(ints(5, 4))),
    "multilabel": lambda m: torch.nn.functional.multilabel_margin_loss(m(r(2, 4)), m(torch.tensor([[1, 0, -1, 2]] * 2))),
    "bessel_j0": lambda m: torch.special.bessel_j0(m(r(5).abs())),
    "bessel_k1": lambda m: torch.special.modified_bessel_k1(m(r(5).abs() + 0.1)),
    "airy": lambda m: torch.special.airy_ai(m(r(5))),
    "chebyshev": lambda m: torch.special.chebyshev_polynomial_t(m(r(5)), m(torch.tensor([1, 2, 3, 4, 5]))),
    "zeta": lambda m: torch.special.zeta(m(r(4).abs() + 2), m(r(4).abs() + 1)),
    "igamma": lambda m: torch.special.gammainc(m(r(4).abs()), m(r(4).abs())),
    "polygamma": lambda m: torch.polygamma(2, m(r(4).abs() + 1)),
    "segment_reduce": lambda m: torch.segment_reduce(m(r(6)), "sum", lengths=m(torch.tensor([2, 3, 1]))),
    "index_reduce": lambda m: m(r(4, 3)).index_reduce(0, m(torch.tensor([0, 2, 0])), m(r(3, 3)), "amax"),
    "histogramdd": lambda m: torch.histogramdd(m(r(20, 2)), [3, 3])[0],
    "fft": lambda m: torch.view_as_real(torch.fft.fft2(m(r(4, 6)))),
    "stft": lambda m: torch.view_as_real(torch.stft(m(r(64)), 16, return_complex=True, window=m(torch.ones(16)))),
    "floor_divide_reverse": lambda m: 7 // m(ints(3, 5) + 1),
    "combinations": lambda m: torch.combinations(m(torch.arange(4))),
    "gcd": lambda m: torch.gcd(m(ints(40, 6)), m(ints(30, 6) + 1)),
    "frexp": lambda m: list(torch.frexp(m(r(6)))),
    "trapezoid": lambda m: torch.trapezoid(m(r(3, 5))),
    "nan_to_num": lambda m: torch.nan_to_num(m(torch.tensor([1.0, float("nan"), float("inf")]))),
    "channels_last": lambda m: torch.nn.functional.fractional_max_pool2d(
        m(r(1, 2, 6, 6)), 2, output_size=3, _random_samples=m(torch.rand(1, 2, 2, generator=gen()))
    ),
}


def flat(result):
    return list(result) if isinstance(result, list | tuple) else [result]


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    expected = flat(CASES[name](lambda t: t.clone()))
    got = flat(CASES[name](lambda t: t.to("tpu")))
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        assert g.device.type == "tpu" and g.dtype == e.dtype and g.shape == e.shape
        torch.testing.assert_close(g.cpu(), e, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("name", ["linalg_eig", "linalg_svd", "kthvalue", "histc", "mode", "geqrf", "bincount"])
def test_views_as_inputs(name):
    def strided(t):
        return torch.stack([t, t], -1).to("tpu")[..., 1]

    def transposed(t):
        return t.to("tpu").mT.contiguous().mT if t.dim() > 1 else t.to("tpu")

    expected = flat(CASES[name](lambda t: t.clone()))
    for m in (strided, transposed):
        for g, e in zip(flat(CASES[name](m)), expected, strict=True):
            torch.testing.assert_close(g.cpu(), e, rtol=1e-4, atol=1e-4)


# ---- out=, in place, aliasing


def test_out():
    a = spd(4)
    d = a.to("tpu")
    out = torch.empty(4, dtype=torch.complex64, device="tpu")
    address = out.data_ptr()
    assert torch.linalg.eigvals(d, out=out) is out and out.data_ptr() == address
    torch.testing.assert_close(out.cpu(), torch.linalg.eigvals(a))
    out = torch.empty(0, dtype=torch.complex64, device="tpu")
    torch.linalg.eigvals(d, out=out)
    torch.testing.assert_close(out.cpu(), torch.linalg.eigvals(a))
    wrong = torch.empty(3, dtype=torch.complex64, device="tpu")
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.linalg.eigvals(d, out=wrong)
    assert wrong.shape == (4,)


def test_strided_out():
    x = r(3, 9)
    values, indices = x.kthvalue(2, 1)
    space_v = torch.full((3, 4), -1.0, device="tpu")
    space_i = torch.full((2, 3), -1, device="tpu")
    torch.kthvalue(x.to("tpu"), 2, 1, out=(space_v[:, 1], space_i[1]))
    expected = torch.full((3, 4), -1.0)
    expected[:, 1] = values
    assert torch.equal(space_v.cpu(), expected)
    assert torch.equal(space_i.cpu(), torch.stack([torch.full((3,), -1), indices]))


def test_out_that_is_an_input():
    x = r(3, 5)
    d = x.to("tpu")
    torch.logcumsumexp(d, 1, out=d)
    torch.testing.assert_close(d.cpu(), torch.logcumsumexp(x, 1))


IN_PLACE = {
    "renorm_": lambda t: t.renorm_(2, 0, 0.5),
    "put_": lambda t: t.put_(torch.tensor([0, 3], device=t.device), torch.tensor([5.0, 6.0], device=t.device)),
    "igamma_": lambda t: t.abs_().igamma_(torch.ones_like(t)),
    "polygamma_": lambda t: t.abs_().polygamma_(1),
    "index_reduce_": lambda t: t.index_reduce_(
        0, torch.tensor([0, 1], device=t.device), torch.full((2, t.size(1)), 2.0, device=t.device), "prod"
    ),
    "lerp_chain": lambda t: t.add_(1).renorm_(1, 1, 2.0),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("view", ["whole", "rows", "columns", "transposed"])
def test_in_place(name, view):
    views = {"whole": lambda t: t, "rows": lambda t: t[1:4], "columns": lambda t: t[:, 1::2], "transposed": lambda t: t.t()}
    x = r(6, 6)
    d = x.to("tpu")
    alias, version = d.view(-1), d._version
    v = views[view](d)
    assert IN_PLACE[name](v) is v
    IN_PLACE[name](views[view](x))
    torch.testing.assert_close(d.cpu(), x)
    torch.testing.assert_close(alias.cpu(), x.view(-1))
    assert d._version > version
    torch.testing.assert_close((d + 1).cpu(), x + 1)


def test_batch_norm_statistics():
    """Its schema does not say that it writes its running statistics."""
    x, mean, var = r(4, 3, 2), torch.zeros(3), torch.ones(3)
    dm, dv = mean.to("tpu"), var.to("tpu")
    torch.nn.functional.batch_norm(x, mean, var, training=True)
    torch.nn.functional.batch_norm(x.to("tpu"), dm, dv, training=True)
    torch.testing.assert_close(dm.cpu(), mean)
    torch.testing.assert_close(dv.cpu(), var)


def test_results_do_not_alias_inputs():
    d = torch.sort(r(5)).values.to("tpu")
    u = torch.unique_consecutive(d)
    u.zero_()
    assert d.cpu().count_nonzero() == 5
    n = torch.nan_to_num(d)
    n.zero_()
    assert d.cpu().count_nonzero() == 5


def test_lists():
    parts = [r(2, 3), r(4, 3)]
    a = torch.block_diag(*[p.to("tpu") for p in parts])
    assert torch.equal(a.cpu(), torch.block_diag(*parts))
    tensors = [r(3), r(2, 2)]
    on_device = [t.to("tpu") for t in tensors]
    torch._foreach_lgamma_(on_device)
    torch._foreach_lgamma_(tensors)
    for g, e in zip(on_device, tensors, strict=True):
        torch.testing.assert_close(g.cpu(), e)
    shared = torch.arange(1.0, 5.0, device="tpu")
    torch._foreach_lgamma_([shared[:2], shared[2:]])
    torch.testing.assert_close(shared.cpu(), torch.arange(1.0, 5.0).lgamma())
    for g, e in zip(torch._foreach_lgamma(on_device), torch._foreach_lgamma(tensors), strict=True):
        torch.testing.assert_close(g.cpu(), e)


def test_conjugate_inputs():
    x = torch.complex(r(3, 3), r(3, 3).t())
    d = x.to("tpu")
    torch.testing.assert_close(torch.linalg.eigvals(d.conj()).cpu(), torch.linalg.eigvals(x.conj()))
    torch.testing.assert_close(torch.linalg.svdvals(d.mH).cpu(), torch.linalg.svdvals(x.mH))


def test_gradients():
    grads = []
    for device in ("cpu", "tpu"):
        t = spd(4).to(device).requires_grad_()
        (torch.linalg.eigvalsh(t).sum() + torch.linalg.svdvals(t).prod() + torch.logcumsumexp(t, 0).sum()).backward()
        grads.append(t.grad.cpu())
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-3, atol=1e-3)


def test_autocast_stays_outside():
    with torch.autocast("tpu", dtype=torch.bfloat16):
        assert torch.linalg.eigvals(spd(3).to("tpu")).dtype == torch.complex64


def test_more_than_eight_dimensions():
    x = r(*[2] * 10)
    d = x.to("tpu")
    torch.testing.assert_close((d + 1).cpu(), x + 1)
    torch.testing.assert_close((d * d.transpose(0, 9)).sum(3).cpu(), (x * x.transpose(0, 9)).sum(3))
    d.transpose(0, 4).mul_(3)
    torch.testing.assert_close(d.cpu(), x * 3)
    assert torch.equal(d.nonzero().cpu(), x.nonzero())


def test_cells_without_cpu_kernel():
    for module in (torch.nn.LSTMCell(4, 5), torch.nn.GRUCell(4, 5), torch.nn.LSTM(4, 5), torch.nn.GRU(4, 5, bias=False)):
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.randn(p.shape, generator=gen(p.numel())))
        inputs = r(3, 4)
        expected, grads = [], []
        for device in ("cpu", "tpu"):
            moved = type(module)(4, 5, **({"bias": False} if module.bias is False else {})).to(device)
            moved.load_state_dict(module.state_dict())
            x = inputs.detach().clone().to(device).requires_grad_()
            out = moved(x)
            out = out[0] if isinstance(out, tuple) else out
            (out * out).sum().backward()
            expected.append(out.detach().cpu())
            grads.append([x.grad.cpu(), *(p.grad.cpu() for p in moved.parameters())])
        torch.testing.assert_close(expected[1], expected[0], rtol=1e-4, atol=1e-4)
        for g, e in zip(grads[1], grads[0], strict=True):
            torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-4)


# ---- random numbers


def test_generators():
    probabilities = torch.tensor([0.1, 0.2, 0.3, 0.4], device="tpu")

    def draw(**kwargs):
        return torch._sample_dirichlet(probabilities.expand(64, 4) + 1, **kwargs).cpu()

    torch.manual_seed(5)
    first, second = draw(), draw()
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(draw(), first) and torch.equal(draw(), second)
    g = torch.Generator("tpu").manual_seed(9)
    third = draw(generator=g)
    state = g.get_state()
    fourth = draw(generator=g)
    assert torch.equal(draw(generator=torch.Generator("tpu").manual_seed(9)), third)
    g.set_state(state)
    assert torch.equal(draw(generator=g), fourth)
    torch.manual_seed(5)
    assert torch.equal(draw(), first)  # other generators do not touch the default one
    with pytest.raises(RuntimeError, match="generator"):
        draw(generator=torch.Generator("cpu"))


def test_cpu_generator_is_untouched():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    torch._sample_dirichlet(torch.ones(4, 4, device="tpu"))
    assert torch.equal(torch.rand(4), expected)


# ---- policy


def test_counted(count):
    before = dict(_C.fallback_counts()).get("aten::linalg_eig", 0)
    with count() as c:
        torch.linalg.eig(spd(3).to("tpu"))
        torch.linalg.eig(spd(3).to("tpu"))
    assert dict(_C.fallback_counts())["aten::linalg_eig"] == before + 2
    assert c["fallbacks"] >= 2


WARNING_CODE = """
import warnings
import torch
a = (torch.eye(3) * 2).to("tpu")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.linalg.eig(a)
    torch.linalg.eig(a)
    torch.linalg.eig(torch.eye(2, device="tpu"))
    torch.geqrf(a)
print(sorted(str(w.message).split(" runs")[0] for w in caught if "runs on the CPU" in str(w.message)))
"""


def test_warns_once_an_operator(run_python):
    assert run_python(WARNING_CODE).stdout.strip() == "['torch_tpu: aten::geqrf', 'torch_tpu: aten::linalg_eig']"
    assert run_python(WARNING_CODE, TORCH_TPU_FALLBACK="silent").stdout.strip() == "[]"


def test_warning_as_error(run_python):
    run_python("""
import warnings
import torch
warnings.simplefilter("error")
t = torch.tensor([[3.0, 4.0]], device="tpu")
try:
    t.renorm_(2, 0, 1.0)
    raise SystemExit("no error")
except UserWarning:
    pass
t.renorm_(2, 0, 1.0)
assert abs(t[0, 0].item() - 0.6) < 1e-5
""")


def test_forbid(forbid_fallback):
    a = torch.eye(3, device="tpu")
    with pytest.raises(NotImplementedError, match=r"aten::linalg_eig has no program.*fallback=forbid"):
        torch.linalg.eig(a)
    with torch.tpu.settings(fallback="silent"), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.linalg.eig(a)


def test_refusals():
    with pytest.raises(NotImplementedError):
        torch.eye(3, device="tpu").to_sparse()
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.quantize_per_tensor(torch.ones(3, device="tpu"), 0.1, 0, torch.quint8)


def test_errors_are_cpus():
    d = torch.eye(3, device="tpu")
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        torch.linalg.eigvals(d[:2])
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.bucketize(d[0], torch.arange(3.0))
    with pytest.raises(RuntimeError, match="selected number k out of range"):
        torch.kthvalue(d, 7)


def test_poison_is_raised():
    d = torch.arange(4.0, device="tpu")
    bad = d[torch.tensor([9], device="tpu")]
    with pytest.raises(IndexError):
        torch.linalg.eigvals(bad.expand(3, 3))
