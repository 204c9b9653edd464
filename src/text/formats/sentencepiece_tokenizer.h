#pragma once

#include <filesystem>

#include "text/tokenizer_impl.h"

namespace stagecraft {

// The components of a tokenizer for a sentencepiece tokenizer.model. Text that spells no control
// piece gives the same ids as sentencepiece. Decoding gives the same text, except that control
// pieces and the unknown piece are shown as the file spells them.
//
// The begin-of-text piece is put before a text, and nothing after it. A tokenizer_config.json in
// the same folder may change this ("add_bos_token", "add_eos_token"). It may also contain tokens
// that were added to the model later ("added_tokens_decoder"), as may an older added_tokens.json.
// Throws Error naming the file and the problem.
Tokenizer::Impl read_sentencepiece(const std::filesystem::path& path);

}  // namespace stagecraft
