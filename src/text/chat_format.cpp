#include "text/chat_format.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "text/builtin_chat_templates.h"
#include "text/chat_template_source.h"
#include "text/jinja/template.h"

namespace stagecraft {
namespace {

ChatTemplateSource source_of(const BuiltinChatTemplate& builtin) {
  return {std::string(builtin.text),
          std::string(builtin.name),
          {{"bos_token", std::string(builtin.bos_token)},
           {"eos_token", std::string(builtin.eos_token)}}};
}

// The template in the file that `option` names.
ChatTemplateSource chosen_source(const std::string& chosen, ChatTemplateSource own,
                                 const std::string& option) {
  std::error_code ignored;
  if (!std::filesystem::exists(chosen, ignored)) {
    throw ChatOptionError("{}: expected a file or one of {}, found '{}'", option,
                          builtin_chat_template_names(), printable(chosen));
  }
  own.where = chosen;  // with the model's own special tokens
  own.text = read_template_file(chosen, Pipes::Read);
  own.tools_text = {};
  return own;
}

ChatTemplateSource guessed_source(const ModelSource& model, const Tokenizer& tokenizer,
                                  const std::string& option) {
  if (const auto* builtin = guess_chat_template(tokenizer)) return source_of(*builtin);
  throw Error(
      "{}: expected a chat template, or the tokens {} and {} in the vocabulary, found neither (a "
      "model for stories has none); for a chat model, choose one ({}): {}",
      model.name(), kChatStart, kChatEnd, option, builtin_chat_template_names());
}

std::string chatml_text(std::span<const Message> messages) {
  std::string text;
  for (const auto& [role, content] : messages) {
    text += fmt::format("{}{}\n{}{}\n", kChatStart, role, content, kChatEnd);
  }
  return text + fmt::format("{}assistant\n", kChatStart);
}

// Conversations that distinguish ChatML from templates that resemble it. Their contents have spaces
// that some templates trim and <think> parts that some remove; they have one or several exchanges,
// with a system prompt and without.
std::vector<std::vector<Message>> probes() {
  const Message system = {"system", " \n Be brief.\n "};
  const Message asked = {"user", "\n Who? \n"};
  const Message answered = {"assistant", " <think>\n I? \n</think>\n\nMe.\n"};
  const Message again = {"user", ""};
  const Message briefly = {"assistant", ""};
  return {{system, asked},
          {system, asked, answered, again},
          {system, asked, answered, asked, briefly, again, answered, asked},
          {asked, answered, again},
          {again, briefly, asked, answered, asked, answered, again},
          {{"system", ""}, again}};
}

std::vector<ToolMessage> plain(std::span<const Message> messages) {
  std::vector<ToolMessage> result;
  for (const Message& message : messages) result.push_back({message, {}, {}});
  return result;
}

// Text from a client counts as typed, keys included.
jinja::Value value_of(jinja::Runtime& runtime, JsonNode node) {
  const auto typed = [&](std::string_view text) { return runtime.text(MarkedText::typed(text)); };
  if (node.is_string()) return typed(node.string());
  if (node.is_boolean()) return jinja::Value::of_bool(node.boolean());
  if (node.is_integer()) return jinja::Value::of_integer(node.integer());
  if (node.is_number()) return jinja::Value::of_number(node.number());
  if (node.is_array()) {
    jinja::Values values;
    for (const JsonNode element : node.elements()) values.push_back(value_of(runtime, element));
    return runtime.list(std::move(values));
  }
  if (!node.is_object()) return jinja::Value::none();
  jinja::Dict dict;
  for (const JsonNode member : node.members()) {
    dict.items.emplace_back(typed(member.key()), value_of(runtime, member));
  }
  return runtime.dict(std::move(dict));
}

// The dictionary that transformers passes to a template. The role is one of four words and not
// marked as typed: templates build tokens from it ("<|user|>"). Empty fields get no key, because
// templates test whether a key exists.
jinja::Value value_of(jinja::Runtime& runtime, const ToolMessage& message) {
  const auto word = [&](std::string_view text) { return runtime.text(MarkedText(text)); };
  const auto typed = [&](std::string_view text) { return runtime.text(MarkedText::typed(text)); };
  jinja::Dict dict{{{word("role"), word(message.role)}, {word("content"), typed(message.content)}}};
  jinja::Values calls;
  for (const ToolCall& call : message.calls) {
    const Json arguments(call.arguments, "arguments");
    const jinja::Value function =
        runtime.dict({{{word("name"), typed(call.name)},
                       {word("arguments"), value_of(runtime, arguments.root())}}});
    calls.push_back(runtime.dict({{{word("id"), typed(call.id)},
                                   {word("type"), word("function")},
                                   {word("function"), function}}}));
  }
  if (!calls.empty()) dict.items.emplace_back(word("tool_calls"), runtime.list(std::move(calls)));
  if (!message.call_id.empty()) {
    dict.items.emplace_back(word("tool_call_id"), typed(message.call_id));
  }
  if (!message.name.empty()) dict.items.emplace_back(word("name"), typed(message.name));
  if (!message.reasoning.empty()) {
    dict.items.emplace_back(word("reasoning_content"), typed(message.reasoning));
  }
  return runtime.dict(std::move(dict));
}

constexpr std::string_view kBlanks = " \t\n\r\f\v";

// `all` up to the end of the last message, whose content is `content`; `name`: of the template.
// Templates may trim a content. Blanks at its end are part of the result all the same, because the
// answer goes on after them.
MarkedText up_to_content(const MarkedText& all, std::string_view content, const std::string& name) {
  const std::size_t first = content.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    throw Error("the last message: expected the beginning of an answer, found nothing");
  }
  const std::size_t last = content.find_last_not_of(kBlanks) + 1;
  std::string_view text = all.bytes();
  if (all.has_typed()) text = text.substr(0, all.typed_spans().back().end);
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (!text.ends_with(content.substr(first, last - first))) {
    throw Error(
        "{}: expected a template that writes the last message of 'assistant' unchanged (the answer "
        "continues it), found one that changes it",
        name);
  }
  MarkedText result = all.part(0, text.size());
  result.append(content.substr(last), true);
  return result;
}

// All strings and keys in `node`, one per line.
std::string strings_of(JsonNode node) {
  if (node.is_string()) return std::string(node.string()) + "\n";
  std::string text;
  if (node.is_array()) {
    for (const JsonNode element : node.elements()) text += strings_of(element);
  } else if (node.is_object()) {
    for (const JsonNode member : node.members()) {
      text += std::string(member.key()) + "\n" + strings_of(member);
    }
  }
  return text;
}

}  // namespace

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::localtime_r(&now, &parts);
  return parts;
}

