#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/sources.h"
#include "formats/gguf/writer.h"

namespace stagecraft {

// Adds the keys "tokenizer.ggml.*" for a tokenizer: the reverse of formats/gguf/tokenizer.h.
// Byte-level BPE becomes "gpt2", if GGUF has a name ("pre") for how it cuts text. Sentencepiece's
// BPE becomes "llama"; the score of a token is minus the rank of the first merge that makes it.
// Then our reader reads the result, and must give the same ids for the text of each token and for
// some test texts.
//
//   n_rows   rows of the model's embedding; ids without a token become unused tokens
//   eos_ids  tokens that end a text; GGUF has names for three
//
// Returns the special tokens (<unk>) beside which a text has other ids with GGUF's rules. Throws
// Error naming the part that GGUF cannot express, or another text that would become other ids.
std::vector<std::string> add_gguf_vocabulary(GgufWriter& writer, const SourceTokenizer& source,
                                             std::size_t n_rows, std::span<const TokenId> eos_ids);

// Adds only the keys of the tokens that end a text. `where` names the model in errors.
void add_gguf_end_tokens(GgufWriter& writer, std::span<const TokenId> eos_ids,
                         const std::string& where);

}  // namespace stagecraft
