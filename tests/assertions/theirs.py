"""Small models of transformers at random weights, for ours to equal.

Nothing is downloaded: each is built from a configuration, and every parameter
is drawn anew, since zeros and ones hide mistakes.
"""

import re
from functools import partial

import torch
import transformers
from torch import nn
from torch.testing import assert_close

from selfattn.masks import padding_mask

BATCH, N, N_TOKENS = 3, 11, 31
HEADS, D, D_FF, LAYERS = 3, 24, 37, 2
LENGTHS = torch.tensor([11, 4, 7])
REAL = padding_mask(LENGTHS, N)  # theirs: the same with two axes, as numbers

# Float32 rounds logits near 1 by 1e-7 in each of many sums; seen is 8e-7.
close = partial(assert_close, rtol=1e-5, atol=1e-5)


def stirred(model):
    """Every parameter at random; matrices so that features keep their size."""
    for name, parameter in model.named_parameters():
        std = 0.7 * parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.2
        nn.init.normal_(parameter, std=std)
        if re.search(r"(norm|ln_.)\w*\.weight$", name, re.IGNORECASE):
            parameter.data += 1
    return model.eval()


def ids(n=N):
    """Tokens, (BATCH, n)."""
    return torch.randint(N_TOKENS, (BATCH, n))


def saved(model, folder):
    """The file as transformers writes it."""
    model.save_pretrained(folder)
    return folder / "model.safetensors"


def small_llama(**options):
    """Three query heads on a key head."""
    return stirred(
        transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=N_TOKENS,
                hidden_size=D,
                intermediate_size=D_FF,
                num_hidden_layers=LAYERS,
                num_attention_heads=6,
                num_key_value_heads=2,
                bos_token_id=None,
                eos_token_id=None,
                **options,
            )
        )
    )


def small_t5():
    """One block more in the decoder, and few buckets."""
    config = transformers.T5Config(
        vocab_size=N_TOKENS,
        d_model=D,
        d_kv=D // HEADS,
        d_ff=D_FF,
        num_layers=LAYERS,
        num_decoder_layers=LAYERS + 1,
        num_heads=HEADS,
        relative_attention_num_buckets=6,
        relative_attention_max_distance=13,
        decoder_start_token_id=0,
        eos_token_id=None,
    )
    return stirred(transformers.T5ForConditionalGeneration(config))


def small_vit(**options):
    """For images of two channels, in thirteen classes."""
    return stirred(
        transformers.ViTForImageClassification(
            transformers.ViTConfig(
                hidden_size=D,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                intermediate_size=D_FF,
                num_channels=2,
                num_labels=13,
                **options,
            )
        )
    )


def small_gpt2():
    """Of few positions."""
    return stirred(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=N_TOKENS,
                n_positions=29,
                n_embd=D,
                n_layer=LAYERS,
                n_head=HEADS,
                n_inner=D_FF,
                bos_token_id=None,
                eos_token_id=None,
            )
        )
    )


def bert_config(**options):
    """Of two segments."""
    return transformers.BertConfig(
        vocab_size=N_TOKENS,
        hidden_size=D,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=D_FF,
        max_position_embeddings=29,
        type_vocab_size=2,
        hidden_act="gelu",
        **options,
    )


def small_bert():
    """With a head for words, and one for the next sentence."""
    return stirred(transformers.BertForPreTraining(bert_config()))