ChatFormat ChatFormat::open(const ModelSource& model, const Tokenizer& tokenizer,
                            const Options& options) {
  ChatTemplateSource source;
  if (const auto* builtin = find_builtin_chat_template(options.chosen)) {
    source = source_of(*builtin);  // whatever is wrong with the model's own
  } else {
    source = read_chat_template(model, tokenizer);
    if (!options.chosen.empty()) {
      source = chosen_source(options.chosen, std::move(source), options.option);
    } else if (source.text.empty()) {
      source = guessed_source(model, tokenizer, options.option);
    }
  }
  ChatFormat format(tokenizer);
  format.special_tokens_ = std::move(source.special_tokens);
  format.template_ = std::make_shared<const jinja::Template>(source.text, source.where);
  if (!source.tools_text.empty()) {
    format.tools_template_ =
        std::make_shared<const jinja::Template>(source.tools_text, source.tools_where);
  }
  format.now_ = options.now;
  if (options.variables) {
    format.check_variables(*options.variables);
    format.variables_ = options.variables;
  }
  format.recognise_chatml();
  format.find_end_tokens();
  return format;
}

void ChatFormat::check_variables(const Json& variables) const {
  try {
    for (const JsonNode value : variables.root().members()) {
      if (sets_itself(value.key())) value.refuse("no variable that the program sets");
      if (!reads(value.key())) value.refuse("a variable of the chat template", "none");
    }
  } catch (const Error& error) {
    throw ChatOptionError("{}", error.what());
  }
}

