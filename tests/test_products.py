"""Whether each way of writing a product is counted, against sums by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.cost import flops
from selfattn.products import Countable

N, D, M, B = 7, 5, 11, 3
ONE = 2 * N * D * M
A, C, S = torch.randn(N, D), torch.randn(D, M), torch.randn(N, M)
AS, CS, SS = (x.repeat(B, 1, 1) for x in (A, C, S))
v, w = torch.randn(D), torch.randn(N)

ADDED = {  # what is added to, the two factors, and the operations
    "addmm": (S, A, C, ONE),
    "baddbmm": (SS, AS, CS, B * ONE),
    "addbmm": (S, AS, CS, B * ONE),
    "addmv": (w, A, v, 2 * N * D),
    "addr": (A, w, v, 2 * N * D),
}
PLAIN = {
    "mm": (A, C, ONE),
    "bmm": (AS, CS, B * ONE),
    "matmul": (AS, C, B * ONE),
    "mv": (A, v, 2 * N * D),
    "dot": (v, v, 2 * D),
    "vdot": (v, v, 2 * D),
    "inner": (A, C.mT, ONE),
}


@pytest.mark.parametrize("name", ADDED)
def test_a_product_that_is_added_counts_in_place_too(name):
    """``x.addmm_(a, b)`` counted nothing, and a flash attention that sums
    its tiles in place was told to be free.
    """
    x, a, b, wanted = ADDED[name]
    function = getattr(torch, name)
    assert flops(lambda: function(x, a, b)) == wanted
    assert flops(lambda: function(x, a, b, out=x.clone())) == wanted
    assert flops(lambda: getattr(x.clone(), f"{name}_")(a, b)) == wanted
    on_meta = [y.to("meta") for y in (x, a, b)]
    assert flops(lambda: function(*on_meta)) == wanted


@pytest.mark.parametrize("name", PLAIN)
def test_a_product_counts_where_it_is_written_into_a_tensor(name):
    a, b, wanted = PLAIN[name]
    function, room = getattr(torch, name), getattr(torch, name)(a, b)
    assert flops(lambda: function(a, b)) == wanted
    assert flops(lambda: function(a, b, out=room)) == wanted
    with torch.inference_mode():
        assert flops(lambda: function(a, b)) == wanted


def test_a_layer_that_writes_into_a_tensor_counts():
    linear = torch._C._nn.linear
    weight, room = C.mT.contiguous(), torch.empty(N, M)
    assert flops(lambda: linear(A, weight, None, out=room)) == ONE
    assert flops(lambda: F.linear(A, weight)) == ONE


def test_a_bilinear_form_is_a_product_with_each_matrix_and_a_vector():
    forms = torch.randn(B, D, M)
    wanted = 2 * B * N * M * (D + 1)
    assert flops(lambda: F.bilinear(A, S, forms)) == wanted


def test_distances_of_many_are_a_product():
    """|x - y|² as |x|² + |y|² - 2 x y: two features more. Of few, they are
    subtracted, and count nothing.
    """
    x, y = torch.randn(B, 40, D), torch.randn(B, 41, D)
    assert flops(lambda: torch.cdist(x, y)) == 2 * B * 40 * 41 * (D + 2)
    assert flops(lambda: torch.cdist(A, A)) == 0


def test_convolutions_count_whichever_axis_is_last():
    x, weight = torch.randn(9, 2, D), torch.randn(3, D, M)
    f = lambda: torch.conv_tbc(x, weight, torch.zeros(M))  # noqa: E731
    g = lambda: F.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0))  # noqa: E731
    assert flops(f) == flops(g) == 2 * 7 * 2 * 3 * D * M


def test_a_sparse_matrix_counts_as_if_it_were_full():
    """By one of its three ways it counted so, by the others nothing."""
    sparse = A.to_sparse()
    assert flops(lambda: sparse @ C) == ONE
    assert flops(lambda: torch.sparse.mm(sparse, C)) == ONE
    assert flops(lambda: torch.addmm(S, sparse, C)) == ONE


def test_whole_numbers_and_lists_of_matrices_count():
    bytes_ = torch.zeros(32, 32, dtype=torch.int8)
    assert flops(lambda: torch._int_mm(bytes_, bytes_)) == 2 * 32**3
    assert flops(lambda: torch._foreach_mm([A, AS[0]], [C, C])) == 2 * ONE


def test_groups_of_a_batch_count_each_row_once():
    """As a mixture of experts multiplies: 8 rows, of two matrices one each."""
    rows, ends = torch.randn(8, 16), torch.tensor([3, 8], dtype=torch.int32)
    each, both = torch.randn(2, 16, 24), torch.randn(2, 8, 16)
    f = lambda: torch._grouped_mm(rows, each, offs=ends)  # noqa: E731
    assert flops(f) == 2 * 8 * 16 * 24
    assert flops(lambda: torch._grouped_mm(both, each)) == 4 * 8 * 16 * 24


def test_the_recurrent_kernel_of_a_gpu_counts_every_matrix():
    """On no GPU here, but its shapes are the same on the device "meta"."""
    x, kept = torch.zeros(5, 2, 4), torch.zeros(1, 2, 6)
    weights = [torch.zeros(24, 4), torch.zeros(24, 6), *torch.zeros(2, 24)]
    *weights, x, kept = (y.to("meta") for y in (*weights, x, kept))
    lstm = torch.ops.aten._cudnn_rnn
    given = (x, weights, 4, None, kept, kept, 2, 6, 0, 1, False, 0.0, False)
    counted = flops(lambda: lstm(*given, False, [], None))
    layer = nn.LSTM(4, 6)
    assert counted == flops(lambda: layer(torch.zeros(5, 2, 4)))
    assert counted == 2 * 5 * 2 * 24 * (4 + 6)


def test_what_cannot_be_counted_is_refused_in_words():
    """Of texts that are packed, as PyTorch's own encoder does with padded
    ones, the counter fell with an internal error; of `flex_attention`, with
    that of a dispatcher.
    """
    texts = [torch.randn(3, D), torch.randn(7, D)]
    packed = torch.nested.nested_tensor(texts, layout=torch.jagged)
    with pytest.raises(ValueError, match="one shape, but here is a nested"):
        flops(lambda: F.linear(packed, C.mT))
    whole = torch.ops.higher_order.flex_attention
    with pytest.raises(ValueError, match="plain functions, but this one"):
        Countable().__torch_dispatch__(whole, ())
    assert flops(lambda: A @ C) == ONE


@torch.library.custom_op("selfattn_tests::product", mutates_args=())
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A kernel of somebody's own."""
    return a @ b


