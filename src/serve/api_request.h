#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/plan.h"
#include "serve/answer.h"
#include "serve/glass_request.h"
#include "serve/text_request.h"
#include "text/chat_format.h"
#include "text/grammar/token_grammar.h"

namespace stagecraft {

// What the parser of requests needs to know about the model.
struct ServedModel {
  std::vector<std::string> names;  // names that clients may use; answers contain the first
  const Tokenizer* tokenizer = nullptr;
  const ChatFormat* chat = nullptr;  // null if the model has no usable chat template
  std::string why_no_chat;
  TokenGrammars* grammars = nullptr;
  std::size_t vocab_size = 0;  // rows of the embedding table
  std::size_t context = 0;     // the most tokens of a text, prompt included
  std::string plan;            // the plan as text, for people to read
  std::optional<PromptRule> prompt_rule;
  std::size_t max_texts = 16;   // the most texts per request
  TextOptions defaults;         // values of fields that a request leaves out
  bool has_max_tokens = false;  // true if the defaults name max_tokens
  std::optional<std::uint64_t> seed;
};

// A request for text, parsed and checked.
struct CompletionRequest : AnswerForm {
  bool token_ids = false;  // put the token ids of prompts and texts into the answer
  // The texts to generate: n per prompt, all texts of a prompt together. If the request has the
  // seed s, choice i of a prompt has the seed s + i.
  std::vector<TextRequest> texts;
};

// Throws ApiError (404) if the model does not answer to this name.
void check_model_name(const std::string& name, const ServedModel& model);

// Parses the body of any POST. Throws ApiError if it is not UTF-8 or not a JSON object.
Json parse_body(std::string_view body);

// Parse the bodies of POST /v1/completions and /v1/chat/completions, as OpenAI defines them. They
// accept fields that cannot change the answer. They refuse, by name, every unknown field, and every
// field that would change the answer but is not supported. random_seed: the seed for a request
// without one.
// They throw ApiError, and depend on nothing but their arguments.
CompletionRequest parse_completion(std::string_view body, const ServedModel& model,
                                   std::uint64_t random_seed);
CompletionRequest parse_chat_completion(std::string_view body, const ServedModel& model,
                                        std::uint64_t random_seed);

// Parses the body of POST /glass/...: {"tokens": IDS, "next": ID, "top": N} and the sampling
// options of a completion.
GlassRequest parse_glass(std::string_view body, const ServedModel& model, GlassView view);

// Parses the body of POST /tokenize: {"content": TEXT, "add_special": BOOL, "parse_special": BOOL}.
std::vector<TokenId> parse_tokenize(std::string_view body, const ServedModel& model);

}  // namespace stagecraft
