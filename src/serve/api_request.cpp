#include "serve/api_request.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/json.h"
#include "base/utf8.h"
#include "serve/api_error.h"
#include "text/grammar/json_schema.h"
#include "text/tool_calls.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxTokens = 10'000'000;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 256;
constexpr std::size_t kMaxRepeatLastN = 1024;  // the cost of the penalty grows with its square
constexpr std::size_t kMaxTop = 20;
constexpr std::size_t kMaxGlassTop = 100;
constexpr std::size_t kDefaultCompletionTokens = 16;  // OpenAI's default
constexpr const char* kWhere = "request";

// The members of one JSON object. Remembers which ones were read, so that it can refuse the others.
class Fields {
 public:
  explicit Fields(JsonNode object) : object_(object) {}

  std::optional<JsonNode> find(const char* key) {
    known_.insert(key);
    return object_.find(key);
  }
  std::size_t size(const char* key, std::size_t min, std::size_t max, std::size_t otherwise) {
    return read(key, otherwise, [&](JsonNode v) { return json_size(v, kWhere, key, min, max); });
  }
  float number(const char* key, double min, double max, float otherwise) {
    return read(key, otherwise, [&](JsonNode v) {
      return static_cast<float>(json_number(v, kWhere, key, min, max));
    });
  }
  bool flag(const char* key, bool otherwise) {
    return read(key, otherwise, [&](JsonNode v) { return json_bool(v, kWhere, key); });
  }
  // Accepts these fields with any value: they do not influence the answer.
  void ignore(std::initializer_list<const char*> keys) {
    for (const char* key : keys) known_.insert(key);
  }
  // Accepts the field only with a value that changes nothing. neutral: these values, as a JSON
  // array.
  void only(const char* key, std::string_view neutral) {
    const std::optional<JsonNode> value = find(key);
    if (!value) return;
    const Json values(neutral, key);
    for (const JsonNode one : values.root().elements()) {
      if (one == *value) return;
    }
    throw ApiError::bad_request(
        key, fmt::format("{}: '{}': not supported, found {}", kWhere, key, value->describe()),
        "unsupported_parameter");
  }
  void refuse_others() const {
    for (const JsonNode value : object_.members()) {
      const std::string_view key = value.key();
      if (known_.contains(key) || value.is_null()) continue;
      throw ApiError::bad_request(printable(key),
                                  fmt::format("{}: '{}': unknown field", kWhere, printable(key)),
                                  "unknown_parameter");
    }
  }

 private:
  template <class T, class Read>
  T read(const char* key, T otherwise, Read convert) {
    const std::optional<JsonNode> value = find(key);
    if (!value) return otherwise;
    try {
      return convert(*value);
    } catch (const Error& problem) {
      throw ApiError::bad_request(key, problem.what());
    }
  }

  JsonNode object_;
  std::set<std::string, std::less<>> known_;
};

[[noreturn]] void expected(const std::string& key, std::string_view what, std::string_view found,
                           std::string code = "") {
  throw ApiError::bad_request(
      key, fmt::format("{}: '{}': expected {}, found {}", kWhere, key, what, found),
      std::move(code));
}

[[noreturn]] void expected(const std::string& key, std::string_view what,
                           std::optional<JsonNode> found) {
  expected(key, what, found ? found->describe() : "none");
}

// A string of the request. Throws ApiError if it is something else.
std::string text_of(JsonNode value, const std::string& key) {
  if (!value.is_string()) expected(key, "a string", value);
  return std::string(value.string());
}

void check_model(Fields& fields, const ServedModel& model) {
  const std::optional<JsonNode> value = fields.find("model");
  if (!value) return;
  check_model_name(text_of(*value, "model"), model);
}

