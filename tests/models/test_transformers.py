"""The models against those of transformers: random weights, copied.

Nothing is downloaded: each of theirs is built from a small configuration,
every parameter is drawn anew (zeros and ones hide mistakes), and ours gets
the same numbers, for GPT-2 and BERT through a file in the published form.
"""

from functools import partial

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from theirs import (
    BATCH,
    D_FF,
    HEADS,
    LAYERS,
    N_TOKENS,
    REAL,
    D,
    N,
    bert_config,
    close,
    ids,
    saved,
    small_bert,
    small_gpt2,
    small_llama,
    small_t5,
    small_vit,
    stirred,
)
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.dot_product import attention, fused_attention
from selfattn.layers import FeedForward, LayerNorm, RMSNorm, SwiGLU, gelu
from selfattn.models import (
    ClassHead,
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    LabelHead,
    PatchEmbedding,
    SpanHead,
    VisionTransformer,
    complete,
    keep_top_k,
    keep_top_p,
    load_bert,
    load_gpt2,
)
from selfattn.models.llama import LLAMA_NAMES
from selfattn.models.t5 import T5_NAMES
from selfattn.models.weights import fill, renamed
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import T5Bias, rope_halves


def real_rows(x):
    """What stands at real tokens, in one row after another."""
    return x[REAL[:, 0, 0]]


# GPT-2


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """Theirs, and ours from their file."""
    torch.manual_seed(0)
    theirs = small_gpt2()
    theirs.transformer.wpe.weight.data *= 5  # else it writes one word for ever
    path = saved(theirs, tmp_path_factory.mktemp("gpt2"))
    return theirs, load_gpt2(path, n_heads=HEADS)


@torch.no_grad()
def test_gpt2_has_the_same_logits(gpt2):
    theirs, ours = gpt2
    tokens = ids()
    close(ours(tokens), theirs(tokens).logits)
    padded = theirs(tokens, attention_mask=REAL[:, 0, 0].long()).logits
    close(real_rows(ours(tokens, mask=REAL)), real_rows(padded))


def test_gpt2_has_the_same_gradients(gpt2):
    """Of up to 20 or so, sums over all tokens: rounding is as much larger."""
    same = partial(assert_close, rtol=1e-5, atol=1e-4)
    theirs, ours = gpt2
    tokens, up = ids(), torch.randn(BATCH, N, N_TOKENS)
    (ours(tokens) * up).sum().backward()
    (theirs(tokens).logits * up).sum().backward()
    assert ours.head.weight is ours.embed.tokens.weight
    same(ours.head.weight.grad, theirs.lm_head.weight.grad)
    first, theirs_first = ours.blocks[0], theirs.transformer.h[0]
    same(
        torch.cat([w.weight.grad for w in qkv(first)]),
        theirs_first.attn.c_attn.weight.grad.T,
    )
    norm = theirs_first.ln_2.weight
    same(first.add_norm_2.norm.gain.grad, norm.grad)
    assert norm.grad.abs().max() > 1


def qkv(block):
    return block.attention.W_q, block.attention.W_k, block.attention.W_v


def writes_the_same(ours, theirs):
    """Raise unless both go on from a prompt alike, and not with one word."""
    prompt = ids(5)
    expected = theirs.generate(
        prompt, max_new_tokens=13, do_sample=False, pad_token_id=0
    )
    assert torch.equal(complete(ours.step, prompt, 13), expected)
    assert torch.equal(complete(ours.step, prompt, 13, cached=False), expected)
    assert expected[:, 5:].unique().numel() > 3


@torch.no_grad()
def test_gpt2_writes_the_same_text(gpt2):
    theirs, ours = gpt2
    writes_the_same(ours, theirs)


