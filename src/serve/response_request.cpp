#include "serve/response_request.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/json_text.h"
#include "serve/request_fields.h"

namespace stagecraft {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Keeps the order of the members, because a chat template prints tools as they were sent.
OrderedJson ordered(JsonNode node) {
  if (node.is_array()) {
    OrderedJson::array_t all;
    for (const JsonNode element : node.elements()) all.push_back(ordered(element));
    return all;
  }
  if (!node.is_object()) return OrderedJson::parse(json_text(node));
  OrderedJson::object_t all;  // a vector; searching it for each key would take too long
  for (const JsonNode member : node.members()) {
    all.emplace_back(std::string(member.key()), ordered(member));
  }
  return all;
}

// null for a field that is left out.
OrderedJson ordered(std::optional<JsonNode> field) {
  return field ? ordered(*field) : OrderedJson();
}

// The members of an object without its type, and without those that are null.
OrderedJson without_type(JsonNode object) {
  OrderedJson::object_t others;
  for (const JsonNode member : object.members()) {
    if (member.is_null() || member.key() == "type") continue;
    others.emplace_back(std::string(member.key()), ordered(member));
  }
  return others;
}

// The body of the chat completion that a request is rewritten to.
struct ChatBody {
  OrderedJson json = OrderedJson::object();
  // Fields of `json` that have another name in the client's request, and that name.
  std::map<std::string, std::string, std::less<>> names = {
      {"messages", "input"},
      {"max_completion_tokens", "max_output_tokens"},
      {"response_format", "text.format"},
      {"response_format.json_schema", "text.format"},
      {"tool_choice.function", "tool_choice"},
      {"reasoning_effort", "reasoning.effort"},
      {"verbosity", "text.verbosity"}};
  std::string reasoning;  // of items before the next item of the assistant

  // The client's name of a field such as "messages[1].role". Uses the longest prefix in `names`.
  std::string clients_name(std::string_view field) const {
    std::size_t end = field.size();
    while (end != 0 && end != std::string_view::npos) {
      const auto name = names.find(field.substr(0, end));
      if (name != names.end()) return name->second + std::string(field.substr(end));
      end = field.find_last_of(".[", end - 1);
    }
    return std::string(field);
  }

