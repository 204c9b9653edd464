#include "serve/responses.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_text.h"
#include "serve/api_error.h"

namespace stagecraft {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kRequest = "request: ";
constexpr const char* kUnknown = "unknown_parameter";

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

[[noreturn]] void refuse(const std::string& field, const std::string& problem,
                         std::string code = "") {
  throw ApiError::bad_request(field, fmt::format("{}'{}': {}", kRequest, field, problem),
                              std::move(code));
}

std::string found(const OrderedJson& value) {
  return "found " + stagecraft::Json(value.dump(), "request").root().describe();
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
      {"tool_choice.function", "tool_choice"}};

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
    std::string message = error.what();
    if (message.starts_with(kRequest)) {
      const std::size_t begin = kRequest.size() + (message[kRequest.size()] == '\'' ? 1 : 0);
      const std::size_t end = std::min(message.find_first_of("':", begin), message.size());
      message.replace(begin, end - begin, clients_name(message.substr(begin, end - begin)));
    }
    return {error.status(), error.type(), clients_name(error.param()), error.code(), message};
  }
};

std::string type_of(const OrderedJson& item, const char* otherwise) {
  return item.is_object() && item.contains("type") && item["type"].is_string()
             ? item["type"].get<std::string>()
             : otherwise;
}

const OrderedJson& needed(const OrderedJson& item, const char* key, const std::string& where) {
  if (!item.contains(key)) refuse(where + "." + key, "expected a value, found none");
  return item[key];
}

// Refuses members that are not in `known`, unless they are null.
void check_members(const OrderedJson& item, std::initializer_list<std::string_view> known,
                   const std::string& where) {
  for (const auto& [key, value] : item.items()) {
    if (value.is_null() || std::ranges::count(known, key) != 0) continue;
    refuse(printable(where.empty() ? key : where + "." + key), "unknown field", kUnknown);
  }
}

// The types "input_text" and "output_text" are "text" in a chat completion.
OrderedJson content_of(OrderedJson content) {
  if (!content.is_array()) return content;
  for (OrderedJson& part : content) {
    const std::string type = type_of(part, "");
    if (type != "input_text" && type != "output_text") continue;
    part["type"] = "text";
  }
  return content;
}

// Appends an item of `input` as a message. Consecutive function calls become one message.
void add_item(const OrderedJson& item, const std::string& where, ChatBody& chat) {
  if (!item.is_object()) refuse(where, "expected an object, " + found(item));
  OrderedJson& messages = chat.json["messages"];
  const std::string message = fmt::format("messages[{}]", messages.size());
  const std::string type = type_of(item, "message");
  if (type == "message") {
    check_members(item, {"type", "role", "content", "id", "status"}, where);
    messages.push_back({{"role", needed(item, "role", where)},
                        {"content", content_of(needed(item, "content", where))}});
    chat.names[message] = where;
  } else if (type == "function_call") {
    check_members(item, {"type", "id", "call_id", "name", "arguments", "status"}, where);
    const OrderedJson call = {
        {"id", needed(item, "call_id", where)},
        {"type", "function"},
        {"function",
         {{"name", needed(item, "name", where)}, {"arguments", needed(item, "arguments", where)}}}};
    if (messages.empty() || messages.back()["role"] != "assistant") {
      messages.push_back({{"role", "assistant"}, {"content", ""}});
      chat.names[message + ".role"] = where;
    }
    OrderedJson& calls = messages.back()["tool_calls"];
    const std::string at =
        fmt::format("messages[{}].tool_calls[{}]", messages.size() - 1, calls.size());
    chat.names[at] = chat.names[at + ".function"] = where;
    chat.names[at + ".id"] = where + ".call_id";
    calls.push_back(call);
  } else if (type == "function_call_output") {
    check_members(item, {"type", "id", "call_id", "output", "status"}, where);
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", needed(item, "call_id", where)},
                        {"content", content_of(needed(item, "output", where))}});
    chat.names[message] = chat.names[message + ".role"] = where;
    chat.names[message + ".tool_call_id"] = where + ".call_id";
    chat.names[message + ".content"] = where + ".output";
  } else {
    refuse(where + ".type",
           "expected 'message', 'function_call' or 'function_call_output', found '" +
               printable(type) + "'");
  }
}