std::vector<std::string> parse_stops(Fields& fields, const std::vector<std::string>& otherwise) {
  const std::optional<JsonNode> value = fields.find("stop");
  if (!value) return otherwise;
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

// The field has two names; returns the value of the one that is given.
std::size_t parse_max_tokens(Fields& fields, bool chat, std::size_t otherwise) {
  const std::size_t max_tokens = fields.size("max_tokens", 1, kMaxTokens, 0);
  const std::size_t newer = chat ? fields.size("max_completion_tokens", 1, kMaxTokens, 0) : 0;
  if (max_tokens != 0 && newer != 0 && max_tokens != newer) {
    expected("max_tokens", fmt::format("{} (max_completion_tokens)", newer),
             std::to_string(max_tokens));
  }
  return max_tokens != 0 ? max_tokens : newer != 0 ? newer : otherwise;
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

TextOptions parse_options(Fields& fields, const ServedModel& model, bool chat) {
  TextOptions options = model.defaults;
  GenerationOptions& generation = options.generation;
  if (!model.has_max_tokens) generation.max_tokens = chat ? kMaxTokens : kDefaultCompletionTokens;
  generation.max_tokens = parse_max_tokens(fields, chat, generation.max_tokens);
  SamplerOptions& sampler = generation.sampler;
  sampler.temperature = fields.number("temperature", 0, 100, sampler.temperature);
  sampler.top_p = fields.number("top_p", 0, 1, sampler.top_p);
  sampler.top_k = fields.size("top_k", 0, kMaxTokens, sampler.top_k);
  generation.repeat_penalty = fields.number("repeat_penalty", 0.01, 100, generation.repeat_penalty);
  generation.repeat_last_n =
      fields.size("repeat_last_n", 0, kMaxRepeatLastN, generation.repeat_last_n);
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
void parse_common(Fields& fields, CompletionRequest& request) {
  request.stream = fields.flag("stream", false);
  request.token_ids = fields.flag("return_token_ids", false);
  if (const std::optional<JsonNode> value = fields.find("stream_options")) {
    if (!value->is_object()) expected("stream_options", "an object", *value);
    if (!request.stream) expected("stream_options", "'stream' to be true", "false");
    Fields options(*value);
    request.include_usage = options.flag("include_usage", false);
    options.only("include_obfuscation", "[false]");
    options.refuse_others();
  }
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "cache_prompt"});
  fields.only("presence_penalty", "[0]");
  fields.only("frequency_penalty", "[0]");
  fields.only("logit_bias", "[{}, []]");
  fields.only("min_p", "[0]");
}

// Turns Error into ApiError, for functions that read a part of the request but do not know its
// fields.
template <class Read>
auto reading(const std::string& key, Read read) {
  try {
    return read();
  } catch (const ApiError&) {
    throw;
  } catch (const Error& problem) {
    throw ApiError::bad_request(key, problem.what());
  }
}

// Turns {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}, or {"type":
// "json_object"} with or without a "schema", into GBNF. Returns "" if any text is allowed.
std::string gbnf_of_format(JsonNode format) {
  const std::optional<JsonNode> type = format.is_object() ? format.find("type") : std::nullopt;
  if (!type || !type->is_string()) expected("response_format", "an object with a type", format);
  Fields fields(format);
  fields.ignore({"type"});
  std::string gbnf;
  if (type->string() == "json_schema") {
    const std::optional<JsonNode> named = fields.find("json_schema");
    if (!named || !named->is_object()) expected("response_format.json_schema", "an object", named);
    Fields members(*named);
    members.ignore({"name", "description", "strict"});  // the grammar is always strict
    const std::optional<JsonNode> schema = members.find("schema");
    if (!schema) expected("response_format.json_schema.schema", "a JSON Schema", schema);
    members.refuse_others();
    gbnf = json_schema_gbnf(*schema);
  } else if (type->string() == "json_object") {
    const std::optional<JsonNode> schema = fields.find("schema");
    gbnf = schema ? json_schema_gbnf(*schema) : json_object_gbnf();
  } else if (type->string() != "text") {
    expected("response_format.type", "'text', 'json_object' or 'json_schema'", type);
  }
  fields.refuse_others();
  return gbnf;
}

// Parses a grammar and remembers which field of the request gives it.
void set_grammar(CompletionRequest& request, TextOptions& options, const std::string& field,
                 const std::string& gbnf, const ServedModel& model) {
  request.grammar_field = field;
  options.grammar = reading(field, [&] {
    return std::make_shared<const TokenGrammar>(
        model.grammars->parse(gbnf, fmt::format("{}: '{}'", kWhere, field)));
  });
}

// The grammar that the text must follow, from the one field that gives it. Without such a field,
// any text is allowed.
void parse_grammar(Fields& fields, const ServedModel& model, CompletionRequest& request,
                   TextOptions& options) {
  const char* given = nullptr;
  std::string gbnf;
  const auto take = [&](const char* key, auto gbnf_of) {
    const std::optional<JsonNode> value = fields.find(key);
    if (!value) return;
    std::string found = reading(key, [&] { return gbnf_of(*value); });
    if (found.empty()) return;
    if (given != nullptr)
      expected(key, fmt::format("only one of '{}' and '{}'", given, key), "both");
    given = key;
    gbnf = std::move(found);
  };
  take("grammar", [](JsonNode value) { return text_of(value, "grammar"); });
  take("json_schema", [](JsonNode value) { return json_schema_gbnf(value); });
  take("response_format", gbnf_of_format);
  if (given != nullptr) set_grammar(request, options, given, gbnf, model);
}

void parse_choices(Fields& fields, const ServedModel& model, CompletionRequest& request,
                   TextRequest& text) {
  if (request.token_ids && !text.n_top) text.n_top = 0;  // 0: scores each token, lists no others
  request.n = fields.size("n", 1, model.max_texts, 1);
}

std::uint64_t parse_seed(Fields& fields, std::uint64_t otherwise) {
  return fields.size("seed", 0, SIZE_MAX, otherwise);
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
}

std::vector<TokenId> prompt_of(JsonNode value, const ServedModel& model) {
  if (value.is_array()) return ids_of(value, model, "prompt");
  if (!value.is_string()) expected("prompt", "a string or an array of token ids", value);
  try {
    return model.tokenizer->encode(value.string(), {.add_special = true});
  } catch (const Error& problem) {
    throw ApiError::bad_request("prompt", fmt::format("{}: 'prompt': {}", kWhere, problem.what()));
  }
}

// A string, an array of token ids, or an array of several strings or arrays of ids.
std::vector<std::vector<TokenId>> parse_prompts(Fields& fields, const ServedModel& model) {
  const std::optional<JsonNode> value = fields.find("prompt");
  if (!value) expected("prompt", "a string or an array", value);
  std::vector<std::vector<TokenId>> prompts;
  if (value->is_array() && value->size() != 0 && !(*value->elements().begin()).is_number()) {
    if (value->size() > model.max_texts) {
      expected("prompt", fmt::format("at most {} prompts", model.max_texts), *value);
    }
    for (const JsonNode one : value->elements()) prompts.push_back(prompt_of(one, model));
  } else {
    prompts.push_back(prompt_of(*value, model));
  }
  for (const auto& prompt : prompts) check_prompt(prompt, model, "prompt");
  return prompts;
}

// The content of a message: a string, or an array of text parts.
std::string content_of(JsonNode message, const std::string& where) {
  const std::string key = where + ".content";
  const std::optional<JsonNode> content = message.find("content");
  if (!content) expected(key, "a string or an array", content);
  if (!content->is_array()) return text_of(*content, key);
  std::string text;
  for (const JsonNode part : content->elements()) {
    const auto type = part.is_object() ? part.find("type") : std::nullopt;
    if (!type || !type->is_string() || type->string() != "text" || !part.find("text")) {
      expected(key, "parts of the type 'text'", part);
    }
    text += text_of(part.at("text"), key);
  }
  return text;
}

std::string required_text(Fields& fields, const char* key, const std::string& where) {
  const std::optional<JsonNode> value = fields.find(key);
  if (!value) expected(where + "." + key, "a string", value);
  return text_of(*value, where + "." + key);
}

bool is_function_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string function_name(Fields& fields, const std::string& where) {
  std::string name = required_text(fields, "name", where);
  if (is_function_name(name)) return name;
  expected(where + ".name", "1 to 64 letters, digits, _ or -", fields.find("name"));
}

// The object "function" of a tool, a call or a tool choice. Its "type" must be "function".
JsonNode function_of(JsonNode value, const std::string& where) {
  const std::optional<JsonNode> type = value.is_object() ? value.find("type") : std::nullopt;
  const std::optional<JsonNode> function = type ? value.find("function") : std::nullopt;
  if (!type || !type->is_string() || type->string() != "function" || !function ||
      !function->is_object()) {
    expected(where, "an object of the type 'function'", value);
  }
  return *function;
}

// Calls that the model made earlier in the conversation.
std::vector<ToolCall> parse_calls(Fields& message, const std::string& where) {
  std::vector<ToolCall> calls;
  const std::optional<JsonNode> value = message.find("tool_calls");
  if (!value) return calls;
  if (!value->is_array()) expected(where + ".tool_calls", "an array", value);
  for (const JsonNode call : value->elements()) {
    const std::string at = fmt::format("{}.tool_calls[{}]", where, calls.size());
    Fields function(function_of(call, at));
    Fields fields(call);
    fields.ignore({"type", "function", "index"});
    ToolCall made{required_text(fields, "id", at), function_name(function, at + ".function"),
                  required_text(function, "arguments", at + ".function")};
    fields.refuse_others();
    function.refuse_others();
    const std::string arguments = at + ".function.arguments";
    reading(arguments, [&] {
      return parse_json_object(made.arguments, fmt::format("{}: '{}'", kWhere, arguments));
    });
    calls.push_back(std::move(made));
  }
  return calls;
}

std::string one_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += fmt::format("{}'{}'", text.empty() ? "" : " or ", word);
  }
  return text;
}

