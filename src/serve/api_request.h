#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/glass_box.h"
#include "serve/scheduler.h"
#include "text/chat_format.h"
#include "text/grammar/token_grammar.h"

namespace stagecraft {

// What the parsing of a request needs to know of the model.
struct ServedModel {
  std::vector<std::string> names;  // that it answers to; the first is what answers call it
  const Tokenizer* tokenizer = nullptr;
  const ChatFormat* chat = nullptr;  // null: the model is not for chats
  std::string why_no_chat;
  TokenGrammars* grammars = nullptr;
  std::size_t vocab_size = 0;  // rows of the embedding
  std::size_t context = 0;
  std::string plan;             // as text, for a person
  std::size_t max_texts = 16;   // of one request
  TextOptions defaults;         // for what a request does not name
  bool has_max_tokens = false;  // do the defaults name max_tokens?
  std::optional<std::uint64_t> seed;
};

// A request for text, read and checked.
struct CompletionRequest {
  bool chat = false;
  bool stream = false;
  bool include_usage = false;  // in a stream; an answer in one piece always has it
  bool logprobs = false;
  bool token_ids = false;               // the answer has the token ids of prompts and texts
  std::size_t n = 1;                    // texts per prompt
  ToolForm tool_form = ToolForm::None;  // of calls that may be in the answer
  // What is to be made: n texts per prompt, prompt by prompt. With the seed s, choice i of a prompt
  // has the seed s + i.
  std::vector<TextRequest> texts;
};

// Throws ApiError (404) if the model does not answer to this name.
void check_model_name(const std::string& name, const ServedModel& model);

// The body of any POST, an object. Throws ApiError where it is no such JSON or no UTF-8.
Json parse_body(std::string_view body);

// The bodies of POST /v1/completions and /v1/chat/completions, as OpenAI defines them. A field that
// is unknown, or that would change the answer and is not supported, is refused by name; fields that
// cannot change the answer are accepted. random_seed: for a request that names none.
// Throws ApiError; looks at nothing but its arguments.
CompletionRequest parse_completion(std::string_view body, const ServedModel& model,
                                   std::uint64_t random_seed);
CompletionRequest parse_chat_completion(std::string_view body, const ServedModel& model,
                                        std::uint64_t random_seed);

// The body of POST /glass/...: {"tokens": IDS, "next": ID, "top": N} and the sampling options of a
// completion.
GlassRequest parse_glass(std::string_view body, const ServedModel& model, GlassView view);

// The body of POST /tokenize: {"content": TEXT, "add_special": BOOL, "parse_special": BOOL}.
std::vector<TokenId> parse_tokenize(std::string_view body, const ServedModel& model);

}  // namespace stagecraft
