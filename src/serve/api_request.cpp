#include "serve/api_request.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "base/number.h"
#include "base/utf8.h"
#include "model/placement.h"
#include "serve/chat_fields.h"
#include "serve/grammar_fields.h"
#include "serve/request_fields.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 256;
constexpr std::size_t kMaxRepeatLastN = 1024;  // the cost of the penalty grows with its square
constexpr NumberRange kPenalties = {-2, 2};    // as OpenAI
constexpr NumberRange kBiases = {-100, 100};   // as OpenAI
constexpr std::size_t kMaxTop = 20;
constexpr std::size_t kMaxGlassTop = 100;
constexpr std::size_t kDefaultCompletionTokens = 16;  // OpenAI's default

void check_model(RequestFields& fields, const ServedModel& model) {
  if (fields.find("model")) check_model_name(fields.text("model"), model);
}

std::vector<std::string> parse_stops(RequestFields& fields,
                                     const std::vector<std::string>& default_value) {
  const std::optional<JsonNode> value = fields.find("stop");
  if (!value) return default_value;
  std::vector<std::string> stops;
  if (value->is_string()) {
    stops.emplace_back(value->string());
  } else {
    if (!value->is_array() || value->size() > kMaxStops) {
      expected("stop", fmt::format("a string, or an array of at most {} strings", kMaxStops),
               *value);
    }
    for (const JsonNode stop : value->elements()) stops.push_back(text_of(stop, "stop"));
  }
  for (const std::string& stop : stops) {
    if (!stop.empty() && stop.size() <= kMaxStopBytes) continue;
    expected("stop", fmt::format("texts of 1 to {} bytes", kMaxStopBytes),
             std::to_string(stop.size()));
  }
  return stops;
}

// -1 stands for no limit, as in llama-server and vLLM.
bool is_no_limit(const std::optional<JsonNode>& value) {
  return value && value->is_number() && value->number() == -1;
}

// The field has two names; returns the value of the one that is given.
std::size_t parse_max_tokens(RequestFields& fields, bool chat, std::size_t default_value) {
  const auto read = [&](const char* key) -> std::size_t {
    if (is_no_limit(fields.find(key))) return kMostTokens;
    return fields.size(key, 1, kMostTokens, 0);
  };
  const std::size_t max_tokens = read("max_tokens");
  const std::size_t newer = chat ? read("max_completion_tokens") : 0;
  if (max_tokens != 0 && newer != 0 && max_tokens != newer) {
    const std::string other = fields.find("max_completion_tokens")->describe();
    expected("max_tokens", "the value of 'max_completion_tokens', " + other,
             fields.find("max_tokens"));
  }
  return max_tokens != 0 ? max_tokens : newer != 0 ? newer : default_value;
}

std::vector<TokenId> ids_of(JsonNode array, const ServedModel& model, const char* key) {
  std::vector<TokenId> ids;
  const auto n_tokens = static_cast<std::int64_t>(model.vocab_size);
  for (const JsonNode id : array.elements()) {
    if (!id.is_integer() || id.integer() < 0 || id.integer() >= n_tokens) {
      expected(key, fmt::format("token ids from 0 to {}", n_tokens - 1), id);
    }
    ids.push_back(static_cast<TokenId>(id.integer()));
  }
  return ids;
}

// Added to logits: an object with members "ID": NUMBER, or an empty array.
std::vector<std::pair<TokenId, float>> parse_bias(RequestFields& fields, const ServedModel& model) {
  std::vector<std::pair<TokenId, float>> biases;
  const std::optional<JsonNode> value = fields.find("logit_bias");
  if (!value || (value->is_array() && value->size() == 0)) return biases;
  if (!value->is_object()) expected("logit_bias", "an object", *value);
  std::unordered_set<std::uint64_t> seen;
  for (const JsonNode bias : value->members()) {
    const std::optional<std::uint64_t> token = integer_of<std::uint64_t>(bias.key());
    if (!token || *token >= model.vocab_size) {
      expected("logit_bias", fmt::format("token ids from 0 to {}", model.vocab_size - 1),
               "'" + printable(bias.key()) + "'");
    }
    if (!seen.insert(*token).second) {
      expected("logit_bias", "each token id once", "'" + printable(bias.key()) + "' again");
    }
    const std::string field = fmt::format("logit_bias.{}", *token);
    const double number = reading(
        field, [&] { return json_number(bias, kRequest, field, kBiases.min, kBiases.max); });
    biases.emplace_back(static_cast<TokenId>(*token), static_cast<float>(number));
  }
  return biases;
}

