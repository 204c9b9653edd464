#include "text/pipeline/pre_tokenizer.h"

#include <optional>
#include <utility>

#include "text/pipeline/byte_level.h"
#include "text/pipeline/metaspace.h"
#include "text/pipeline/pattern.h"
#include "text/pipeline/split.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(const JsonNode& node) {
    for (const JsonNode part : node.at("pretokenizers").elements()) parts_.push_back(read(part));
  }
  void apply(Pieces& pieces, const GrowthLimit& limit) const override {
    for (const auto& part : parts_) part->apply(pieces, limit);
  }

 private:
  std::vector<std::unique_ptr<const PreTokenizer>> parts_;
};

// Cuts at the matches of `find`; `behavior` says what happens to the matches.
class Cut : public PreTokenizer {
 public:
  Cut(SplitBehavior behavior, Finder find) : behavior_(behavior), find_(std::move(find)) {}
  void apply(Pieces& pieces, const GrowthLimit&) const override {
    split_pieces(pieces, behavior_, find_);
  }

 private:
  SplitBehavior behavior_;
  Finder find_;
};

std::unique_ptr<const PreTokenizer> cut_at_characters(SplitBehavior behavior,
                                                      std::function<bool(char32_t)> predicate) {
  return std::make_unique<Cut>(
      behavior, [predicate = std::move(predicate)](std::string_view text, std::vector<Match>& out) {
        find_characters(text, predicate, out);
      });
}

std::unique_ptr<const PreTokenizer> read_split(const JsonNode& node) {
  auto pattern = std::make_shared<const Pattern>(Pattern::read(node.at("pattern")));
  const SplitBehavior behavior = read_split_behavior(node.at("behavior"));
  const bool invert = node.boolean_or("invert", false);
  return std::make_unique<Cut>(behavior, [=](std::string_view text, std::vector<Match>& matches) {
    pattern->find_all(text, matches);
    if (!invert) return;
    for (Match& match : matches) match.matched = !match.matched;
  });
}

// Runs of word characters and runs of other characters; blanks are dropped. The same as
// \w+|[^\w\s]+ in Rust's regex crate.
void find_words(std::string_view text, std::vector<Match>& matches) {
  enum Kind { kBlank, kWord, kOther };
  const auto kind_of = [](char32_t c) {
    return is_word(c) ? kWord : is_whitespace(c) ? kBlank : kOther;
  };
  Kind run = kBlank;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.substr(at));
    const Kind kind = kind_of(c.value);
    if (matches.empty() || kind != run) matches.push_back({at, at, kind == kBlank});
    run = kind;
    at += c.length;
    matches.back().end = at;
  }
}

std::unique_ptr<const PreTokenizer> read_digits(const JsonNode& node) {
  const bool individual = node.boolean_or("individual_digits", false);
  return cut_at_characters(individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                           is_numeric);
}

std::unique_ptr<const PreTokenizer> read_punctuation(const JsonNode& node) {
  const auto behavior = node.find("behavior");
  return cut_at_characters(behavior ? read_split_behavior(*behavior) : SplitBehavior::kIsolated,
                           is_punctuation);
}

std::unique_ptr<const PreTokenizer> read_delimiter(const JsonNode& node) {
  const JsonNode delimiter = node.at("delimiter");
  const std::string_view text = delimiter.string();
  if (!is_one_character(text)) delimiter.refuse("one character");
  const char32_t wanted = first_code_point(text).value;
  return cut_at_characters(SplitBehavior::kRemoved, [=](char32_t c) { return c == wanted; });
}

// Pieces of `length` characters; the last one may be shorter.
std::unique_ptr<const PreTokenizer> read_fixed_length(const JsonNode& node) {
  const auto option = node.find("length");
  const std::int64_t length = option ? option->integer() : 5;
  if (length < 1) option->refuse("at least 1");
  return std::make_unique<Cut>(SplitBehavior::kIsolated,
                               [=](std::string_view text, std::vector<Match>& matches) {
                                 std::int64_t n = 0;
                                 for (std::size_t at = 0; at < text.size(); ++n) {
                                   if (n % length == 0) matches.push_back({at, at, true});
                                   at += first_code_point(text.substr(at)).length;
                                   matches.back().end = at;
                                 }
                               });
}