void ChatFormat::recognise_chatml() {
  if (!tokenizer_->id_of(kChatStart) || !tokenizer_->id_of(kChatEnd)) return;
  if (!now_ && reads("strftime_now")) return;  // each conversation has the date of its day
  try {
    const Message asked = {"user", "Who?"};
    const std::string plain = chatml_text({{asked}});
    const std::string alone = text({{asked}}).bytes();
    if (!alone.ends_with(plain)) return;
    if (alone.size() > plain.size()) {  // the template has a default system prompt
      const std::string begin = fmt::format("{}system\n", kChatStart);
      const std::string end = fmt::format("{}\n", kChatEnd);
      const std::string added = alone.substr(0, alone.size() - plain.size());
      if (added.size() < begin.size() + end.size() || !added.starts_with(begin) ||
          !added.ends_with(end)) {
        return;
      }
      own_system_ = added.substr(begin.size(), added.size() - begin.size() - end.size());
    }
    for (std::vector<Message> messages : probes()) {
      const std::string written = text(messages).bytes();
      if (own_system_ && messages.front().role != "system") {
        messages.insert(messages.begin(), {"system", *own_system_});
      }
      if (written != chatml_text(messages)) return own_system_.reset();
    }
    is_chatml_ = true;
  } catch (const Error&) {
    own_system_.reset();  // ChatML rejects no conversation, this template does
  }
}

// Finds the special token that each template writes after an answer.
void ChatFormat::find_end_tokens() {
  if (is_chatml_) {
    // If the model opens the next message without ending its own, its answer is over, too.
    end_tokens_ = {chat_token(*tokenizer_, kChatEnd), chat_token(*tokenizer_, kChatStart)};
  } else {
    for (const auto& [name, token] : special_tokens_) {
      const auto id = tokenizer_->id_of(token);
      if (name == "eos_token" && id) end_tokens_.push_back(*id);
    }
  }
  const std::vector<Message> exchange = {{"user", "Who?"}, {"assistant", "Me."}};
  const Json no_tools("[]", "tools");
  try {
    if (!is_chatml_) add_end_token(text(exchange, false));
    if (tools_template_) add_end_token(render(plain(exchange), no_tools.root(), false));
  } catch (const Error&) {  // tokens() will throw the same error
  }
}

// exchange: a question and an answer.
void ChatFormat::add_end_token(const MarkedText& exchange) {
  if (exchange.typed_spans().size() < 2) return;
  const std::string after = exchange.bytes().substr(exchange.typed_spans().back().end);
  for (const TokenId token : tokenizer_->encode(after, {.at_start = false})) {
    if (!tokenizer_->is_special(token)) continue;
    if (std::ranges::count(end_tokens_, token) == 0) end_tokens_.push_back(token);
    return;
  }
}

MarkedText ChatFormat::text(std::span<const Message> messages, bool with_opening) const {
  return render(plain(messages), std::nullopt, with_opening);
}

bool ChatFormat::sets_itself(std::string_view variable) {
  return variable == "messages" || variable == "tools" || variable == "add_generation_prompt" ||
         variable.ends_with("_token");
}

bool ChatFormat::reads(std::string_view variable) const {
  return used_template(false).reads(variable) || used_template(true).reads(variable);
}

const jinja::Template& ChatFormat::used_template(bool with_tools) const {
  return with_tools && tools_template_ ? *tools_template_ : *template_;
}

const std::string& ChatFormat::name() const { return template_->name(); }

MarkedText ChatFormat::render(std::span<const ToolMessage> messages, std::optional<JsonNode> tools,
                              bool with_opening, const TemplateVariables& more) const {
  const jinja::Template& used = used_template(tools.has_value());
  return used.render(
      [&](jinja::Runtime& runtime) {
        const auto word = [&](std::string_view text) { return runtime.text(MarkedText(text)); };
        jinja::Values list;
        for (const ToolMessage& message : messages) list.push_back(value_of(runtime, message));
        std::vector<std::pair<std::string, jinja::Value>> variables = {
            {"messages", runtime.list(std::move(list))},
            {"tools", tools ? value_of(runtime, *tools) : jinja::Value::none()},
            {"documents", jinja::Value::none()},
            {"add_generation_prompt", jinja::Value::of_bool(with_opening)},
        };
        for (const auto& [name, token] : special_tokens_) variables.emplace_back(name, word(token));
        if (variables_) {
          for (const JsonNode value : variables_->root().members()) {
            variables.emplace_back(value.key(), value_of(runtime, value));
          }
        }
        for (const auto& [name, value] : more)
          variables.emplace_back(name, value_of(runtime, value));
        return variables;
      },
      now_ ? *now_ : local_time());
}

