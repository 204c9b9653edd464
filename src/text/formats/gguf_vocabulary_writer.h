#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/gguf_writer.h"
#include "text/tokenizer.h"

namespace stagecraft {

// Adds the keys "tokenizer.ggml.*" that say what a tokenizer.json says: the way back from
// gguf_tokenizer.h. Byte-level BPE becomes "gpt2", if GGUF has a name ("pre") for how it cuts text;
// sentencepiece's BPE becomes "llama", with the rank of the first merge that makes a token as its
// score. That each token's own text, and some more, then make the same ids, is tried with the
// reader of our own.
//
//   description  what the tokenizer.json says; `where` names it in errors
//   n_rows       of the model's embedding: ids that no token has are filled up, unused
//   eos_ids      tokens that end a text; GGUF has names for three
//
// Throws Error naming what GGUF has no words for, or the text that would become other ids.
void add_gguf_vocabulary(GgufWriter& writer, const Json& description, const std::string& where,
                         std::size_t n_rows, std::span<const TokenId> eos_ids);

}  // namespace stagecraft
