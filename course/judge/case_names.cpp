#include "course/judge/case_names.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "course/judge/messages.h"
#include "course/judge/paths.h"

namespace stagecraft::stages {
namespace {

constexpr std::size_t kLengthOfHole = 3;  // "{0}"

class Pattern {
 public:
  explicit Pattern(std::string_view text) {
    std::size_t begin = 0;
    for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', begin)) {
      pieces_.emplace_back(text.substr(begin, at - begin));
      begin = at + kLengthOfHole;
    }
    pieces_.emplace_back(text.substr(begin));
    for (const std::string& piece : pieces_) n_letters_ += piece.size();
  }

  std::size_t n_letters() const { return n_letters_; }

  // The parts of a name at the places of {0}, {1}, ...; nullopt if the name does not fit the
  // pattern.
  std::optional<std::vector<std::string>> find_values(std::string_view name) const {
    if (pieces_.size() == 1) {
      return name == pieces_[0] ? std::optional(std::vector<std::string>{}) : std::nullopt;
    }
    if (!name.starts_with(pieces_.front()) || !name.ends_with(pieces_.back())) return std::nullopt;
    const std::size_t end = name.size() - pieces_.back().size();
    std::vector<std::string> values;
    std::size_t begin = pieces_.front().size();
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
      const bool is_last = i + 1 == pieces_.size();
      const std::size_t at = is_last ? end : name.find(pieces_[i], begin + 1);
      if (at > end || at <= begin) return std::nullopt;  // also if find() found nothing
      values.emplace_back(name.substr(begin, at - begin));
      begin = at + pieces_[i].size();
    }
    return values;
  }

 private:
  std::vector<std::string> pieces_;  // the text between the holes
  std::size_t n_letters_ = 0;
};

struct Entry {
  Pattern pattern;
  std::string words;  // in the reader's language; empty if the name needs no words in it
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    const nlohmann::json file = repository_json("stages/case_names.json");
    std::vector<Entry> read;
    for (const auto& [pattern, words] : file.items()) {
      read.push_back({Pattern(pattern), words.value(language(), "")});
    }
    return read;
  }();
  return all;
}

std::string filled(const std::string& words, const std::vector<std::string>& values) {
  fmt::dynamic_format_arg_store<fmt::format_context> given;
  for (const std::string& value : values) given.push_back(value);
  return fmt::vformat(words, given);
}

}  // namespace

std::string name_in_words(const std::string& name) {
  const Entry* best = nullptr;
  std::vector<std::string> values;
  for (const Entry& entry : entries()) {
    if (best != nullptr && entry.pattern.n_letters() <= best->pattern.n_letters()) continue;
    if (auto found = entry.pattern.find_values(name)) {
      best = &entry;
      values = std::move(*found);
    }
  }
  if (best == nullptr || best->words.empty()) return name;
  return say("case_named", name, filled(best->words, values));
}

}  // namespace stagecraft::stages
