#pragma once

#include <filesystem>

#include "text/tokenizer_impl.h"

namespace stagecraft {

// The parts of a tokenizer as a sentencepiece tokenizer.model asks for them. Text that spells no
// control piece gives sentencepiece's own ids, and those give its text again, but that control
// pieces and the unknown one are shown as the file spells them.
//
// Around a text goes its begin-of-text piece, and none at the end; a tokenizer_config.json in the
// same folder may say otherwise ("add_bos_token", "add_eos_token"), and may hold tokens that were
// added to the model later ("added_tokens_decoder"), as an older added_tokens.json may. Throws
// Error naming the file and what is wrong.
Tokenizer::Impl read_sentencepiece(const std::filesystem::path& path);

}  // namespace stagecraft