// One message. Its role must be in `due`; `due` becomes the list of roles that may come next.
ToolMessage parse_message(JsonNode value, const std::string& where, std::vector<std::string>& due,
                          const std::vector<ToolCall>& last_calls) {
  if (!value.is_object()) expected(where, "an object", value);
  Fields members(value);
  const std::optional<JsonNode> given = members.find("role");
  std::string role = given ? text_of(*given, where + ".role") : "";
  if (role == "developer") role = "system";  // the newer name
  if (std::ranges::count(due, role) == 0) expected(where + ".role", one_of(due), given);
  members.ignore({"content", "name"});
  members.only("refusal", "[]");
  ToolMessage message;
  message.role = role;
  if (role == "assistant") {
    message.calls = parse_calls(members, where);
  } else {
    members.only("tool_calls", "[[]]");
  }
  if (role == "tool") {
    message.call_id = required_text(members, "tool_call_id", where);
    if (std::ranges::count(last_calls, message.call_id, &ToolCall::id) == 0) {
      expected(where + ".tool_call_id", "the id of a call in the last 'assistant' message",
               members.find("tool_call_id"));
    }
  }
  members.refuse_others();
  if (message.calls.empty() || value.find("content")) message.content = content_of(value, where);
  due = {"user"};
  if (role == "user") due = {"assistant"};
  if (role == "tool") due = {"tool", "assistant"};
  if (!message.calls.empty()) due = {"tool"};
  return message;
}

