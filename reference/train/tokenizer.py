"""Makes a byte-level BPE vocabulary in GPT-2's style and writes the two tokenizer files."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from tokenizers import trainers


def byte_level(texts, size, specials):
    """A vocabulary of `size` ids: the special tokens first, the 256 bytes, then learned merges."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, initial_alphabet=sorted(
            pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(s, special=True, normalized=False) for s in specials])
    t.train_from_iterator(texts, trainer)
    return t


def put_before(t, token):
    """Makes encode(..., add_special_tokens=True) add `token` before the text."""
    t.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token} $B:1",
        special_tokens=[(token, t.token_to_id(token))])


def save(t, folder, config):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    t.save(str(folder / "tokenizer.json"), pretty=False)
    save_config(folder, config)


def save_config(folder, config):
    config = {"add_bos_token": False, "clean_up_tokenization_spaces": False,
              "tokenizer_class": "PreTrainedTokenizerFast", **config}
    (Path(folder) / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