@torch.no_grad()
def test_gpt2_is_read_from_the_older_form_too(gpt2, tmp_path):
    """As the first file was published: no prefix, and the masks in it."""
    theirs, ours = gpt2
    path = tmp_path / "older.safetensors"
    older = {
        name.removeprefix("transformer."): weight.clone()
        for name, weight in theirs.state_dict().items()
        if name != "lm_head.weight"
    }
    for i in range(LAYERS):
        older[f"h.{i}.attn.bias"] = torch.ones(1, 1, 29, 29).tril()
        older[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(older, path)
    tokens = ids()
    assert torch.equal(load_gpt2(path, n_heads=HEADS)(tokens), ours(tokens))


@torch.no_grad()
def test_a_head_of_its_own_stays_one(gpt2, tmp_path):
    theirs, ours = gpt2
    path = tmp_path / "untied.safetensors"
    weights = {n: w.clone() for n, w in theirs.state_dict().items()}
    weights["lm_head.weight"] *= 2
    save_file(weights, path)
    untied, tokens = load_gpt2(path, n_heads=HEADS), ids()
    close(untied(tokens), 2 * ours(tokens))


def test_a_file_in_half_precision_makes_a_model_in_half_precision(tmp_path):
    path = saved(small_gpt2().to(torch.bfloat16), tmp_path)
    model = load_gpt2(path, n_heads=HEADS)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert model(ids()).dtype == torch.bfloat16
    assert not model.training


def test_a_file_that_does_not_fit_is_refused(gpt2, tmp_path):
    theirs, _ = gpt2
    weights = {n: w.clone() for n, w in theirs.state_dict().items()}
    path = tmp_path / "model.safetensors"

    def refused(changed, match, load=load_gpt2):
        save_file(changed, path)
        with pytest.raises(ValueError, match=match):
            load(path, n_heads=HEADS)

    lacking = {n: w for n, w in weights.items() if "h.1.ln_2.bias" not in n}
    refused(lacking, r"blocks.1.add_norm_2.norm.shift .* wants \(24,\).* None")
    more = weights | {"score.weight": torch.zeros(2, D)}
    refused(more, r"score.weight the model wants None and .* \(2, 24\)")
    # A name of ours is none of theirs: it was loaded, and scored with.
    ours = weights | {"head.weight": torch.zeros(11, D)}
    refused(ours, r"their head.weight the model wants None and")
    bent = weights | {"transformer.ln_f.bias": torch.zeros(D + 1)}
    refused(bent, r"norm.shift the model wants \(24,\) and .* \(25,\)")
    lacks = r"that is not empty, but for {}embed.tokens.weight .* has None"
    refused({"other": torch.zeros(1)}, lacks.format(""))
    refused(weights, lacks.format("encoder."), load_bert)


def test_the_heads_are_of_64_features_unless_told(tmp_path):
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=7, n_positions=5, n_embd=192, n_layer=1, n_head=3
        )
    )
    model = load_gpt2(saved(stirred(theirs), tmp_path))
    assert model.blocks[0].attention.n_heads == 3
    tokens = torch.tensor([[1, 2, 3, 4]])
    close(model(tokens), theirs(tokens).logits)


# BERT


def segments():
    return (torch.arange(N) > 4).long().expand(BATCH, -1)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    torch.manual_seed(0)
    theirs = small_bert()
    path = saved(theirs, tmp_path_factory.mktemp("bert"))
    return theirs, load_bert(path, n_heads=HEADS), path


@torch.no_grad()
@pytest.mark.parametrize("told", [False, True])
def test_bert_has_the_same_logits(bert, told):
    """Words, next sentence, with segments and padding and without."""
    theirs, ours, _ = bert
    tokens = ids()
    x = ours.encoder(
        tokens,
        segments=segments() if told else None,
        mask=REAL if told else None,
    )
    expected = theirs(
        tokens,
        token_type_ids=segments() if told else None,
        attention_mask=REAL[:, 0, 0].long() if told else None,
    )
    words = expected.prediction_logits
    if told:
        close(real_rows(ours.words(x)), real_rows(words))
    else:
        close(ours.words(x), words)
    follows = ours.next_sentence(ours.pooler(x))
    close(follows, expected.seq_relationship_logits)
    assert ours.words.words.weight is ours.encoder.embed.tokens.weight


@torch.no_grad()
def test_a_bert_without_heads_has_its_pooler(bert, tmp_path):
    """Its weights have no prefix, and its pooler has the names of ours."""
    theirs = bert[0].bert
    ours = load_bert(saved(theirs, tmp_path), n_heads=HEADS)
    assert ours.words is None and ours.next_sentence is None
    tokens = ids()
    found = ours.pooler(ours.encoder(tokens))
    close(found, theirs(tokens).pooler_output)


@torch.no_grad()
def test_bert_is_read_from_the_older_form_too(bert, tmp_path):
    """Norms with gamma and beta, a table of positions, the words' twice."""
    _, ours, path = bert
    older = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight
        for name, weight in load_file(path).items()
    }
    assert len(older.keys() - load_file(path).keys()) == 2 * (2 * LAYERS + 2)
    older["bert.embeddings.position_ids"] = torch.arange(29)[None]
    table = older["bert.embeddings.word_embeddings.weight"]
    older["cls.predictions.decoder.weight"] = table.clone()
    save_file(older, tmp_path / "older.safetensors")
    again = load_bert(tmp_path / "older.safetensors", n_heads=HEADS)
    tokens = ids()
    expected = ours.words(ours.encoder(tokens))
    assert torch.equal(again.words(again.encoder(tokens)), expected)