std::vector<ToolMessage> parse_messages(Fields& fields) {
  const std::optional<JsonNode> value = fields.find("messages");
  if (!value || !value->is_array() || value->size() == 0) {
    expected("messages", "an array of at least one message", value);
  }
  std::vector<ToolMessage> messages;
  std::vector<std::string> due = {"user", "system"};
  std::vector<ToolCall> last_calls;
  for (const JsonNode message : value->elements()) {
    messages.push_back(
        parse_message(message, fmt::format("messages[{}]", messages.size()), due, last_calls));
    if (messages.back().role == "assistant") last_calls = messages.back().calls;
  }
  const std::string& last = messages.back().role;
  if (last != "user" && last != "tool") {
    expected("messages", "the role 'user' or 'tool' in the last message",
             fmt::format("'{}'", last));
  }
  return messages;
}

// The functions that a chat may call, or must call.
struct Tools {
  std::optional<JsonNode> array;  // as given, for the chat template
  std::vector<Tool> callable;     // functions that this answer may call
  bool forced = false;
  bool several = true;
};

constexpr std::size_t kMaxTools = 128;

std::vector<Tool> parse_tool_list(JsonNode array) {
  if (!array.is_array() || array.size() > kMaxTools) {
    expected("tools", fmt::format("an array of at most {} functions", kMaxTools), array);
  }
  std::vector<Tool> tools;
  for (const JsonNode tool : array.elements()) {
    const std::string where = fmt::format("tools[{}]", tools.size());
    Fields function(function_of(tool, where));
    function.ignore({"description", "strict"});  // calls are always strict
    std::string name = function_name(function, where + ".function");
    if (std::ranges::count(tools, name, &Tool::name) != 0) {  // a call could mean either
      expected(where + ".function.name", "a name that no tool before it has",
               function.find("name"));
    }
    tools.push_back({std::move(name), function.find("parameters")});
    function.refuse_others();
  }
  return tools;
}