void add_messages(const OrderedJson& request, ChatBody& chat) {
  OrderedJson& messages = chat.json["messages"] = OrderedJson::array();
  const auto add = [&](const char* role, const char* field) {
    const std::string message = fmt::format("messages[{}]", messages.size());
    chat.names[message] = chat.names[message + ".content"] = field;
    messages.push_back({{"role", role}, {"content", request[field]}});
  };
  if (request.contains("instructions") && !request["instructions"].is_null()) {
    add("system", "instructions");
  }
  if (!request.contains("input"))
    refuse("input", "expected a string or an array of items, found none");
  const OrderedJson& input = request["input"];
  if (input.is_string()) {
    add("user", "input");
  } else if (input.is_array()) {
    for (std::size_t i = 0; i < input.size(); ++i) {
      add_item(input[i], fmt::format("input[{}]", i), chat);
    }
  } else {
    refuse("input", "expected a string or an array of items, " + found(input));
  }
}

// {"type": "function", "name", ...} -> {"type": "function", "function": {"name", ...}}
OrderedJson nested_function(const OrderedJson& flat) {
  if (!flat.is_object() || type_of(flat, "") != "function") return flat;
  OrderedJson function = flat;
  function.erase("type");
  for (auto member = function.begin(); member != function.end();) {
    member = member->is_null() ? function.erase(member) : std::next(member);
  }
  return {{"type", "function"}, {"function", std::move(function)}};
}

// {"format": {"type": "json_schema", "name", "schema", ...}}
OrderedJson response_format(const OrderedJson& text) {
  if (!text.is_object()) refuse("text", "expected an object, " + found(text));
  check_members(text, {"format"}, "text");
  OrderedJson format = text.value("format", OrderedJson());
  if (type_of(format, "") != "json_schema") return format;
  format.erase("type");
  return {{"type", "json_schema"}, {"json_schema", std::move(format)}};
}

ChatBody chat_body(const OrderedJson& request) {
  const auto only = [&](const char* key, std::initializer_list<OrderedJson> neutral) {
    if (!request.contains(key) || request[key].is_null()) return;
    if (std::ranges::count(neutral, request[key]) != 0) return;
    refuse(key, "not supported, " + found(request[key]), "unsupported_parameter");
  };
  only("previous_response_id", {});
  only("conversation", {});
  only("prompt", {});
  only("reasoning", {});
  only("store", {false});
  only("background", {false});
  only("truncation", {"disabled"});
  only("include", {OrderedJson::array()});
  only("top_logprobs", {0});
  check_members(request,
                {"model",
                 "input",
                 "instructions",
                 "max_output_tokens",
                 "temperature",
                 "top_p",
                 "top_k",
                 "seed",
                 "stream",
                 "text",
                 "tools",
                 "tool_choice",
                 "parallel_tool_calls",
                 "store",
                 "background",
                 "truncation",
                 "include",
                 "top_logprobs",
                 "user",
                 "metadata",
                 "service_tier",
                 "safety_identifier",
                 "prompt_cache_key"},
                "");
  ChatBody chat;
  add_messages(request, chat);
  OrderedJson& body = chat.json;
  for (const char* same :
       {"model", "temperature", "top_p", "top_k", "seed", "stream", "parallel_tool_calls"}) {
    if (request.contains(same)) body[same] = request[same];
  }
  const auto given = [&](const char* key) {
    return request.contains(key) && !request[key].is_null();
  };
  if (given("max_output_tokens")) body["max_completion_tokens"] = request["max_output_tokens"];
  if (given("text")) body["response_format"] = response_format(request["text"]);
  if (given("tool_choice")) body["tool_choice"] = nested_function(request["tool_choice"]);
  if (given("tools")) {
    const OrderedJson& tools = request["tools"];
    if (!tools.is_array()) refuse("tools", "expected an array of functions, " + found(tools));
    for (std::size_t i = 0; i < tools.size(); ++i) {
      body["tools"].push_back(nested_function(tools[i]));
      if (!tools[i].is_object()) continue;
      chat.names[fmt::format("tools[{}].function", i)] = fmt::format("tools[{}]", i);
    }
  }
  return chat;
}

