#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/number.h"

namespace stagecraft {
namespace {

nlohmann::json scalar(JsonNode node) {
  if (node.is_boolean()) return node.boolean();
  if (node.is_integer()) return node.integer();
  if (node.is_whole()) return node.whole();
  if (node.is_number()) return node.number();
  if (node.is_string()) return std::string(node.string());
  return nullptr;
}

// Receives the events of nlohmann's parser, which does not recurse, and writes the values again. It
// does not recurse either: a text of brackets alone may have a hundred thousand levels.
class MembersReader : public nlohmann::json::json_sax_t {
 public:
  std::map<std::string, std::string> take() { return std::move(members_); }

  bool null() override { return add("null"); }
  bool boolean(bool value) override { return add(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return add(json_text(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(json_text(value)); }
  bool number_float(number_float_t, const string_t& text) override {
    return add(text);  // a number of more than 64 bits is one of these: keep all its digits
  }
  bool string(string_t& text) override { return add(json_quoted(text)); }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON text
  bool start_object(std::size_t) override { return begin("{"); }
  bool start_array(std::size_t) override { return !open_.empty() && begin("["); }
  bool end_object() override {
    drop_repeated(open_.back().members);
    return end("}");
  }
  bool end_array() override { return end("]"); }
  bool key(string_t& text) override {
    if (open_.size() == 1) {
      key_ = text;
      return true;
    }
    std::vector<Member>& members = open_.back().members;
    if (!members.empty()) text_ += ',';
    members.push_back({text, text_.size()});
    text_ += json_quoted(text) + ":";
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Member {
    std::string key;
    std::size_t begin;  // in text_
    auto operator<=>(const Member&) const = default;
  };
  struct Open {
    bool is_array;
    std::size_t n_elements = 0;        // of an array
    std::vector<Member> members = {};  // of an object
  };

  // Before each value: a comma, if it follows another element.
  void separate() {
    if (!open_.empty() && open_.back().is_array && open_.back().n_elements++ > 0) text_ += ',';
  }
  bool add(std::string_view value) {
    if (open_.empty()) return false;  // the whole text is no object
    separate();
    text_ += value;
    if (open_.size() == 1) finish_member();
    return true;
  }
  bool begin(std::string_view bracket) {
    separate();
    if (!open_.empty()) text_ += bracket;
    open_.push_back({bracket == "["});
    return true;
  }
  bool end(std::string_view bracket) {
    open_.pop_back();
    if (open_.empty()) return true;
    text_ += bracket;
    if (open_.size() == 1) finish_member();
    return true;
  }

  // Each member but the last of its key is dropped, with the comma behind it. It is only noted
  // here: erasing it at once would move the rest of the text at every level.
  void drop_repeated(const std::vector<Member>& members) {
    std::vector<Member> sorted = members;
    std::ranges::sort(sorted);
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i].key != sorted[i - 1].key) continue;
      const std::size_t begin = sorted[i - 1].begin;
      const auto next = std::ranges::upper_bound(members, begin, {}, &Member::begin);
      dropped_.emplace_back(begin, next->begin);
    }
  }

  void finish_member() {
    std::ranges::sort(dropped_);
    std::string kept;
    std::size_t at = 0;
    for (const auto& [begin, end] : dropped_) {
      if (begin < at) continue;  // inside a member that is dropped as a whole
      kept.append(text_, at, begin - at);
      at = end;
    }
    kept.append(text_, at);
    members_[key_] = std::move(kept);
    text_.clear();
    dropped_.clear();
  }

  std::map<std::string, std::string> members_;
  std::string key_;   // of the member that is being read
  std::string text_;  // its value so far
  std::vector<Open> open_;
  std::vector<std::pair<std::size_t, std::size_t>> dropped_;  // parts of text_
};

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(JsonNode node) {
  if (!node.is_object() && !node.is_array()) return json_text(scalar(node));
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : ",") + one; };
  if (node.is_array()) {
    for (const JsonNode element : node.elements()) add(json_text(element));
    return "[" + text + "]";
  }
  for (const JsonNode member : node.members()) {
    add(json_quoted(member.key()) + ":" + json_text(member));
  }
  return "{" + text + "}";
}

std::string json_quoted(std::string_view text) { return json_text(nlohmann::json(text)); }

double shortest_decimal(float value) { return number_of(fmt::format("{}", value)).value(); }

std::optional<std::map<std::string, std::string>> json_members(std::string_view text) {
  // The parser treats a zero byte as the end, and would not read what follows.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  MembersReader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) return std::nullopt;
  return reader.take();
}

nlohmann::json json_value(std::string_view text) { return nlohmann::json::parse(text); }

}  // namespace stagecraft
