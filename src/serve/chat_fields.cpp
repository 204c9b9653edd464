#include "serve/chat_fields.h"

#include <algorithm>

#include "base/ascii.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxTools = 128;

// What an error about the type of an object shows: its member "type", or all of it if it has none.
JsonNode type_or_all(JsonNode value) {
  return value.is_object() ? value.find("type").value_or(value) : value;
}

// The content of a message: a string, or an array of text parts. An earlier answer may also have
// parts of the type "refusal".
std::string content_of(RequestFields& message, bool is_answer) {
  const JsonNode content = message.needed("content", "a string or an array");
  const std::string path = message.path("content");
  if (!content.is_array()) return text_of(content, path);
  std::string text;
  std::size_t i = 0;
  for (const JsonNode part : content.elements()) {
    const char* key = is_answer && type_of(part) == "refusal" ? "refusal" : "text";
    if (type_of(part) != key || !part.find(key)) {
      expected(path, "parts of the type 'text'", type_or_all(part));
    }
    RequestFields fields(part, fmt::format("{}[{}]", path, i++));
    fields.ignore({"type", "cache_control"});  // pages are shared without being asked
    text += fields.text(key);
    fields.refuse_others();
  }
  return text;
}

bool is_function_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return is_ascii_letter(c) || is_ascii_digit(c) || c == '_' || c == '-';
  });
}

std::string function_name(RequestFields& function) {
  std::string name = function.text("name");
  if (is_function_name(name)) return name;
  expected(function.path("name"), "1 to 64 letters, digits, _ or -", function.find("name"));
}

// The object "function" of a tool, a call or a tool choice. Its "type" must be "function".
RequestFields function_of(JsonNode value, const std::string& where) {
  if (type_of(value) != "function") {
    expected(where, "an object of the type 'function'", type_or_all(value));
  }
  RequestFields fields(value, where);
  const JsonNode function = fields.needed("function", "an object");
  if (!function.is_object()) expected(fields.path("function"), "an object", function);
  return RequestFields(function, fields.path("function"));
}

