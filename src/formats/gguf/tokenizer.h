#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "formats/gguf/metadata.h"

namespace stagecraft {

// Describes the vocabulary in the metadata of a GGUF file ("tokenizer.ggml.*") as a tokenizer.json,
// so that one tokenizer implementation serves all formats:
//   model "gpt2"    byte-level BPE; the name in "tokenizer.ggml.pre" says how text is cut
//   model "llama"   sentencepiece BPE; the scores of tokens decide what merges
//   model "gemma4"  the same with a list of merges
// Control and unknown tokens become special added tokens, user-defined tokens become added tokens,
// unused tokens are left out. Throws Error naming the key if something is missing, wrong or not
// supported.
Json describe_gguf_tokenizer(const GgufMetadata& metadata);

// An error message about this description, with the keys of the GGUF file in place of the fields of
// a tokenizer.json. Nothing is replaced in the file's name, with which it may begin.
std::string with_gguf_token_keys(std::string_view message, std::string_view file);

}  // namespace stagecraft