  // The error of the chat completion, with the client's name of the field: "request: 'FIELD': ..."
  // or "request: FIELD: ...".
  ApiError clients_error(const ApiError& error) const {
    constexpr std::string_view kBegin = "request: ";
    std::string message = error.what();
    if (message.starts_with(kBegin)) {
      const std::size_t begin = kBegin.size() + (message[kBegin.size()] == '\'' ? 1 : 0);
      const std::size_t end = std::min(message.find_first_of("':", begin), message.size());
      message.replace(begin, end - begin, clients_name(message.substr(begin, end - begin)));
    }
    return {error.status(), clients_name(error.param()), error.code(), message};
  }
};

// The types "input_text" and "output_text" are "text" in a chat completion.
OrderedJson chat_content(std::optional<JsonNode> content) {
  OrderedJson parts = ordered(content);
  if (!parts.is_array()) return parts;
  std::size_t i = 0;
  for (const JsonNode part : content->elements()) {
    const std::string_view type = type_of(part);
    if (type == "input_text" || type == "output_text") parts[i]["type"] = "text";
    if (type == "output_text") {  // of an earlier answer
      parts[i].erase("annotations");
      parts[i].erase("logprobs");
    }
    ++i;
  }
  return parts;
}

// The text of an item of the type "reasoning".
std::string reasoning_text(RequestFields& item) {
  std::string text;
  const std::optional<JsonNode> content = item.find("content");
  if (!content) return text;
  const std::string path = item.path("content");
  if (!content->is_array()) expected(path, "an array of parts", content);
  std::size_t i = 0;
  for (const JsonNode part : content->elements()) {
    const std::string where = fmt::format("{}[{}]", path, i++);
    if (type_of(part) != "reasoning_text") {
      expected(where, "a part of the type 'reasoning_text'", part);
    }
    text += RequestFields(part, where).text("text");
  }
  return text;
}

// Appends an item of `input` as a message. Consecutive function calls become one message. The
// parser of chat completions checks the values, and finds those that are missing.
void add_item(JsonNode item, const std::string& where, ChatBody& chat) {
  if (!item.is_object()) expected(where, "an object", item);
  RequestFields fields(item, where);
  OrderedJson& messages = chat.json["messages"];
  const std::string message = fmt::format("messages[{}]", messages.size());
  const std::string_view type = fields.find("type") ? type_of(item) : "message";
  fields.ignore({"id", "status", "cache_control"});
  const auto add_reasoning = [&] {
    const std::string text = std::exchange(chat.reasoning, {});
    if (!text.empty() && messages.back()["role"] == "assistant") {
      messages.back()["reasoning_content"] = text;
    }
  };
  if (type == "message") {
    messages.push_back({{"role", ordered(fields.find("role"))},
                        {"content", chat_content(fields.find("content"))}});
    chat.names[message] = where;
    add_reasoning();
  } else if (type == "reasoning") {
    fields.ignore({"summary", "encrypted_content"});  // of other servers
    chat.reasoning += reasoning_text(fields);
  } else if (type == "function_call") {
    if (messages.empty() || messages.back()["role"] != "assistant") {
      messages.push_back({{"role", "assistant"}, {"content", ""}});
      chat.names[message + ".role"] = where;
    }
    add_reasoning();
    OrderedJson& calls = messages.back()["tool_calls"];
    const std::string at =
        fmt::format("messages[{}].tool_calls[{}]", messages.size() - 1, calls.size());
    chat.names[at] = chat.names[at + ".function"] = where;
    chat.names[at + ".id"] = where + ".call_id";
    calls.push_back({{"id", ordered(fields.find("call_id"))},
                     {"type", "function"},
                     {"function",
                      {{"name", ordered(fields.find("name"))},
                       {"arguments", ordered(fields.find("arguments"))}}}});
  } else if (type == "function_call_output") {
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", ordered(fields.find("call_id"))},
                        {"content", chat_content(fields.find("output"))}});
    chat.names[message] = chat.names[message + ".role"] = where;
    chat.names[message + ".tool_call_id"] = where + ".call_id";
    chat.names[message + ".content"] = where + ".output";
  } else {
    expected(where + ".type", "'message', 'reasoning', 'function_call' or 'function_call_output'",
             fields.find("type"));
  }
  fields.refuse_others();
}

void add_messages(RequestFields& fields, ChatBody& chat) {
  OrderedJson& messages = chat.json["messages"] = OrderedJson::array();
  const auto add = [&](const char* role, const char* field, JsonNode content) {
    const std::string message = fmt::format("messages[{}]", messages.size());
    chat.names[message] = chat.names[message + ".content"] = field;
    messages.push_back({{"role", role}, {"content", ordered(content)}});
  };
  if (const std::optional<JsonNode> instructions = fields.find("instructions")) {
    add("system", "instructions", *instructions);
  }
  const std::optional<JsonNode> input = fields.find("input");
  if (input && input->is_string()) return add("user", "input", *input);
  if (!input || !input->is_array()) expected("input", "a string or an array of items", input);
  std::size_t i = 0;
  for (const JsonNode item : input->elements()) {
    add_item(item, fmt::format("input[{}]", i++), chat);
  }
}

// {"type": "function", "name", ...} -> {"type": "function", "function": {"name", ...}}
OrderedJson nested_function(JsonNode flat) {
  if (type_of(flat) != "function") return ordered(flat);
  return {{"type", "function"}, {"function", without_type(flat)}};
}

// {"format": {"type": "json_schema", "name", "schema", ...}, "verbosity"}
OrderedJson response_format(JsonNode text, OrderedJson& verbosity) {
  if (!text.is_object()) expected("text", "an object", text);
  RequestFields fields(text, "text");
  const std::optional<JsonNode> format = fields.find("format");
  verbosity = ordered(fields.find("verbosity"));
  fields.refuse_others();
  if (!format || type_of(*format) != "json_schema") return ordered(format);
  return {{"type", "json_schema"}, {"json_schema", without_type(*format)}};
}

