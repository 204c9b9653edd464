#include "text/pipeline/normalizer.h"

#include <functional>
#include <utility>
#include <vector>

#include "text/pipeline/byte_level.h"
#include "text/pipeline/pattern.h"
#include "text/pipeline/precompiled.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(const JsonNode& node) {
    for (const JsonNode part : node.at("normalizers").elements()) parts_.push_back(read(part));
  }
  void apply(std::string& text, bool& at_start, const GrowthLimit& limit) const override {
    for (const auto& part : parts_) {
      if (!text.empty()) part->apply(text, at_start, limit);
    }
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> parts_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(const JsonNode& node) : prefix_(node.at("prepend").string()) {}
  void apply(std::string& text, bool&, const GrowthLimit& limit) const override {
    limit.check("normalizer Prepend", prefix_.size() + text.size());
    text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(const JsonNode& node)
      : pattern_(Pattern::read(node.at("pattern"))), content_(node.at("content").string()) {}

  void apply(std::string& text, bool& at_start, const GrowthLimit& limit) const override {
    std::vector<Match> matches;
    pattern_.find_all(text, matches);
    std::string out;
    out.reserve(text.size());
    for (const Match& part : matches) {
      const std::string_view old = std::string_view(text).substr(part.begin, part.end - part.begin);
      out += part.matched ? std::string_view(content_) : old;
      limit.check("normalizer Replace", out.size());
      // Hugging Face aligns the replacement with the last character that it replaces.
      if (part.matched && part.begin == 0 && !old.empty() &&
          (content_.empty() || first_code_point(old).length < old.size())) {
        at_start = false;
      }
    }
    text = std::move(out);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Strip : public Normalizer {
 public:
  explicit Strip(const JsonNode& node)
      : left_(node.at("strip_left").boolean()), right_(node.at("strip_right").boolean()) {}

  void apply(std::string& text, bool& at_start, const GrowthLimit&) const override {
    std::string_view rest = text;
    if (left_) rest.remove_prefix(length_of_leading_blanks(rest));
    if (rest.size() != text.size()) at_start = false;
    if (right_) rest = rest.substr(0, begin_of_trailing_blanks(rest));
    text = std::string(rest);
  }

 private:
  bool left_;
  bool right_;
};

// Maps each character to one character, or drops it if `map` returns kDropped.
class CharacterMap : public Normalizer {
 public:
  static constexpr char32_t kDropped = 0xffffffff;
  explicit CharacterMap(char32_t (*map)(char32_t)) : map_(map) {}

  void apply(std::string& text, bool& at_start, const GrowthLimit&) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = first_code_point(std::string_view(text).substr(at));
      const char32_t mapped = map_(c.value);
      if (mapped != kDropped) {
        append_utf8(out, mapped);
      } else if (at == 0) {
        at_start = false;
      }
      at += c.length;
    }
    text = std::move(out);
  }

 private:
  char32_t (*map_)(char32_t);
};

char32_t without_marks(char32_t c) { return is_mark_of_unicode_9(c) ? CharacterMap::kDropped : c; }

// The clean-up of sentencepiece's "nmt" rules: drops control characters and turns blanks into
// spaces.
char32_t nmt(char32_t c) {
  if ((c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f || c == 0x8f ||
      c == 0x9f) {
    return CharacterMap::kDropped;
  }
  const bool blank = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
  return blank ? U' ' : c;
}

// Rewrites the whole text with a function, which makes at most 11 bytes from one (U+FDFA).
class Rewrite : public Normalizer {
 public:
  Rewrite(std::string_view name, std::function<std::string(std::string_view)> rewrite)
      : step_(fmt::format("normalizer {}", name)), rewrite_(std::move(rewrite)) {}
  void apply(std::string& text, bool&, const GrowthLimit& limit) const override {
    text = rewrite_(text);
    limit.check(step_, text.size());
  }

 private:
  std::string step_;
  std::function<std::string(std::string_view)> rewrite_;
};

std::unique_ptr<const Normalizer> to_form(std::string_view name, NormalForm form) {
  return std::make_unique<Rewrite>(name,
                                   [form](std::string_view text) { return normalize(text, form); });
}

std::string to_byte_level(std::string_view text) {
  std::string out;
  append_byte_level(out, text);
  return out;
}

}  // namespace

std::unique_ptr<const Normalizer> Normalizer::read(const JsonNode& node) {
  const JsonNode type = node.at("type");
  const std::string_view name = type.string();
  if (name == "Sequence") return std::make_unique<SequenceNormalizer>(node);
  if (name == "Prepend") return std::make_unique<Prepend>(node);
  if (name == "Replace") return std::make_unique<Replace>(node);
  if (name == "Strip") return std::make_unique<Strip>(node);
  if (name == "NFC") return to_form(name, NormalForm::kNFC);
  if (name == "NFD") return to_form(name, NormalForm::kNFD);
  if (name == "NFKC") return to_form(name, NormalForm::kNFKC);
  if (name == "NFKD") return to_form(name, NormalForm::kNFKD);
  if (name == "Lowercase") return std::make_unique<Rewrite>(name, lowercase);
  if (name == "StripAccents") return std::make_unique<CharacterMap>(without_marks);
  if (name == "Nmt") return std::make_unique<CharacterMap>(nmt);
  if (name == "Precompiled") return std::make_unique<Precompiled>(node);
  if (name == "ByteLevel") return std::make_unique<Rewrite>(name, to_byte_level);
  type.refuse(
      "a supported normalizer (Sequence, Prepend, Replace, Strip, NFC, NFD, NFKC, NFKD, Lowercase, "
      "StripAccents, Nmt, Precompiled, ByteLevel)");
}

}  // namespace stagecraft