// Calls that the model made earlier in the conversation.
std::vector<ToolCall> parse_calls(RequestFields& message) {
  std::vector<ToolCall> calls;
  const std::optional<JsonNode> value = message.find("tool_calls");
  if (!value) return calls;
  const std::string path = message.path("tool_calls");
  if (!value->is_array()) expected(path, "an array", value);
  for (const JsonNode call : value->elements()) {
    const std::string where = fmt::format("{}[{}]", path, calls.size());
    RequestFields function = function_of(call, where);
    RequestFields fields(call, where);
    fields.ignore({"type", "function", "index"});
    ToolCall made{fields.text("id"), function_name(function), function.text("arguments")};
    if (made.arguments.empty()) made.arguments = "{}";  // some models write no arguments so
    fields.refuse_others();
    function.refuse_others();
    const std::string arguments = function.path("arguments");
    reading(arguments, [&] { return parse_json_object(made.arguments, place_of(arguments)); });
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
// open_calls: the ids of the calls before this message that have no result yet; updated.
ToolMessage parse_message(JsonNode value, const std::string& where, std::vector<std::string>& due,
                          std::vector<std::string>& open_calls) {
  if (!value.is_object()) expected(where, "an object", value);
  RequestFields members(value, where);
  const std::optional<JsonNode> given = members.find("role");
  std::string role = given ? members.text("role") : "";
  if (role == "developer") role = "system";  // the newer name
  if (std::ranges::count(due, role) == 0) {
    // Words that /v1/responses has, too.
    if (role == "tool") expected(members.path("role"), "a call before this result", "none");
    expected(members.path("role"),
             open_calls.empty() ? one_of(due) : "the results of the calls before it", given);
  }
  members.ignore({"content", "cache_control"});
  ToolMessage message;
  message.role = role;
  if (members.find("name")) message.name = members.text("name");
  std::string refusal;
  if (role == "assistant") {
    message.calls = parse_calls(members);
    members.ignore({"annotations"});
    for (const char* key : {"reasoning", "reasoning_content"}) {
      if (members.find(key)) message.reasoning = members.text(key);
    }
    if (members.find("refusal")) refusal = members.text("refusal");
  } else {
    members.only("tool_calls", "[[]]");
  }
  if (role == "tool") {
    message.call_id = members.text("tool_call_id");
    const auto call = std::ranges::find(open_calls, message.call_id);
    if (call == open_calls.end()) {
      expected(members.path("tool_call_id"), "the id of a call before it that has no result yet",
               members.find("tool_call_id"));
    }
    open_calls.erase(call);
  }
  members.refuse_others();
  const bool may_be_empty =
      !message.calls.empty() || !message.reasoning.empty() || !refusal.empty();
  if (!may_be_empty || value.find("content")) {
    message.content = content_of(members, role == "assistant");
  }
  if (!refusal.empty()) {  // what an earlier answer said instead of a content
    if (!message.content.empty()) {
      expected(members.path("refusal"), "none beside 'content'", members.find("refusal"));
    }
    message.content = refusal;
  }
  for (const ToolCall& call : message.calls) open_calls.push_back(call.id);
  due = {"user", "assistant", "system"};
  if (!open_calls.empty()) due = {"tool"};
  return message;
}

std::vector<Tool> parse_tool_list(JsonNode array) {
  if (!array.is_array() || array.size() > kMaxTools) {
    expected("tools", fmt::format("an array of at most {} functions", kMaxTools), array);
  }
  std::vector<Tool> tools;
  for (const JsonNode tool : array.elements()) {
    const std::string where = fmt::format("tools[{}]", tools.size());
    RequestFields function = function_of(tool, where);
    RequestFields fields(tool, where);
    fields.ignore({"type", "function", "cache_control"});
    fields.refuse_others();
    function.ignore({"description", "cache_control"});
    const bool strict = function.flag("strict", false);
    std::string name = function_name(function);
    if (std::ranges::count(tools, name, &Tool::name) != 0) {  // a call could mean either
      expected(function.path("name"), "a name that no tool before it has", function.find("name"));
    }
    tools.push_back({std::move(name), function.find("parameters"), strict});
    function.refuse_others();
  }
  return tools;
}

// True if there is at most one system prompt, at the beginning, then question and answer in turn,
// and a question at the end.
bool in_turn(const std::vector<ToolMessage>& messages) {
  const std::size_t first = messages.front().role == "system" ? 1 : 0;
  for (std::size_t i = first; i < messages.size(); ++i) {
    if (messages[i].role != ((i - first) % 2 == 0 ? "user" : "assistant")) return false;
  }
  return messages.back().role == "user";
}

}  // namespace

std::vector<ToolMessage> parse_messages(RequestFields& fields) {
  const std::optional<JsonNode> value = fields.find("messages");
  if (!value || !value->is_array() || value->size() == 0) {
    expected("messages", "an array of at least one message", value);
  }
  std::vector<ToolMessage> messages;
  std::vector<std::string> due = {"user", "assistant", "system"};
  std::vector<std::string> open_calls;
  for (const JsonNode message : value->elements()) {
    messages.push_back(
        parse_message(message, fmt::format("messages[{}]", messages.size()), due, open_calls));
  }
  const std::string& last = messages.back().role;
  if (last == "system") {
    expected("messages", "the role 'user', 'assistant' or 'tool' in the last message", "'system'");
  }
  if (!open_calls.empty()) {
    expected("messages", "a result of each call",
             fmt::format("none of '{}'", printable(open_calls.front())));
  }
  const bool continues = last == "assistant";
  fields.only("continue_final_message", continues ? "[true]" : "[false]");
  fields.only("add_generation_prompt", continues ? "[false]" : "[true]");
  return messages;
}

TemplateVariables parse_template_variables(RequestFields& fields, const ChatFormat& format) {
  TemplateVariables variables;
  const auto add = [&](const std::string& field, JsonNode value) {
    const std::string name(value.key());
    if (ChatFormat::sets_itself(name)) {
      refuse_field(field, "not supported: the server sets this variable of the chat template");
    }
    // A variable that the template does not use would change nothing, as a spelling mistake does.
    if (!format.reads(name)) {
      refuse_field(field, "not supported: the chat template of this model has no such variable",
                   "unsupported_parameter");
    }
    if (std::ranges::count(variables, name, &TemplateVariables::value_type::first) != 0) {
      expected(field, fmt::format("none together with 'chat_template_kwargs.{}'", name), value);
    }
    variables.emplace_back(name, value);
  };
  if (const std::optional<JsonNode> object = fields.find("chat_template_kwargs")) {
    if (!object->is_object()) expected("chat_template_kwargs", "an object", object);
    for (const JsonNode value : object->members()) {
      // A template can ask whether a variable is defined, also if it is none.
      if (value.is_null() && !format.reads(value.key())) continue;
      add("chat_template_kwargs." + printable(value.key()), value);
    }
  }
  for (const char* key : {"reasoning_effort", "verbosity"}) {
    const std::optional<JsonNode> value = fields.find(key);
    if (!value) continue;
    if (!value->is_string()) expected(key, "a string", value);
    const bool is_default = key == std::string_view("verbosity") && value->string() == "medium";
    if (!is_default || format.reads(key)) add(key, *value);
  }
  return variables;
}

ChatTools parse_tools(RequestFields& fields, const ChatFormat& format) {
  ChatTools tools;
  tools.several = fields.flag("parallel_tool_calls", true);
  fields.only("functions", "[[]]");
  fields.only("function_call", R"(["none", "auto"])");
  const std::optional<JsonNode> choice = fields.find("tool_choice");
  const std::optional<JsonNode> array = fields.find("tools");
  if (!array || (array->is_array() && array->size() == 0)) {
    const bool is_free = !choice || (choice->is_string() &&
                                     (choice->string() == "none" || choice->string() == "auto"));
    if (!is_free) expected("tool_choice", "'none' or 'auto' without 'tools'", choice);
    return tools;
  }
  tools.callable = parse_tool_list(*array);
  if (format.tool_form() == ToolForm::None) {
    refuse_field(
        "tools",
        "not supported: the chat template of this model has no known format of tool calls");
  }
  tools.array = array;
  if (!choice || (choice->is_string() && choice->string() == "auto")) return tools;
  if (choice->is_string() && choice->string() == "none") return {};
  tools.forced = true;
  if (choice->is_string() && choice->string() == "required") return tools;
  if (!choice->is_object()) {
    expected("tool_choice", "'none', 'auto', 'required' or a function", choice);
  }
  RequestFields function = function_of(*choice, "tool_choice");
  RequestFields others(*choice, "tool_choice");
  others.ignore({"type", "function"});
  others.refuse_others();
  const std::string name = function_name(function);
  function.refuse_others();
  tools.several = false;  // as OpenAI's server
  std::erase_if(tools.callable, [&](const Tool& tool) { return tool.name != name; });
  if (tools.callable.empty()) {
    expected("tool_choice", "the name of one of the tools", function.find("name"));
  }
  return tools;
}

std::vector<TokenId> chat_prompt(const std::vector<ToolMessage>& messages, const ChatTools& tools,
                                 const TemplateVariables& variables, const ChatFormat& format) {
  const bool has_calls = std::ranges::any_of(messages, [](const ToolMessage& message) {
    return !message.calls.empty() || message.role == "tool";
  });
  const bool is_plain = std::ranges::all_of(messages, [](const ToolMessage& message) {
    return message.name.empty() && message.reasoning.empty();
  });
  if (has_calls && format.tool_form() == ToolForm::None) {
    refuse_field("messages", "tool calls are not supported by the chat template of this model");
  }
  try {
    if (!tools.array && variables.empty() && is_plain && in_turn(messages)) {
      return format.tokens(std::vector<Message>(messages.begin(), messages.end()));
    }
    return format.tokens(messages, tools.array, variables);
  } catch (const Error& problem) {
    refuse_field("messages", problem.what());
  }
}

}  // namespace stagecraft
