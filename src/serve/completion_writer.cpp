#include "serve/completion_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/utf8.h"

namespace stagecraft {
namespace {

constexpr float kLeastLogprob = -9999.0f;  // JSON has no infinity

double written(float logprob) { return shortest_decimal(std::max(logprob, kLeastLogprob)); }

std::string server_sent(const nlohmann::json& json) { return "data: " + json_text(json) + "\n\n"; }

// A call in OpenAI's format.
nlohmann::json call_json(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

const char* finish_reason(StopReason reason, std::span<const ToolCall> calls) {
  return is_cut(reason) ? "length" : !calls.empty() ? "tool_calls" : "stop";
}

// {"token", "logprob", "bytes"}
nlohmann::json chat_token(const Tokenizer& tokenizer, TokenId token, float logprob) {
  const std::string bytes = tokenizer.bytes_of(token);
  nlohmann::json numbers = nlohmann::json::array();
  for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
  return {{"token", utf8_with_replacements(bytes)},
          {"logprob", written(logprob)},
          {"bytes", std::move(numbers)}};
}

nlohmann::json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenScore> scores) {
  nlohmann::json content = nlohmann::json::array();
  for (const TokenScore& score : scores) {
    nlohmann::json entry = chat_token(tokenizer, score.token, score.logprob);
    nlohmann::json& top = entry["top_logprobs"] = nlohmann::json::array();
    for (const auto& [token, logprob] : score.top) {
      top.push_back(chat_token(tokenizer, token, logprob));
    }
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// The text of a token in the older format, which has no field for bytes: a token that is only a
// part of a character gets the name bytes:\xf0\x9f.
std::string text_or_bytes(const std::string& bytes) {
  std::string text = utf8_with_replacements(bytes);
  if (text == bytes) return text;
  text = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    }
  }
  return text;
}

// The older format: one list per column.
nlohmann::json completion_logprobs(const Tokenizer& tokenizer, std::span<const TokenScore> scores,
                                   std::span<const std::size_t> offsets) {
  nlohmann::json tokens = nlohmann::json::array(), logprobs = tokens, tops = tokens;
  for (const TokenScore& score : scores) {
    tokens.push_back(text_or_bytes(tokenizer.bytes_of(score.token)));
    logprobs.push_back(written(score.logprob));
    nlohmann::json top = nlohmann::json::object();
    for (const auto& [token, logprob] : score.top) {
      const std::string text = text_or_bytes(tokenizer.bytes_of(token));
      if (!top.contains(text)) top[text] = written(logprob);
    }
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", offsets}};
}

}  // namespace

// Builds the JSON objects of an answer.
struct CompletionWriter::Builder {
  const CompletionWriter& writer;

  nlohmann::json envelope(nlohmann::json choices) const {
    const Options& options = writer.options_;
    const char* object = !options.chat    ? "text_completion"
                         : options.stream ? "chat.completion.chunk"
                                          : "chat.completion";
    nlohmann::json json = {{"id", options.id},
                           {"object", object},
                           {"created", options.created},
                           {"model", options.model},
                           {"choices", std::move(choices)}};
    if (options.stream && options.include_usage) json["usage"] = nullptr;
    return json;
  }

  // A chat has one prompt, so its ids are beside the choices. A completion has them in each choice.
  void add_prompt(nlohmann::json& json, std::size_t index) const {
    if (writer.options_.prompts) {
      json["prompt_token_ids"] = writer.options_.prompts->at(index / writer.options_.n);
    }
  }

  void add_tokens(nlohmann::json& choice, std::span<const TokenScore> scores) const {
    if (!writer.options_.prompts) return;
    nlohmann::json& ids = choice["token_ids"] = nlohmann::json::array();
    for (const TokenScore& score : scores) ids.push_back(score.token);
  }

  nlohmann::json usage() const {
    std::size_t prompt = 0, cached = 0, made = 0;
    for (std::size_t i = 0; i < writer.choices_.size(); ++i) {
      const TextEnd& end = writer.choices_[i].end;
      made += end.new_tokens;
      if (i % writer.options_.n != 0) continue;  // counts each prompt once
      prompt += end.prompt_tokens;
      cached += end.cached_tokens;
    }
    return {{"prompt_tokens", prompt},
            {"completion_tokens", made},
            {"total_tokens", prompt + made},
            {"prompt_tokens_details", {{"cached_tokens", cached}}}};
  }

  nlohmann::json logprobs(std::span<const TokenScore> scores,
                          std::span<const std::size_t> offsets) const {
    if (!writer.options_.logprobs) return nullptr;
    if (writer.options_.chat) return chat_logprobs(writer.tokenizer_, scores);
    return completion_logprobs(writer.tokenizer_, scores, offsets);
  }

