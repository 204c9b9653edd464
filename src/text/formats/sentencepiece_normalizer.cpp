#include "text/formats/sentencepiece_normalizer.h"

#include "text/pipeline/metaspace.h"
#include "text/unicode.h"

namespace stagecraft {
SentencepieceNormalizer::SentencepieceNormalizer(const SentencepieceModel& model)
    : user_defined_(model.user_defined()),
      add_dummy_prefix_(model.add_dummy_prefix),
      remove_extra_whitespaces_(model.remove_extra_whitespaces) {
  if (!model.charsmap.empty()) {
    charsmap_.emplace(model.charsmap, model.file + ": normalizer_spec.precompiled_charsmap");
  }
}

// The bytes at the beginning of `text` that are replaced next, and their replacement.
Charsmap::Rule SentencepieceNormalizer::first(std::string_view text) const {
  if (const std::size_t length = user_defined_.longest_prefix(text); length > 0) {
    return {length, text.substr(0, length)};
  }
  if (charsmap_) {
    if (const auto rule = charsmap_->longest(text)) return *rule;
  }
  const std::size_t length = first_code_point(text).length;
  return {length, text.substr(0, length)};
}

void SentencepieceNormalizer::apply(std::string& text, bool&, const GrowthLimit& limit) const {
  std::string_view rest = text;
  while (remove_extra_whitespaces_ && !rest.empty()) {
    const Charsmap::Rule rule = first(rest);
    if (rule.text != " ") break;
    rest.remove_prefix(rule.length);
  }
  std::string out;
  if (rest.empty()) {
    text.clear();
    return;
  }
  out.reserve(rest.size() + rest.size() / 2);
  if (add_dummy_prefix_) out += kSpaceMark;
  bool after_space = remove_extra_whitespaces_;
  while (!rest.empty()) {
    Charsmap::Rule rule = first(rest);
    rest.remove_prefix(rule.length);
    while (after_space && rule.text.starts_with(' ')) rule.text.remove_prefix(1);
    if (rule.text.empty()) continue;
    append_marked(out, rule.text);
    limit.check("normalizer", out.size());
    after_space = remove_extra_whitespaces_ && rule.text.ends_with(' ');
  }
  while (remove_extra_whitespaces_ && out.ends_with(kSpaceMark))
    out.resize(out.size() - kSpaceMark.size());
  text = std::move(out);
}

}  // namespace stagecraft