TextOptions parse_options(RequestFields& fields, const ServedModel& model, bool chat) {
  TextOptions options = model.defaults;
  GenerationOptions& generation = options.generation;
  if (!model.has_max_tokens) generation.max_tokens = chat ? kMostTokens : kDefaultCompletionTokens;
  generation.max_tokens = parse_max_tokens(fields, chat, generation.max_tokens);
  SamplerOptions& sampler = generation.sampler;
  sampler.temperature = fields.number("temperature", kTemperatures, sampler.temperature);
  sampler.top_p = fields.number("top_p", kTopPs, sampler.top_p);
  sampler.top_k =
      is_no_limit(fields.find("top_k")) ? 0 : fields.size("top_k", 0, kMostTokens, sampler.top_k);
  constexpr const char* kOwnName = "repeat_penalty";
  constexpr const char* kNameOfVllm = "repetition_penalty";
  const bool has_name_of_vllm = fields.find(kNameOfVllm).has_value();
  if (has_name_of_vllm && fields.find(kOwnName)) {
    expected(kOwnName, fmt::format("only one of '{}' and '{}'", kNameOfVllm, kOwnName), "both");
  }
  const char* penalty = has_name_of_vllm ? kNameOfVllm : kOwnName;
  generation.repeat_penalty = fields.number(penalty, kRepeatPenalties, generation.repeat_penalty);
  generation.repeat_last_n =
      fields.size("repeat_last_n", 0, kMaxRepeatLastN, generation.repeat_last_n);
  options.rules.min_p = fields.number("min_p", kMinPs, options.rules.min_p);
  options.stops = parse_stops(fields, options.stops);
  if (const std::optional<JsonNode> value = fields.find("stop_token_ids")) {
    if (!value->is_array() || value->size() > kMaxStops) {
      expected("stop_token_ids", fmt::format("an array of at most {} token ids", kMaxStops), value);
    }
    const std::vector<TokenId> ids = ids_of(*value, model, "stop_token_ids");
    generation.end_tokens.insert(generation.end_tokens.end(), ids.begin(), ids.end());
  }
  return options;
}

// The other fields that both kinds of request have, and the fields that both refuse.
void parse_common(RequestFields& fields, CompletionRequest& request) {
  request.stream = fields.flag("stream", false);
  request.token_ids = fields.flag("return_token_ids", false);
  if (const std::optional<JsonNode> value = fields.find("stream_options")) {
    if (!value->is_object()) expected("stream_options", "an object", *value);
    if (!request.stream) expected("stream_options", "'stream' to be true", "false");
    RequestFields options(*value, "stream_options");
    request.include_usage = options.flag("include_usage", false);
    options.only("include_obfuscation", "[false]");
    options.refuse_others();
  }
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention", "cache_prompt", "prediction"});
}

// The rules that a server has no defaults for.
void parse_rules(RequestFields& fields, const ServedModel& model, LogitRules& rules) {
  rules.presence_penalty = fields.number("presence_penalty", kPenalties, 0.0f);
  rules.frequency_penalty = fields.number("frequency_penalty", kPenalties, 0.0f);
  rules.bias = parse_bias(fields, model);
}

// The number of answers, which the API calls choices, and what is told of their tokens. Called
// after `logprobs` was read.
void parse_choices(RequestFields& fields, const ServedModel& model, CompletionRequest& request,
                   TextRequest& text) {
  if (request.token_ids && !text.n_top) text.n_top = 0;  // scores each token, lists no others
  request.n = fields.size("n", 1, model.max_texts, 1);
}