// Renders a function, a call of it and its result, and searches the text for the known forms.
void ChatFormat::find_tool_form() {
  const Json tools(
      R"([{"type": "function", "function": {"name": "probe_f", "description": "A probe.",
          "parameters": {"type": "object", "properties": {"probe_a": {"type": "string"}}}}}])",
      "probe");
  const ToolMessage asked = {{"user", "Who?"}, {}, {}};
  const ToolMessage called = {
      {"assistant", ""}, {{"call_1", "probe_f", R"({"probe_a": "probe_v"})"}}, {}};
  const ToolMessage result = {{"tool", "probe_r"}, {}, "call_1"};
  try {
    if (render({{asked}}, tools.root(), true).bytes().find("probe_f") == std::string::npos) return;
    const std::string all = render({{asked, called, result}}, tools.root(), true).bytes();
    const auto has = [&](std::string_view text) { return all.find(text) != std::string::npos; };
    if (!has("probe_r")) return;
    const auto tag = tokenizer_->id_of("<tool_call>");
    const bool tag_is_text = !tag || !tokenizer_->is_special(*tag);
    if (tag_is_text && has("<tool_call>\n{\"name\": \"probe_f\", \"arguments\": {\"probe_a\": ")) {
      tool_form_ = ToolForm::Tagged;
    } else if (has("{\"name\": \"probe_f\", \"parameters\": {\"probe_a\": ")) {
      tool_form_ = ToolForm::Bare;
    }
  } catch (const Error&) {  // the template rejects calls, or results
  }
}

std::vector<TokenId> ChatFormat::tokens(std::span<const ToolMessage> messages,
                                        std::optional<JsonNode> tools,
                                        const TemplateVariables& variables) const {
  for (const ToolMessage& message : messages) {
    const auto check = [&](const std::string& text) {
      check_utf8("text", text);
      check_typed(*tokenizer_, text, end_tokens_);
    };
    for (const std::string* text :
         {&message.content, &message.name, &message.reasoning, &message.call_id}) {
      check(*text);
    }
    for (const ToolCall& call : message.calls) {
      for (const std::string* text : {&call.id, &call.name, &call.arguments}) check(*text);
    }
  }
  if (tools) check_typed(*tokenizer_, strings_of(*tools), end_tokens_);
  for (const auto& [name, value] : variables) {
    check_typed(*tokenizer_, strings_of(value), end_tokens_);
  }
  const bool continues = messages.back().role == "assistant" && messages.back().calls.empty();
  MarkedText text = render(messages, tools, !continues, variables);
  if (continues)
    text = up_to_content(text, messages.back().content, used_template(tools.has_value()).name());
  return tokenizer_->encode(text, {});
}

std::vector<TokenId> ChatFormat::tokens(std::span<const Message> messages) const {
  for (const Message& message : messages) check_utf8("text", message.content);
  if (!is_chatml_) {
    for (const Message& message : messages) check_typed(*tokenizer_, message.content, end_tokens_);
    return tokenizer_->encode(text(messages), {});
  }
  std::vector<TokenId> tokens;
  const auto append = [&](const std::vector<TokenId>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  if (own_system_ && (messages.empty() || messages.front().role != "system")) {
    append(message_tokens(*tokenizer_, {"system", *own_system_}));
  }
  for (const Message& message : messages) {
    check_typed(*tokenizer_, message.content, end_tokens_);
    append(message_tokens(*tokenizer_, message));
  }
  append(answer_opening(*tokenizer_));
  return tokens;
}

}  // namespace stagecraft