OrderedJson echo_of(const OrderedJson& request) {
  OrderedJson echo = {{"instructions", nullptr},
                      {"max_output_tokens", nullptr},
                      {"metadata", OrderedJson::object()},
                      {"parallel_tool_calls", true},
                      {"previous_response_id", nullptr},
                      {"store", false},
                      {"temperature", nullptr},
                      {"text", {{"format", {{"type", "text"}}}}},
                      {"tool_choice", "auto"},
                      {"tools", OrderedJson::array()},
                      {"top_p", nullptr},
                      {"truncation", "disabled"}};
  for (auto& [key, value] : echo.items()) {
    if (request.contains(key) && !request[key].is_null()) value = request[key];
  }
  return echo;
}

nlohmann::json message_item(const std::string& id, const std::string& text, bool is_done) {
  nlohmann::json content = nlohmann::json::array();
  if (is_done)
    content.push_back({{"type", "output_text"},
                       {"text", text},
                       {"annotations", nlohmann::json::array()},
                       {"logprobs", nlohmann::json::array()}});
  return {{"type", "message"},
          {"id", id},
          {"status", is_done ? "completed" : "in_progress"},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

nlohmann::json call_item(const std::string& id, const ToolCall& call, bool is_done) {
  return {{"type", "function_call"},
          {"id", "fc_" + id},
          {"call_id", "call_" + id},
          {"name", call.name},
          {"arguments", is_done ? call.arguments : ""},
          {"status", is_done ? "completed" : "in_progress"}};
}

}  // namespace

ResponseRequest parse_response(std::string_view body, const ServedModel& model,
                               std::uint64_t random_seed) {
  const OrderedJson request = ordered(parse_body(body).root());
  ResponseRequest result;
  const ChatBody chat = chat_body(request);
  try {
    result.completion = parse_chat_completion(chat.json.dump(), model, random_seed);
  } catch (const ApiError& error) {
    throw chat.clients_error(error);
  }
  result.completion.grammar_field = chat.clients_name(result.completion.grammar_field);
  result.echo = echo_of(request).dump();
  return result;
}

// Builds the JSON objects of an answer, and the events of a stream.
struct ResponseWriter::Json {
  ResponseWriter& writer;
  std::string said;

  std::string item_id() const {
    return fmt::format("{}_{}", writer.options_.id, writer.items_.size());
  }

  void say(const char* type, nlohmann::json event) {
    if (!writer.options_.stream) return;
    event["type"] = type;
    event["sequence_number"] = writer.sequence_++;
    said += fmt::format("event: {}\ndata: {}\n\n", type, json_text(event));
  }
  // Adds an event about the item that is being written.
  void say_of_item(const char* type, nlohmann::json event) {
    event["output_index"] = writer.items_.size();
    say(type, std::move(event));
  }

  nlohmann::json response(const char* status) const {
    const Options& options = writer.options_;
    nlohmann::json json = json_value(options.echo);
    json.update({{"id", "resp_" + options.id},
                 {"object", "response"},
                 {"created_at", options.created},
                 {"status", status},
                 {"model", options.model},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"usage", nullptr},
                 {"output", nlohmann::json::array()}});
    for (const std::string& item : writer.items_) json["output"].push_back(json_value(item));
    if (!writer.ended_) return json;
    const TextEnd& end = writer.end_;
    json["usage"] = {{"input_tokens", end.prompt_tokens},
                     {"input_tokens_details", {{"cached_tokens", end.cached_tokens}}},
                     {"output_tokens", end.new_tokens},
                     {"output_tokens_details", {{"reasoning_tokens", 0}}},
                     {"total_tokens", end.prompt_tokens + end.new_tokens}};
    if (status == std::string_view("incomplete")) {
      json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    }
    if (const auto error = writer.error()) {
      // "invalid_prompt" is the one code of OpenAI's list that stands for a wrong request.
      json["error"] = {{"code", error->status() == 400 ? "invalid_prompt" : "server_error"},
                       {"message", error->what()}};
    }
    return json;
  }
};