Tools parse_tools(Fields& fields, const ServedModel& model) {
  Tools tools;
  tools.several = fields.flag("parallel_tool_calls", true);
  fields.only("functions", "[[]]");
  fields.only("function_call", R"(["none", "auto"])");
  const std::optional<JsonNode> choice = fields.find("tool_choice");
  const std::optional<JsonNode> array = fields.find("tools");
  if (!array || (array->is_array() && array->size() == 0)) {
    fields.only("tool_choice", R"(["none", "auto"])");
    return tools;
  }
  tools.callable = parse_tool_list(*array);
  if (model.chat != nullptr && model.chat->tool_form() == ToolForm::None) {
    throw ApiError::bad_request(
        "tools",
        fmt::format("{}: 'tools': not supported: the chat template of this model has no known "
                    "format of tool calls",
                    kWhere));
  }
  tools.array = array;
  if (!choice || (choice->is_string() && choice->string() == "auto")) return tools;
  if (choice->is_string() && choice->string() == "none") return {};
  tools.forced = true;
  if (choice->is_string() && choice->string() == "required") return tools;
  if (!choice->is_object()) {
    expected("tool_choice", "'none', 'auto', 'required' or a function", choice);
  }
  Fields function(function_of(*choice, "tool_choice"));
  const std::string name = function_name(function, "tool_choice.function");
  std::erase_if(tools.callable, [&](const Tool& tool) { return tool.name != name; });
  if (tools.callable.empty()) {
    expected("tool_choice", "the name of one of the tools", function.find("name"));
  }
  return tools;
}

std::vector<TokenId> chat_prompt(const std::vector<ToolMessage>& messages, const Tools& tools,
                                 const ServedModel& model) {
  if (model.chat == nullptr) throw ApiError::bad_request("", model.why_no_chat);
  const bool has_calls = std::ranges::any_of(messages, [](const ToolMessage& message) {
    return !message.calls.empty() || message.role == "tool";
  });
  if (has_calls && model.chat->tool_form() == ToolForm::None) {
    throw ApiError::bad_request(
        "messages", fmt::format("{}: 'messages': tool calls are not supported by the chat "
                                "template of this model",
                                kWhere));
  }
  std::vector<TokenId> tokens;
  try {
    if (has_calls || tools.array) {
      tokens = model.chat->tokens(messages, tools.array);
    } else {
      tokens = model.chat->tokens(std::vector<Message>(messages.begin(), messages.end()));
    }
  } catch (const Error& problem) {
    throw ApiError::bad_request("messages",
                                fmt::format("{}: 'messages': {}", kWhere, problem.what()));
  }
  check_prompt(tokens, model, "messages");
  return tokens;
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
  throw ApiError(404, "invalid_request_error", "model", "model_not_found",
                 fmt::format("{}: 'model': expected '{}', found '{}'", kWhere, model.names.front(),
                             printable(name)));
}

Json parse_body(std::string_view body) {
  try {
    check_utf8(kWhere, body);
    return parse_json_object(body, kWhere);
  } catch (const Error& problem) {
    throw ApiError::bad_request("", problem.what());
  }
}