def with_encoder(model, tmp_path):
    """The encoder of a fine-tuned BERT, and no head."""
    stirred(model)
    path = tmp_path / "model.safetensors"
    weights = model.state_dict()
    save_file({n: w for n, w in weights.items() if n[:5] == "bert."}, path)
    ours = load_bert(path, n_heads=HEADS)
    assert ours.words is None
    assert ours.next_sentence is None
    return ours


@torch.no_grad()
def test_the_class_head_is_theirs(tmp_path):
    kind = transformers.BertForSequenceClassification
    theirs = kind(bert_config(num_labels=5))
    ours, head = with_encoder(theirs, tmp_path), ClassHead(D, 5)
    head.pooler.load_state_dict(ours.pooler.state_dict())
    head.classes.load_state_dict(theirs.classifier.state_dict())
    tokens = ids()
    close(head(ours.encoder(tokens)), theirs(tokens).logits)


@torch.no_grad()
def test_the_label_head_is_theirs(tmp_path):
    kind = transformers.BertForTokenClassification
    theirs = kind(bert_config(num_labels=5))
    ours, head = with_encoder(theirs, tmp_path), LabelHead(D, 5)
    assert ours.pooler is None
    head.labels.load_state_dict(theirs.classifier.state_dict())
    tokens = ids()
    close(head(ours.encoder(tokens)), theirs(tokens).logits)


@torch.no_grad()
def test_the_span_head_is_theirs(tmp_path):
    theirs = transformers.BertForQuestionAnswering(bert_config())
    ours, head = with_encoder(theirs, tmp_path), SpanHead(D)
    head.ends.load_state_dict(theirs.qa_outputs.state_dict())
    tokens = ids()
    start, end = head(ours.encoder(tokens, mask=REAL), mask=REAL)
    expected = theirs(tokens, attention_mask=REAL[:, 0, 0].long())
    close(real_rows(start), real_rows(expected.start_logits))
    close(real_rows(end), real_rows(expected.end_logits))
    assert (start[~REAL[:, 0, 0]] == -torch.inf).all()


# T5


def t5(attend):
    """Ours, with relative positions, RMSNorm, and no scale."""
    multihead = partial(MultiHeadAttention, attend=partial(attend, scale=1.0))
    options = {
        "pre": True,
        "norm": RMSNorm,
        "multihead": multihead,
        "feed_forward": partial(FeedForward, bias=False),
    }
    embed = Embedding(N_TOKENS, D)
    encoder = Encoder(
        embed,
        [EncoderBlock(D, HEADS, D_FF, **options) for _ in range(LAYERS)],
        norm=RMSNorm(D),
        relative=T5Bias(HEADS, n_buckets=6, max_distance=13),
    )
    return EncoderDecoder(
        encoder,
        embed,
        [DecoderBlock(D, HEADS, D_FF, **options) for _ in range(LAYERS + 1)],
        norm=RMSNorm(D),
        relative=T5Bias(HEADS, causal=True, n_buckets=6, max_distance=13),
    )


@pytest.fixture(scope="module")
def their_t5():
    torch.manual_seed(0)
    return small_t5()


def with_weights_of(theirs, ours, names, **changed):
    """Ours with the numbers of theirs, none left over."""
    weights = {n: w.clone() for n, w in theirs.state_dict().items()}
    weights.pop("shared.weight", None)
    weights = renamed(weights, names, "weights of theirs")
    for name, change in changed.items():
        weights[name] = change(weights[name])
    fill(ours, weights, "theirs")
    return ours.eval()


@torch.no_grad()
@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_t5_has_the_same_logits(their_t5, attend):
    """It divides the last vectors by √d, which a gain can do as well."""
    ours = with_weights_of(
        their_t5, t5(attend), T5_NAMES, **{"norm.gain": lambda g: g * D**-0.5}
    )
    source, target = ids(), ids(7)
    expected = their_t5(source, decoder_input_ids=target).logits
    close(ours(source, target), expected)
    padded = their_t5(
        source, attention_mask=REAL[:, 0, 0].long(), decoder_input_ids=target
    ).logits
    close(ours(source, target, mask=REAL), padded)
    assert (padded - expected).abs().max() > 0.01  # the padding mattered