ResponseWriter::ResponseWriter(const Options& options)
    : options_(options), reader_(options.tool_form) {}

std::optional<ApiError> ResponseWriter::error() const {
  if (end_.error.empty()) return std::nullopt;
  return error_of(end_, options_.grammar_field);
}

std::string ResponseWriter::begin() {
  Json json{*this, {}};
  json.say("response.created", {{"response", json.response("in_progress")}});
  json.say("response.in_progress", {{"response", json.response("in_progress")}});
  return json.said;
}

std::string ResponseWriter::add(std::size_t, const TextEvent& event) {
  Json json{*this, {}};
  take(reader_.push(event.piece), json);
  if (!event.end) return json.said;
  take(reader_.finish(), json);
  close_text(json);
  end_ = *event.end;
  ended_ = true;
  return json.said;
}

void ResponseWriter::take(const ToolCallReader::Found& found, Json& json) {
  if (!found.text.empty()) {
    const std::string id = "msg_" + json.item_id();
    if (!in_text_) {
      in_text_ = true;
      json.say_of_item("response.output_item.added", {{"item", message_item(id, "", false)}});
      json.say_of_item("response.content_part.added",
                       {{"item_id", id},
                        {"content_index", 0},
                        {"part", message_item(id, "", true)["content"][0]}});
    }
    text_ += found.text;
    json.say_of_item("response.output_text.delta", {{"item_id", id},
                                                    {"content_index", 0},
                                                    {"delta", found.text},
                                                    {"logprobs", nlohmann::json::array()}});
  }
  for (const ToolCall& call : found.calls) {
    close_text(json);
    const std::string id = json.item_id();
    json.say_of_item("response.output_item.added", {{"item", call_item(id, call, false)}});
    json.say_of_item("response.function_call_arguments.delta",
                     {{"item_id", "fc_" + id}, {"delta", call.arguments}});
    json.say_of_item("response.function_call_arguments.done",
                     {{"item_id", "fc_" + id}, {"name", call.name}, {"arguments", call.arguments}});
    const nlohmann::json item = call_item(id, call, true);
    json.say_of_item("response.output_item.done", {{"item", item}});
    items_.push_back(json_text(item));
  }
}

void ResponseWriter::close_text(Json& json) {
  if (!in_text_) return;
  in_text_ = false;
  const std::string id = "msg_" + json.item_id();
  const nlohmann::json item = message_item(id, text_, true);
  json.say_of_item("response.output_text.done", {{"item_id", id},
                                                 {"content_index", 0},
                                                 {"text", text_},
                                                 {"logprobs", nlohmann::json::array()}});
  json.say_of_item("response.content_part.done",
                   {{"item_id", id}, {"content_index", 0}, {"part", item["content"][0]}});
  json.say_of_item("response.output_item.done", {{"item", item}});
  items_.push_back(json_text(item));
  text_.clear();
}

std::string ResponseWriter::finish() {
  Json json{*this, {}};
  const bool cut = end_.reason == StopReason::MaxTokens || end_.reason == StopReason::ContextFull;
  const char* status = !end_.error.empty() ? "failed" : cut ? "incomplete" : "completed";
  const nlohmann::json whole = json.response(status);
  if (!options_.stream) return json_text(whole) + "\n";
  json.say(fmt::format("response.{}", status).c_str(), {{"response", whole}});
  return json.said;
}

}  // namespace stagecraft