ChatBody chat_body(JsonNode request) {
  RequestFields fields(request);
  for (const char* key : {"previous_response_id", "conversation", "prompt"}) {
    fields.only(key, "[]");
  }
  fields.only("store", "[false]");
  fields.only("background", "[false]");
  fields.only("truncation", R"(["disabled"])");
  fields.only("include", R"([[], ["reasoning.encrypted_content"]])");  // there is none
  if (const auto options = fields.find("stream_options")) {
    if (!options->is_object()) expected("stream_options", "an object", options);
    RequestFields members(*options, "stream_options");
    members.only("include_obfuscation", "[false]");
    members.refuse_others();
  }
  fields.only("top_logprobs", "[0]");
  fields.ignore({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
                 "prompt_cache_retention",
                 "max_tool_calls"});  // counts only calls of tools that a server has
  ChatBody chat;
  add_messages(fields, chat);
  OrderedJson& body = chat.json;
  for (const char* same : {"model", "temperature", "top_p", "top_k", "seed", "stream",
                           "parallel_tool_calls", "chat_template_kwargs"}) {
    body[same] = ordered(fields.find(same));
  }
  body["max_completion_tokens"] = ordered(fields.find("max_output_tokens"));
  if (const auto text = fields.find("text")) {
    OrderedJson verbosity;
    body["response_format"] = response_format(*text, verbosity);
    body["verbosity"] = verbosity;
  }
  if (const auto reasoning = fields.find("reasoning")) {
    if (!reasoning->is_object()) expected("reasoning", "an object", reasoning);
    RequestFields members(*reasoning, "reasoning");
    body["reasoning_effort"] = ordered(members.find("effort"));
    members.only("summary", "[]");
    members.refuse_others();
  }
  if (const auto choice = fields.find("tool_choice")) {
    body["tool_choice"] = nested_function(*choice);
  }
  if (const auto tools = fields.find("tools")) {
    if (!tools->is_array()) expected("tools", "an array of functions", tools);
    std::size_t i = 0;
    for (const JsonNode tool : tools->elements()) {
      body["tools"].push_back(nested_function(tool));
      if (tool.is_object()) {
        chat.names[fmt::format("tools[{}].function", i)] = fmt::format("tools[{}]", i);
      }
      ++i;
    }
  }
  fields.refuse_others();
  return chat;
}

OrderedJson echo_of(JsonNode request, const SamplerOptions& sampler) {
  OrderedJson echo = {{"instructions", nullptr},
                      {"max_output_tokens", nullptr},
                      {"metadata", OrderedJson::object()},
                      {"parallel_tool_calls", true},
                      {"previous_response_id", nullptr},
                      {"store", false},
                      {"temperature", shortest_decimal(sampler.temperature)},
                      {"text", {{"format", {{"type", "text"}}}}},
                      {"tool_choice", "auto"},
                      {"tools", OrderedJson::array()},
                      {"top_p", shortest_decimal(sampler.top_p)},
                      {"truncation", "disabled"}};
  for (auto& [key, value] : echo.items()) {
    if (const std::optional<JsonNode> given = request.find(key)) value = ordered(*given);
  }
  return echo;
}

}  // namespace

ResponseRequest parse_response(std::string_view body, const ServedModel& model,
                               std::uint64_t random_seed) {
  const Json request = parse_body(body);
  ResponseRequest result;
  const ChatBody chat = chat_body(request.root());
  try {
    result.completion = parse_chat_completion(chat.json.dump(), model, random_seed);
  } catch (const ApiError& error) {
    throw chat.clients_error(error);
  }
  result.completion.grammar_field = chat.clients_name(result.completion.grammar_field);
  const SamplerOptions& sampler = result.completion.texts.front().options.generation.sampler;
  result.echo = echo_of(request.root(), sampler).dump();
  return result;
}

}  // namespace stagecraft
