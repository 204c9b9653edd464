#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/flm.h"

namespace stagecraft {

// The vocabulary of a .flm file, described as a tokenizer.json does. It holds no scores and no
// merges, so text is encoded by the longest match from the left (longest_match.h): other ids than
// the tokenizer gives that the model was trained with, though the same text. How a space is spelt
// shows what the tokens are made of:
//   "▁"       sentencepiece's: a text begins with one, <0x0A> is a byte
//   "Ġ"       GPT-2's alphabet for bytes
//   neither   text as it is
// Tokens written <|so|>, <s>, </s>, <unk>, <pad>, and those that the pairs name by bos_token_id,
// eos_token_id, pad_token_id or unk_token_id are special. "add_bos_token" says whether a text
// begins with bos_token_id; without it sentencepiece's do. Throws Error naming the token.
Json describe_flm_tokenizer(const FlmFile& file);

// The Jinja template that spells a chat as the pairs say: pre_prompt, then for each exchange
// user_role, the question, bot_role, the answer, history_sep. A system message stands in place of
// pre_prompt. "" where the file has none of these keys.
std::string flm_chat_template(const FlmFile& file);

}  // namespace stagecraft