def test_a_kernel_from_elsewhere_is_not_free():
    """What quantized layers, oneDNN and somebody's own kernels multiply was
    told to be nothing.
    """
    linear, options = torch.ops.mkldnn._linear_pointwise, ("none", [], "")
    kernels = {
        "selfattn_tests::product": lambda: product(A, C),
        "mkldnn::_linear_pointwise": lambda: linear(A, C.mT, None, *options),
    }
    for name, f in kernels.items():
        with pytest.raises(ValueError, match=f"its own kernel: {name}"):
            flops(f)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_a_matrix_in_fewer_bits_is_counted_or_refused():
    """Packed, its shape is not told, nor of which entries of a product some
    are asked; they were told to take nothing.
    """
    x, scales = torch.randn(4, 64).bfloat16(), torch.ones(32).bfloat16()
    weight = torch.zeros(32, 64, dtype=torch.int8)
    int8 = torch.ops.aten._weight_int8pack_mm
    assert flops(lambda: int8(x, weight, scales)) == 2 * 4 * 64 * 32
    numbers = torch.zeros(64, 64, dtype=torch.int32)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1)
    scales = torch.ones(2, 64, 2).bfloat16()
    int4 = torch.ops.aten._weight_int4pack_mm_for_cpu
    with pytest.raises(ValueError, match="its own kernel: aten::_weight_int4"):
        flops(lambda: int4(x, packed, 32, scales))
    with pytest.raises(ValueError, match="its own kernel: aten::sparse_sam"):
        flops(lambda: sampled(S.ne(0), A, C))


def sampled(where, a, b):
    """Some entries of a product."""
    return torch.sparse.sampled_addmm(where.float().to_sparse_csr(), a, b)


def test_what_is_called_a_product_and_is_none_is_counted_all_the_same():
    """A convolution's weights, put into another order."""
    weights = torch.randn(3, 3, 2, 2).to_mkldnn()
    reorder = torch._C._nn.mkldnn_reorder_conv2d_weight
    assert flops(lambda: reorder(weights)) == 0


def test_of_sparse_and_of_packed_matrices_all_products_are_known():
    """These counted nothing."""
    assert flops(lambda: torch.hspmm(A.to_sparse(), C)) == ONE
    x, weight = A.to_mkldnn(), C.mT.contiguous().to_mkldnn()
    assert flops(lambda: torch.ops.aten.mkldnn_linear(x, weight)) == ONE
