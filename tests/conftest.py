"""What every test gets: a seed, a device, and tensors of prime sizes."""

import gc
import re
from types import SimpleNamespace

import hypothesis
import jaxtyping
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

MANY = 1000  # tests, of a run that will fork often
ADDRESS = re.compile(r" at 0x[0-9a-f]+")

# The same examples in every run; a slow machine is no failure.
hypothesis.settings.register_profile(
    "book", derandomize=True, deadline=None, max_examples=40
)
hypothesis.settings.load_profile("book")

# For each device that is not there, `torch.manual_seed` writes down the whole
# way to where it was called, which takes longer than many a test, and keeps
# it to the end.
for absent in (torch.cuda, torch.mtia, torch.xpu):
    absent.traceback = SimpleNamespace(format_stack=list)


def pytest_collection_finish(session):
    """Refuse what each process would call by another name; then keep all.

    What has no name of its own is called by its address, and processes that
    share the tests out then find that they have not collected the same. What
    was imported stays: let Python not look for garbage in it, and the system
    not copy the list of its pages, small as they are, at every fork.
    """
    for item in session.items:
        if ADDRESS.search(item.name):
            raise pytest.UsageError(f"{item.nodeid} names an address")
    gc.collect()
    gc.freeze()
    if len(session.items) > MANY:
        from pages import in_large_pages  # which copies of this file lack

        in_large_pages()


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in every run of a test."""
    torch.manual_seed(0)


@pytest.fixture(scope="module", autouse=True)
def no_world_is_left():
    """Whoever opens a process group closes it, whatever order tests run in."""
    yield
    assert not dist.is_initialized(), "a test left its process group open"


@pytest.fixture
def unchecked():
    """Shapes are not checked: where the package is called by the thousand.

    That takes most of the time there, and other tests check them.
    """
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session", autouse=True)
def bfloat16_without_avx512():
    """Where PyTorch's fused kernel cannot take bfloat16, its math one does.

    Told to leave AVX-512 out (ATEN_CPU_CAPABILITY=default) on a processor
    that has it, the fused kernel of PyTorch 2.13 still asks for it, and
    raises: "pack_vnni2 is only supported when avx512 is supported".
    """
    fused = F.scaled_dot_product_attention
    x = torch.ones(1, 1, 64, 64, dtype=torch.bfloat16)
    try:
        fused(x, x, x)
    except RuntimeError as error:
        assert "pack_vnni2" in str(error)
    else:
        yield
        return

    def mended(q, *arguments, **options):
        if q.dtype != torch.bfloat16 or q.device.type != "cpu":
            return fused(q, *arguments, **options)
        with sdpa_kernel(SDPBackend.MATH):
            return fused(q, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(F, "scaled_dot_product_attention", mended)
        yield


@pytest.fixture(
    params=["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
)
def device(request):
    """Each device that this machine has."""
    return request.param


def drawn(*sizes, device):
    """Numbers with a gradient, in float64."""
    kind = {"dtype": torch.float64, "device": device}
    return torch.randn(*sizes, **kind, requires_grad=True)


@pytest.fixture
def qkv(device):
    """Every axis has its own prime, so no two can be mixed up unnoticed."""
    batch, heads, n_q, n_k, d, d_v = 2, 3, 7, 11, 5, 13
    sizes = (n_q, d), (n_k, d), (n_k, d_v)
    return tuple(drawn(batch, heads, *size, device=device) for size in sizes)


@pytest.fixture
def square(device):
    """As many queries as keys, for self-attention."""
    batch, heads, n, d, d_v = 2, 3, 11, 5, 7
    widths = d, d, d_v
    return tuple(
        drawn(batch, heads, n, wide, device=device) for wide in widths
    )