@torch.no_grad()
def test_t5_writes_the_same_text(their_t5):
    ours = with_weights_of(
        their_t5,
        t5(fused_attention),
        T5_NAMES,
        **{"norm.gain": lambda g: g * D**-0.5},
    )
    source = ids()
    expected = their_t5.generate(
        source,
        attention_mask=REAL[:, 0, 0].long(),
        max_new_tokens=9,
        do_sample=False,
        use_cache=False,  # theirs takes the encoder's number of layers
    )
    step = partial(ours.step, memory=ours.read(source, mask=REAL))
    begun = torch.zeros(BATCH, 1, dtype=torch.long)
    assert torch.equal(complete(step, begun, 9), expected)
    assert torch.equal(complete(step, begun, 9, cached=False), expected)
    assert not torch.equal(expected[0], expected[1])


# The vision transformer

VIT_NAMES = {
    r"^vit\.embeddings\.cls_token": "encoder.embed.first",
    r"^vit\.embeddings\.position_embeddings": "encoder.embed.positions.table",
    r"^vit\.embeddings\.patch_embeddings\.projection": "encoder.embed.project",
    r"^vit\.layers\.": "encoder.blocks.",
    r"^vit\.layernorm\.": "encoder.norm.",
    r"\.attention\.(.)_proj\.": r".attention.W_\1.",
    r"\.mlp\.fc1\.": ".feed_forward.W_in.",
    r"\.mlp\.fc2\.": ".feed_forward.W_out.",
    r"\.layernorm_before\.": ".add_norm_1.norm.",
    r"\.layernorm_after\.": ".add_norm_2.norm.",
    r"^classifier\.": "head.",
}


@torch.no_grad()
def test_the_vision_transformer_has_the_same_logits():
    """Neither images nor patches are square."""
    theirs = small_vit(image_size=(15, 14), patch_size=(5, 7))
    norm = partial(LayerNorm, eps=1e-12)
    block = partial(
        EncoderBlock,
        pre=True,
        norm=norm,
        multihead=partial(MultiHeadAttention, projection_bias=True),
        feed_forward=partial(FeedForward, activation=gelu),
    )
    ours = with_weights_of(
        theirs,
        VisionTransformer(
            PatchEmbedding((15, 14), (5, 7), n_channels=2, d_model=D),
            [block(D, HEADS, D_FF) for _ in range(LAYERS)],
            13,
            norm=norm(D),
        ),
        VIT_NAMES,
        **{
            "encoder.embed.first": lambda w: w[0, 0],
            "encoder.embed.positions.table": lambda w: w[0],
            "encoder.embed.project.weight": lambda w: w.flatten(1),
        },
    )
    images = torch.randn(BATCH, 2, 15, 14)
    close(ours(images), theirs(images).logits)


# Llama


@torch.no_grad()
def test_llama_has_the_same_logits_and_writes_the_same_text():
    """Rotated halves, three query heads on a key head, a gate, RMSNorm."""
    theirs = small_llama(rms_norm_eps=1e-6)
    block = partial(
        EncoderBlock,
        pre=True,
        norm=RMSNorm,
        multihead=partial(
            MultiHeadAttention,
            n_kv_heads=2,
            rotate=rope_halves,
            attend=fused_attention,
        ),
        feed_forward=SwiGLU,
    )
    ours = with_weights_of(
        theirs,
        Decoder(
            Embedding(N_TOKENS, D),
            [block(D, 6, D_FF) for _ in range(LAYERS)],
            norm=RMSNorm(D),
            tied=False,
        ),
        LLAMA_NAMES,
    )
    tokens = ids()
    close(ours(tokens), theirs(tokens).logits)
    writes_the_same(ours, theirs)
    _, cache = ours.step(tokens)
    assert cache[0].k.shape == (BATCH, 2, N, 4)  # of two heads, not of six


# Choosing


@pytest.mark.parametrize("k", [1, 3, 31, 50])
def test_top_k_keeps_what_theirs_keeps(k):
    logits = torch.randn(7, N_TOKENS).round(decimals=1)  # some are equal
    theirs = transformers.TopKLogitsWarper(top_k=k)(None, logits)
    assert torch.equal(keep_top_k(logits, k), theirs)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.9, 1.0])
def test_top_p_keeps_what_theirs_keeps(p):
    logits = 2 * torch.randn(7, N_TOKENS)
    theirs = transformers.TopPLogitsWarper(top_p=p)(None, logits)
    assert torch.equal(keep_top_p(logits, p), theirs)
