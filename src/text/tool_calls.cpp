#include "text/tool_calls.h"

#include <algorithm>
#include <utility>

#include "base/begun.h"
#include "base/json_text.h"
#include "text/grammar/gbnf_text.h"

namespace stagecraft {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::size_t kMostCalls = 16;  // per answer

// Rules for any text without `word`, or text up to the first `word`, followed by the rule `then`.
// Rule text-N: the last N characters read are the beginning of `word`. The first character of
// `word` must not occur in it again.
std::string until_word(std::string_view word, std::string_view then) {
  std::string rules;
  for (std::size_t n = 0; n < word.size(); ++n) {
    const std::string next =
        n + 1 == word.size() ? std::string(then) : fmt::format("text-{}", n + 1);
    std::string others = fmt::format("[^{}] text-0", word[0]);
    if (n > 0) {
      others = fmt::format("[{}] text-1 | [^{}{}] text-0", word[0], word[0], word[n]);
    }
    rules += fmt::format("text-{} ::= \"\" | [{}] {} | {}\n", n, word[n], next, others);
  }
  return rules;
}

// Takes every call that tool_gbnf allows. A grammar cannot forbid that an object has a key twice or
// is nested deeply, so Json, which refuses both, cannot read a call.
std::optional<ToolCall> parse_call(std::string_view text, const char* arguments_key) {
  const auto call = json_members(text);
  if (!call || call->size() != 2) return std::nullopt;
  const auto name = call->find("name"), arguments = call->find(arguments_key);
  if (name == call->end() || !name->second.starts_with('"')) return std::nullopt;
  if (arguments == call->end() || !arguments->second.starts_with('{')) return std::nullopt;
  const Json text_of_name(name->second, "name");
  return ToolCall{"", std::string(text_of_name.root().string()), arguments->second};
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

void append(ToolCallReader::Found& found, ToolCallReader::Found more) {
  found.text += more.text;
  std::ranges::move(more.calls, std::back_inserter(found.calls));
}

}  // namespace

std::string tool_gbnf(ToolForm form, const std::vector<Tool>& tools, const ToolRules& rules) {
  JsonGrammar json;
  const bool tagged = form == ToolForm::Tagged;
  std::string calls;
  for (const Tool& tool : tools) {
    const std::string begin =
        fmt::format("{{\"name\": \"{}\", \"{}\": ", tool.name, tagged ? "arguments" : "parameters");
    const auto beyond = tool.strict ? BeyondGrammar::Refuse : BeyondGrammar::Ignore;
    const std::string arguments =
        tool.parameters ? json.add_object(*tool.parameters, beyond) : "\"{}\"";
    calls +=
        fmt::format("{}{} {} \"}}\"", calls.empty() ? "" : " | ", gbnf_literal(begin), arguments);
  }
  const std::string text = rules.text_schema ? json.add(*rules.text_schema, rules.beyond_text) : "";
  std::string gbnf = fmt::format("call ::= {}\n", calls) + json.rules();
  if (!tagged) {
    gbnf += "other ::= [\\x00-\\U0010ffff]*\n";
    return gbnf + (rules.forced ? "root ::= call\n" : "root ::= call | \"\" | [^{] other\n");
  }
  const std::string open = gbnf_literal(kOpen), close = gbnf_literal(kClose);
  gbnf += fmt::format("body ::= \"\\n\"? call \"\\n\"? {}\n", close);
  gbnf += "calls ::= body";
  if (rules.several) gbnf += fmt::format(" (\"\\n\"? {} body){{0,{}}}", open, kMostCalls - 1);
  gbnf += "\n";
  if (rules.forced) return gbnf + fmt::format("root ::= {} calls\n", open);
  if (rules.text_schema) return gbnf + fmt::format("root ::= {} calls | {}\n", open, text);
  return gbnf + "root ::= text-0\n" + until_word(kOpen, "calls");
}

ToolCallReader::Found ToolCallReader::push(std::string_view piece) {
  held_ += piece;
  if (form_ == ToolForm::Tagged) return read_tagged(false);
  is_text_ = is_text_ || form_ == ToolForm::None || (!held_.empty() && held_[0] != '{');
  if (!is_text_) return {};
  return {std::exchange(held_, {}), {}};
}

ToolCallReader::Found ToolCallReader::finish() {
  if (form_ == ToolForm::Tagged) return read_tagged(true);
  if (auto call = parse_call(held_, "parameters")) return {"", {std::move(*call)}};
  return {std::exchange(held_, {}), {}};
}

// Where `</tool_call>` ends the call in held_: a string of its JSON may contain these characters,
// too. Goes on where the last search ended. npos: not yet.
std::size_t ToolCallReader::find_close() {
  for (const std::string_view held = held_; searched_ < held.size(); ++searched_) {
    const std::string_view rest = held.substr(searched_);
    if (rest[0] == '"') {
      in_string_ = !in_string_;
    } else if (in_string_ && rest[0] == '\\') {
      if (rest.size() == 1) break;
      ++searched_;
    } else if (!in_string_ && rest[0] == '<') {
      if (rest.starts_with(kClose)) return searched_;
      if (kClose.starts_with(rest)) break;
    }
  }
  return std::string::npos;
}

ToolCallReader::Found ToolCallReader::read_tagged(bool at_end) {
  Found found;
  if (in_call_) {
    const std::size_t close = find_close();
    if (close == std::string::npos && !at_end) return found;
    searched_ = 0;
    in_string_ = false;
    std::string body = held_.substr(0, close);
    held_.erase(0, close == std::string::npos ? close : close + kClose.size());
    in_call_ = false;
    if (auto call = parse_call(body, "arguments")) {
      found.calls.push_back(std::move(*call));
      after_call_ = true;
    } else {
      found.text += std::string(kOpen) + body;
      if (close != std::string::npos) found.text += kClose;
    }
    append(found, read_tagged(at_end));
    return found;
  }
  const std::size_t open = held_.find(kOpen);
  const std::size_t hold = open == std::string::npos && !at_end ? begun(held_, kOpen) : 0;
  found.text = held_.substr(0, open == std::string::npos ? held_.size() - hold : open);
  held_.erase(0, open == std::string::npos ? held_.size() - hold : open + kOpen.size());
  if (after_call_ && std::ranges::all_of(found.text, is_blank)) found.text.clear();
  in_call_ = open != std::string::npos;
  if (in_call_) append(found, read_tagged(at_end));
  return found;
}

}  // namespace stagecraft
