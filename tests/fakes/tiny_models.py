"""Tiny random-weight configurations and a word-level tokenizer, for tests that need a model but none that is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = (
    "question answers title context colour of the is in who wrote played : ; ? . , a b c red blue green black white ball car door "
    "boat town north south east west film song book year first last one two three"
).split()


def word_tokenizer(kind: str) -> Any:
    """A fast word-level tokenizer in the manner of BERT ([CLS] a [SEP] b [SEP]) or T5 (a </s>)."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {"bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "t5": ["<pad>", "</s>", "<unk>"]}[kind]
    unknown = special[1] if kind == "bert" else special[2]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*special, *WORDS])}, unk_token=unknown))
    raw.normalizer = normalizers.Lowercase()
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind == "bert":
        raw.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
        )
    raw.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


ENCODER: dict[str, Any] = {  # of the tiny encoders
    "vocab_size": len(WORDS) + 4,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "initializer_range": 0.5,  # large, so that attention is far from uniform
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def tiny_bert_config(**changes: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(**{**ENCODER, "num_hidden_layers": 2, "max_position_embeddings": 96, **changes})


def tiny_mpnet_config(**changes: Any) -> Any:
    from transformers import MPNetConfig

    sizes = {"num_hidden_layers": 3, "max_position_embeddings": 170, "relative_attention_num_buckets": 32}
    return MPNetConfig(**{**ENCODER, **sizes, **changes})


def tiny_t5_config(**changes: Any) -> Any:
    from transformers import T5Config

    sizes = {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_heads": 4,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "dropout_rate": 0.0,
    }
    sizes |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 16}
    ids = {"vocab_size": len(WORDS) + 3, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    return T5Config(**{**sizes, **ids, **changes})


def tiny_decoder(path: Path) -> Path:
    """A Llama with random weights whose tokens are bytes, with the two control tokens of a chat, in the files of the packaged decoder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<|im_start|>", "<|im_end|>"]
    raw = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, []))
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    raw.add_special_tokens(tokens[-2:])
    end = len(tokens) - 1
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    ids = {"vocab_size": len(tokens), "pad_token_id": end, "bos_token_id": end - 1, "eos_token_id": end}
    torch.manual_seed(0)
    LlamaForCausalLM(
        LlamaConfig(**sizes, **ids, max_position_embeddings=8192, initializer_range=0.5, tie_word_embeddings=True)
    ).save_pretrained(path)
    raw.save(str(path / "tokenizer.json"))
    return path


def _folder(path: Path, model: Any, tokenizer: Any) -> Path:
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