CompletionRequest parse_completion(std::string_view body, const ServedModel& model,
                                   std::uint64_t random_seed) {
  const Json json = parse_body(body);
  Fields fields(json.root());
  CompletionRequest request;
  check_model(fields, model);
  parse_common(fields, request);
  TextRequest text;
  text.options = parse_options(fields, model, false);
  text.seed = parse_seed(fields, random_seed);
  request.logprobs = fields.find("logprobs").has_value();
  if (request.logprobs) text.n_top = fields.size("logprobs", 0, kMaxTop, 0);
  parse_choices(fields, model, request, text);
  fields.only("best_of", fmt::format("[{}]", request.n));
  fields.only("echo", "[false]");
  fields.only("suffix", R"([""])");
  parse_grammar(fields, model, request, text.options);
  const std::vector<std::vector<TokenId>> prompts = parse_prompts(fields, model);
  fields.refuse_others();
  request.texts = texts_of(prompts, request.n, text, model);
  return request;
}

CompletionRequest parse_chat_completion(std::string_view body, const ServedModel& model,
                                        std::uint64_t random_seed) {
  const Json json = parse_body(body);
  Fields fields(json.root());
  CompletionRequest request;
  request.chat = true;
  check_model(fields, model);
  parse_common(fields, request);
  TextRequest text;
  text.options = parse_options(fields, model, true);
  text.seed = parse_seed(fields, random_seed);
  const std::size_t top = fields.size("top_logprobs", 0, kMaxTop, 0);
  request.logprobs = fields.flag("logprobs", false);
  if (request.logprobs) {
    text.n_top = top;
  } else if (top != 0) {
    expected("top_logprobs", "'logprobs' to be true", "false");
  }
  parse_choices(fields, model, request, text);
  parse_grammar(fields, model, request, text.options);
  const Tools tools = parse_tools(fields, model);
  fields.only("modalities", R"([["text"]])");
  const std::vector<ToolMessage> messages = parse_messages(fields);
  fields.refuse_others();
  if (!tools.callable.empty() && model.chat != nullptr) {
    if (text.options.grammar) {
      throw ApiError::bad_request(
          "tools",
          fmt::format(
              "{}: 'tools': not supported together with a grammar or a format of the answer",
              kWhere));
    }
    request.tool_form = model.chat->tool_form();
    const std::string gbnf = reading("tools", [&] {
      return tool_gbnf(request.tool_form, tools.callable, tools.forced, tools.several);
    });
    set_grammar(request, text.options, "tools", gbnf, model);
  }
  const auto& ends = model.chat == nullptr ? std::vector<TokenId>() : model.chat->end_tokens();
  auto& end_tokens = text.options.generation.end_tokens;
  end_tokens.insert(end_tokens.end(), ends.begin(), ends.end());
  request.texts = texts_of({chat_prompt(messages, tools, model)}, request.n, text, model);
  return request;
}

GlassRequest parse_glass(std::string_view body, const ServedModel& model, GlassView view) {
  const Json json = parse_body(body);
  Fields fields(json.root());
  GlassRequest request;
  request.view = view;
  check_model(fields, model);
  const GenerationOptions generation = parse_options(fields, model, false).generation;
  request.sampler = generation.sampler;
  request.repeat_penalty = generation.repeat_penalty;
  request.repeat_last_n = generation.repeat_last_n;
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
  Fields fields(json.root());
  check_model(fields, model);
  const std::optional<JsonNode> content = fields.find("content");
  if (!content) expected("content", "a string", std::nullopt);
  const std::string text = text_of(*content, "content");
  const bool add_special = fields.flag("add_special", false);
  const bool parse_special = fields.flag("parse_special", true);
  fields.refuse_others();
  try {
    return model.tokenizer->encode(text,
                                   {.parse_special = parse_special, .add_special = add_special});
  } catch (const Error& problem) {
    throw ApiError::bad_request("content", problem.what());
  }
}

}  // namespace stagecraft
