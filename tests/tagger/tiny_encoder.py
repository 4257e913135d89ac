"""A tiny encoder of random weights in a folder of Hugging Face, for tests with torch."""

from __future__ import annotations

from pathlib import Path

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["rome", "wins", "kim", "lee", "in", "the", "goes", "to"]


def write_tiny(folder: Path, *, lower: bool = True, places: int = 96, width: int = 32) -> Path:
    """Write a BERT of two layers whose vocabulary has some words, and letters for all others."""
    import torch
    import transformers

    folder.mkdir()
    letters = [*LETTERS, *LETTERS.upper(), *"0123456789.,'-"]
    words = WORDS if lower else [*WORDS, *(word.title() for word in WORDS)]
    vocabulary = [*SPECIAL, *words, *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    tokenizer = transformers.BertTokenizerFast(
        vocab=str(folder / "vocab.txt"), do_lower_case=lower, model_max_length=places
    )
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=2 * width, max_position_embeddings=places,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        transformers.BertModel(config).save_pretrained(folder)
    return folder