std::uint64_t parse_seed(RequestFields& fields, std::uint64_t default_value) {
  const std::optional<JsonNode> value = fields.find("seed");
  if (value && value->is_integer() && value->integer() < 0) {
    return static_cast<std::uint64_t>(value->integer());
  }
  try {
    return fields.size("seed", 0, SIZE_MAX, default_value);
  } catch (const ApiError&) {  // which says nothing of negative numbers
    expected("seed", "a whole number from -9223372036854775808 to 18446744073709551615", value);
  }
}

// Checks tokens that the model computes directly: each must be a row of the embedding table.
void check_prompt(const std::vector<TokenId>& tokens, const ServedModel& model,
                  const std::string& param) {
  if (tokens.empty() || tokens.size() > model.context) {
    expected(param, fmt::format("1 to {} tokens (the context)", model.context),
             std::to_string(tokens.size()), tokens.empty() ? "" : "context_length_exceeded");
  }
  for (const TokenId token : tokens) {
    if (token >= 0 && static_cast<std::size_t>(token) < model.vocab_size) continue;
    expected(param, fmt::format("token ids from 0 to {}", model.vocab_size - 1),
             std::to_string(token));
  }
  if (!model.prompt_rule) return;
  const std::string problem = prompt_problem(*model.prompt_rule, tokens);
  if (!problem.empty()) refuse_field(param, problem);
}

std::vector<TokenId> prompt_of(JsonNode value, const ServedModel& model) {
  if (value.is_array()) return ids_of(value, model, "prompt");
  if (!value.is_string()) expected("prompt", "a string or an array of token ids", value);
  try {
    return model.tokenizer->encode(value.string(), {.add_special = true});
  } catch (const Error& problem) {
    refuse_field("prompt", problem.what());
  }
}

// A string, an array of token ids, or an array of several strings or arrays of ids.
std::vector<std::vector<TokenId>> parse_prompts(RequestFields& fields, const ServedModel& model) {
  const JsonNode value = fields.needed("prompt", "a string or an array");
  std::vector<std::vector<TokenId>> prompts;
  if (value.is_array() && value.size() != 0 && !(*value.elements().begin()).is_number()) {
    if (value.size() > model.max_texts) {
      expected("prompt", fmt::format("at most {} prompts", model.max_texts), value);
    }
    for (const JsonNode one : value.elements()) prompts.push_back(prompt_of(one, model));
  } else {
    prompts.push_back(prompt_of(value, model));
  }
  for (const auto& prompt : prompts) check_prompt(prompt, model, "prompt");
  return prompts;
}

// n texts per prompt, each like `like` with its own seed.
std::vector<TextRequest> texts_of(const std::vector<std::vector<TokenId>>& prompts, std::size_t n,
                                  const TextRequest& like, const ServedModel& model) {
  if (prompts.size() * n > model.max_texts) {
    expected("n", fmt::format("at most {} texts in all", model.max_texts),
             std::to_string(prompts.size() * n));
  }
  std::vector<TextRequest> texts;
  for (const auto& prompt : prompts) {
    for (std::size_t i = 0; i < n; ++i) {
      texts.push_back(like);
      texts.back().prompt = prompt;
      texts.back().seed += i;
    }
  }
  return texts;
}

}  // namespace

void check_model_name(const std::string& name, const ServedModel& model) {
  if (std::ranges::count(model.names, name) != 0) return;
  throw ApiError(404, "model", "model_not_found",
                 fmt::format("{}: 'model': expected '{}', found '{}'", kRequest,
                             fmt::join(model.names, "' or '"), printable(name)));
}

Json parse_body(std::string_view body) {
  try {
    check_utf8(kRequest, body);
    return parse_json_object(body, kRequest);
  } catch (const Error& problem) {
    throw ApiError::bad_request("", problem.what());
  }
}

