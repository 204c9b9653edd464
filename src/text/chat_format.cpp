#include "text/chat_format.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "text/builtin_chat_templates.h"
#include "text/chat_template_source.h"

namespace stagecraft {
namespace {

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::localtime_r(&now, &parts);
  return parts;
}

std::string names_of_builtin_templates() {
  std::string names;
  for (const auto& builtin : builtin_chat_templates()) {
    names += (names.empty() ? "" : ", ") + std::string(builtin.name);
  }
  return names;
}

ChatTemplateSource source_of(const BuiltinChatTemplate& builtin) {
  return {std::string(builtin.text),
          std::string(builtin.name),
          {{"bos_token", std::string(builtin.bos_token)},
           {"eos_token", std::string(builtin.eos_token)}}};
}

// What a template named on the command line stands for, "" if it names none.
ChatTemplateSource chosen_source(const std::string& chosen, ChatTemplateSource own) {
  if (const auto* builtin = find_builtin_chat_template(chosen)) return source_of(*builtin);
  std::error_code ignored;
  if (!std::filesystem::exists(chosen, ignored)) {
    throw Error("--chat-template: expected a file or one of {}, found '{}'",
                names_of_builtin_templates(), printable(chosen));
  }
  own.where = chosen;  // with the model's own special tokens
  own.text = read_text_file(chosen, jinja::Template::kMaxBytes);
  return own;
}

ChatTemplateSource guessed_source(const ModelSource& model, const Tokenizer& tokenizer) {
  if (const auto* builtin = guess_chat_template(tokenizer)) return source_of(*builtin);
  throw Error(
      "{}: expected a chat template, or the tokens of one ({}, {}) in the vocabulary, found none; "
      "is it a model for stories? Else name one: --chat-template {}",
      model.name(), kChatStart, kChatEnd, names_of_builtin_templates());
}

std::string chatml_text(std::span<const Message> messages) {
  std::string text;
  for (const auto& [role, content] : messages) {
    text += fmt::format("{}{}\n{}{}\n", kChatStart, role, content, kChatEnd);
  }
  return text + fmt::format("{}assistant\n", kChatStart);
}

// Conversations by which ChatML is told from what only resembles it: contents that others trim,
// cut or take apart, one exchange and several, with a system prompt and without.
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

}  // namespace

ChatFormat ChatFormat::open(const ModelSource& model, const Tokenizer& tokenizer,
                            const std::string& chosen) {
  return open(model, tokenizer, chosen, local_time());
}

ChatFormat ChatFormat::open(const ModelSource& model, const Tokenizer& tokenizer,
                            const std::string& chosen, const std::tm& now) {
  ChatTemplateSource source = read_chat_template(model, tokenizer);
  if (!chosen.empty()) {
    source = chosen_source(chosen, std::move(source));
  } else if (source.text.empty()) {
    source = guessed_source(model, tokenizer);
  }
  ChatFormat format(tokenizer);
  format.name_ = source.where;
  format.special_tokens_ = std::move(source.special_tokens);
  format.template_ = std::make_shared<const jinja::Template>(source.text, source.where);
  format.now_ = now;
  format.recognise_chatml();
  format.find_end_tokens();
  return format;
}

ChatFormat ChatFormat::chatml(const Tokenizer& tokenizer) {
  ChatFormat format(tokenizer);
  format.name_ = "chatml";
  format.is_chatml_ = true;
  format.end_tokens_ = {chat_token(tokenizer, kChatEnd), chat_token(tokenizer, kChatStart)};
  return format;
}

void ChatFormat::recognise_chatml() {
  if (!tokenizer_->id_of(kChatStart) || !tokenizer_->id_of(kChatEnd)) return;
  try {
    const Message asked = {"user", "Who?"};
    const std::string plain = chatml_text({{asked}});
    const std::string alone = text({{asked}}).bytes();
    if (!alone.ends_with(plain)) return;
    if (alone.size() > plain.size()) {  // a system prompt of the model's own
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
    own_system_.reset();  // ChatML refuses nothing
  }
}

// The special token that the template writes after an answer.
void ChatFormat::find_end_tokens() {
  if (is_chatml_) {
    // A model that opens the next message instead of ending its own has ended it all the same.
    end_tokens_ = {chat_token(*tokenizer_, kChatEnd), chat_token(*tokenizer_, kChatStart)};
    return;
  }
  for (const auto& [name, token] : special_tokens_) {
    const auto id = tokenizer_->id_of(token);
    if (name == "eos_token" && id) end_tokens_.push_back(*id);
  }
  MarkedText exchange;
  try {
    exchange = text({{{"user", "Who?"}, {"assistant", "Me."}}}, false);
  } catch (const Error&) {
    return;  // it will say so when it is asked
  }
  if (exchange.typed_spans().size() < 2) return;
  const std::string after = exchange.bytes().substr(exchange.typed_spans().back().end);
  for (const TokenId token : tokenizer_->encode(after, {.at_start = false})) {
    if (!tokenizer_->is_special(token)) continue;
    if (std::ranges::count(end_tokens_, token) == 0) end_tokens_.push_back(token);
    break;
  }
}

MarkedText ChatFormat::text(std::span<const Message> messages, bool with_opening) const {
  return template_->render(
      [&](jinja::Runtime& runtime) {
        const auto word = [&](std::string_view text) { return runtime.text(MarkedText(text)); };
        jinja::Values list;
        for (const auto& [role, content] : messages) {
          // A role is one of three words: templates make tokens of it ("<|user|>").
          list.push_back(
              runtime.dict({{{word("role"), word(role)},
                             {word("content"), runtime.text(MarkedText::typed(content))}}}));
        }
        std::vector<std::pair<std::string, jinja::Value>> variables = {
            {"messages", runtime.list(std::move(list))},
            {"tools", jinja::Value::none()},
            {"documents", jinja::Value::none()},
            {"add_generation_prompt", jinja::Value::of_bool(with_opening)},
        };
        for (const auto& [name, token] : special_tokens_) variables.emplace_back(name, word(token));
        return variables;
      },
      now_);
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
