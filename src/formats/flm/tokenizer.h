#pragma once

#include <string>

#include "base/json.h"
#include "formats/flm/file.h"

namespace stagecraft {

// Describes the vocabulary of a .flm file as a tokenizer.json. It has no scores and no merges, so
// text is encoded by the longest match from the left (longest_match.h). These ids may differ from
// those of the tokenizer with which the model was trained, but they stand for the same text. The
// spelling of a space shows the type of the vocabulary:
//   "▁"       sentencepiece's: a text begins with one, <0x0A> is a byte
//   "Ġ"       GPT-2's alphabet for bytes
//   neither   text as it is
// Special tokens are those written <|so|>, <s>, </s>, <unk> or <pad>, and those with the ids
// bos_token_id, eos_token_id, pad_token_id and unk_token_id of the file. "add_bos_token" says
// whether a text begins with bos_token_id; the default is true for a sentencepiece vocabulary only.
// Throws Error naming the token.
Json describe_flm_tokenizer(const FlmFile& file);

// A Jinja template made from the keys of the file: pre_prompt, then per exchange user_role, the
// question, bot_role, the answer, history_sep. A system message replaces pre_prompt. "" if the file
// has none of these keys.
std::string flm_chat_template(const FlmFile& file);

}  // namespace stagecraft