CompletionRequest parse_completion(std::string_view body, const ServedModel& model,
                                   std::uint64_t random_seed) {
  const Json json = parse_body(body);
  RequestFields fields(json.root());
  CompletionRequest request;
  check_model(fields, model);
  parse_common(fields, request);
  TextRequest text;
  text.options = parse_options(fields, model, false);
  parse_rules(fields, model, text.options.rules);
  text.seed = parse_seed(fields, random_seed);
  request.logprobs = fields.find("logprobs").has_value();
  if (request.logprobs) text.n_top = fields.size("logprobs", 0, kMaxTop, 0);
  parse_choices(fields, model, request, text);
  fields.only("best_of", fmt::format("[{}]", request.n));
  fields.only("echo", "[false]");
  fields.only("suffix", R"([""])");
  set_grammar(request, text.options, parse_grammar(fields), *model.grammars);
  const std::vector<std::vector<TokenId>> prompts = parse_prompts(fields, model);
  fields.refuse_others();
  request.texts = texts_of(prompts, request.n, text, model);
  return request;
}

CompletionRequest parse_chat_completion(std::string_view body, const ServedModel& model,
                                        std::uint64_t random_seed) {
  const Json json = parse_body(body);
  RequestFields fields(json.root());
  CompletionRequest request;
  request.chat = true;
  check_model(fields, model);
  if (model.chat == nullptr) throw ApiError::bad_request("", model.why_no_chat);
  parse_common(fields, request);
  TextRequest text;
  text.options = parse_options(fields, model, true);
  parse_rules(fields, model, text.options.rules);
  text.seed = parse_seed(fields, random_seed);
  const std::size_t top = fields.size("top_logprobs", 0, kMaxTop, 0);
  request.logprobs = fields.flag("logprobs", false);
  if (request.logprobs) {
    text.n_top = top;
  } else if (top != 0) {
    expected("top_logprobs", "'logprobs' to be true", "false");
  }
  parse_choices(fields, model, request, text);
  const GivenGrammar grammar = parse_grammar(fields);
  const ChatTools tools = parse_tools(fields, *model.chat);
  fields.only("modalities", R"([["text"]])");
  const std::vector<ToolMessage> messages = parse_messages(fields);
  const TemplateVariables variables = parse_template_variables(fields, *model.chat);
  fields.refuse_others();
  // The prompt is checked first: a grammar takes longer.
  const std::vector<TokenId> prompt = chat_prompt(messages, tools, variables, *model.chat);
  check_prompt(prompt, model, "messages");
  if (!tools.callable.empty()) {
    request.tool_form = model.chat->tool_form();
    set_tool_grammar(request, text.options, grammar, tools, *model.grammars);
  } else {
    set_grammar(request, text.options, grammar, *model.grammars);
  }
  const std::vector<TokenId>& ends = model.chat->end_tokens();
  auto& end_tokens = text.options.generation.end_tokens;
  end_tokens.insert(end_tokens.end(), ends.begin(), ends.end());
  request.texts = texts_of({prompt}, request.n, text, model);
  return request;
}

GlassRequest parse_glass(std::string_view body, const ServedModel& model, GlassView view) {
  const Json json = parse_body(body);
  RequestFields fields(json.root());
  GlassRequest request;
  request.view = view;
  check_model(fields, model);
  const TextOptions options = parse_options(fields, model, false);
  const GenerationOptions& generation = options.generation;
  request.sampler = generation.sampler;
  request.repeat_penalty = generation.repeat_penalty;
  request.repeat_last_n = generation.repeat_last_n;
  request.min_p = options.rules.min_p;
  request.top = fields.size("top", 1, kMaxGlassTop, request.top);
  const std::optional<JsonNode> tokens = fields.find("tokens");
  if (!tokens || !tokens->is_array()) expected("tokens", "an array of token ids", tokens);
  request.tokens = ids_of(*tokens, model, "tokens");
  check_prompt(request.tokens, model, "tokens");
  if (fields.find("next")) {
    request.next = static_cast<TokenId>(fields.size("next", 0, model.vocab_size - 1, 0));
  }
  fields.refuse_others();
  return request;
}

std::vector<TokenId> parse_tokenize(std::string_view body, const ServedModel& model) {
  const Json json = parse_body(body);
  RequestFields fields(json.root());
  check_model(fields, model);
  const std::string text = fields.text("content");
  const bool add_special = fields.flag("add_special", false);
  const bool parse_special = fields.flag("parse_special", true);
  fields.refuse_others();
  return reading("content", [&] {
    return model.tokenizer->encode(text,
                                   {.parse_special = parse_special, .add_special = add_special});
  });
}

}  // namespace stagecraft