// GPT-2's pattern (openai/gpt-2, src/encoder.py).
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Cuts with this pattern, then turns every byte into its character of GPT-2's alphabet.
class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(const JsonNode& node)
      : add_prefix_space_(node.at("add_prefix_space").boolean()) {
    if (node.boolean_or("use_regex", true)) regex_.emplace(kGpt2Pattern, node.where());
  }

  void apply(Pieces& pieces, const GrowthLimit& limit) const override {
    if (add_prefix_space_) prefix_spaces(pieces);
    if (regex_) {
      split_pieces(
          pieces, SplitBehavior::kIsolated,
          [this](std::string_view text, std::vector<Match>& out) { regex_->find_all(text, out); });
    }
    std::string text;
    text.reserve(pieces.text.size() + pieces.text.size() / 4);
    for (Pieces::Piece& piece : pieces.pieces) {
      const std::size_t begin = text.size();
      append_byte_level(text,
                        std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin));
      piece = {begin, text.size(), piece.at_start};
    }
    limit.check("pre_tokenizer ByteLevel", text.size());
    pieces.text = std::move(text);
  }

 private:
  static void prefix_spaces(Pieces& pieces) {
    std::string text;
    text.reserve(pieces.text.size() + pieces.pieces.size());
    for (Pieces::Piece& piece : pieces.pieces) {
      const std::size_t begin = text.size();
      if (pieces.text[piece.begin] != ' ') text += ' ';
      text.append(pieces.text, piece.begin, piece.end - piece.begin);
      piece = {begin, text.size(), piece.at_start};
    }
    pieces.text = std::move(text);
  }

  bool add_prefix_space_;
  std::optional<Regex> regex_;
};

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(const JsonNode& node) : options_(MetaspaceOptions::read(node)) {}

  void apply(Pieces& pieces, const GrowthLimit& limit) const override {
    const std::string& mark = options_.replacement;
    std::string text;
    text.reserve(pieces.text.size() + pieces.text.size() / 4);
    for (Pieces::Piece& piece : pieces.pieces) {
      const std::string_view old =
          std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin);
      const std::size_t begin = text.size();
      const bool wants_mark =
          options_.prepend == MetaspaceOptions::Prepend::kAlways ||
          (options_.prepend == MetaspaceOptions::Prepend::kFirst && piece.at_start);
      if (wants_mark && old[0] != ' ' && !old.starts_with(mark)) text += mark;
      append_marked(text, old, mark);
      piece = {begin, text.size(), piece.at_start};
    }
    limit.check("pre_tokenizer Metaspace", text.size());
    pieces.text = std::move(text);
    if (!options_.split) return;
    const char32_t wanted = first_code_point(mark).value;
    split_pieces(pieces, SplitBehavior::kMergedWithNext,
                 [=](std::string_view piece, std::vector<Match>& matches) {
                   find_characters(
                       piece, [=](char32_t c) { return c == wanted; }, matches);
                 });
  }

 private:
  MetaspaceOptions options_;
};

}  // namespace

std::unique_ptr<const PreTokenizer> PreTokenizer::read(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string_view name = type.string();
  if (name == "Sequence") return std::make_unique<SequencePreTokenizer>(node);
  if (name == "ByteLevel") return std::make_unique<ByteLevelPreTokenizer>(node);
  if (name == "Metaspace") return std::make_unique<MetaspacePreTokenizer>(node);
  if (name == "Split") return read_split(node);
  if (name == "Digits") return read_digits(node);
  if (name == "Punctuation") return read_punctuation(node);
  if (name == "Whitespace") return std::make_unique<Cut>(SplitBehavior::kRemoved, find_words);
  if (name == "WhitespaceSplit") return cut_at_characters(SplitBehavior::kRemoved, is_whitespace);
  if (name == "CharDelimiterSplit") return read_delimiter(node);
  if (name == "FixedLength") return read_fixed_length(node);
  type.refuse(
      "a supported pre-tokenizer (Sequence, ByteLevel, Metaspace, Split, Digits, Punctuation, "
      "Whitespace, WhitespaceSplit, CharDelimiterSplit, FixedLength)");
}

}  // namespace stagecraft