  // One chunk of a stream. delta: the object "delta" of a chat, or the text of a completion. first:
  // true for the first chunk of the text.
  std::string chunk(std::size_t index, nlohmann::json delta, std::span<const TokenScore> scores,
                    std::span<const std::size_t> offsets, nlohmann::json finish, bool first) const {
    const bool chat = writer.options_.chat;
    nlohmann::json choice = {{"index", index},
                             {chat ? "delta" : "text", std::move(delta)},
                             {"logprobs", nullptr},
                             {"finish_reason", std::move(finish)}};
    if (!scores.empty()) choice["logprobs"] = logprobs(scores, offsets);
    add_tokens(choice, scores);
    if (first && !chat) add_prompt(choice, index);
    nlohmann::json whole = envelope(nlohmann::json::array({std::move(choice)}));
    if (first && chat) add_prompt(whole, index);
    return server_sent(whole);
  }
};

CompletionWriter::CompletionWriter(const Tokenizer& tokenizer, const Options& options)
    : tokenizer_(tokenizer), options_(options) {
  for (std::size_t i = 0; i < options.n_texts; ++i) {
    choices_.emplace_back().reader = ToolCallReader(options.tool_form);
  }
}

std::string CompletionWriter::begin() {
  std::string all;
  if (!options_.stream || !options_.chat) return all;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    all += Builder{*this}.chunk(i, {{"role", "assistant"}, {"content", ""}}, {}, {}, nullptr, true);
    choices_[i].begun = true;
  }
  return all;
}

// Takes the text and the calls of an event. In a stream, appends the chunks for them to `said`.
void CompletionWriter::take(std::size_t index, ToolCallReader::Found found, const TextEvent& event,
                            std::string& said) {
  Choice& choice = choices_[index];
  const Builder builder{*this};
  for (ToolCall& call : found.calls) {
    call.id = fmt::format("call_{}_{}_{}", options_.id.substr(options_.id.find('-') + 1), index,
                          choice.calls.size());
    choice.calls.push_back(std::move(call));
  }
  if (!options_.stream) {
    choice.text += found.text;
    if (event.score) {
      choice.scores.push_back(*event.score);
      choice.offsets.push_back(event.offset);
    }
    return;
  }
  if (!found.text.empty() || event.score) {
    std::span<const TokenScore> scores;
    if (event.score) scores = {&*event.score, 1};
    nlohmann::json delta = found.text;
    if (options_.chat) delta = {{"content", found.text}};
    said += builder.chunk(index, std::move(delta), scores, {&event.offset, 1}, nullptr,
                          !std::exchange(choice.begun, true));
  }
  for (std::size_t i = choice.calls.size() - found.calls.size(); i < choice.calls.size(); ++i) {
    nlohmann::json call = call_json(choice.calls[i]);
    call["index"] = i;
    said += builder.chunk(index, {{"tool_calls", nlohmann::json::array({std::move(call)})}}, {}, {},
                          nullptr, false);
  }
}

std::string CompletionWriter::add(std::size_t index, const TextEvent& event) {
  Choice& choice = choices_[index];
  std::string said;
  take(index, choice.reader.push(event.piece), event, said);
  if (!event.end) return said;
  ++ended_;
  choice.end = *event.end;
  if (!event.end->error.empty()) {
    if (!error_) error_ = error_of(*event.end, options_.grammar_field);
    return said;
  }
  take(index, choice.reader.finish(), {}, said);
  if (options_.stream) {
    const nlohmann::json nothing = options_.chat ? nlohmann::json::object() : nlohmann::json("");
    said +=
        Builder{*this}.chunk(index, nothing, {}, {}, finish_reason(choice.end.reason, choice.calls),
                             !std::exchange(choice.begun, true));
  }
  return said;
}

std::string CompletionWriter::finish() {
  const Builder builder{*this};
  if (options_.stream) {
    std::string rest;
    if (error_) {
      std::string text = error_->json();
      text.pop_back();  // without the newline: a server-sent event is one line
      rest += "data: " + text + "\n\n";
    } else if (options_.include_usage) {
      nlohmann::json last = builder.envelope(nlohmann::json::array());
      last["usage"] = builder.usage();
      rest += server_sent(last);
    }
    return rest + "data: [DONE]\n\n";
  }
  nlohmann::json choices = nlohmann::json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    nlohmann::json entry = {{"index", i},
                            {"logprobs", builder.logprobs(choice.scores, choice.offsets)},
                            {"finish_reason", finish_reason(choice.end.reason, choice.calls)}};
    if (options_.chat) {
      entry["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
      if (!choice.calls.empty()) {
        if (choice.text.empty()) entry["message"]["content"] = nullptr;
        nlohmann::json& calls = entry["message"]["tool_calls"] = nlohmann::json::array();
        for (const ToolCall& call : choice.calls) calls.push_back(call_json(call));
      }
    } else {
      entry["text"] = choice.text;
    }
    builder.add_tokens(entry, choice.scores);
    if (!options_.chat) builder.add_prompt(entry, i);
    choices.push_back(std::move(entry));
  }
  nlohmann::json whole = builder.envelope(std::move(choices));
  if (options_.chat) builder.add_prompt(whole, 0);
  whole["usage"] = builder.usage();
  return json_text(whole) + "\n";
}

}  // namespace stagecraft
