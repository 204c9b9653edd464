#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// A part of a text: [begin, end) in bytes, and whether it matched.
struct Match {
  std::size_t begin;
  std::size_t end;
  bool matched;
};

// A regular expression of a tokenizer.json, executed by PCRE2. These patterns are written for
// Oniguruma (which Hugging Face's library uses), so they are translated first. Immutable; threads
// may share it.
//
// Why not Oniguruma itself? For the patterns of GPT-2 and Llama 3 on 0.54 MB of Markdown, PCRE2's
// compiled code takes 42 and 35 ms, Debian's libonig 6.9.8 takes 231 and 197 ms, with the same
// pieces. The translation has 250 lines and rejects what it cannot translate.
class Regex {
 public:
  // `where` names the pattern in errors ("FILE: pre_tokenizer.pattern.Regex"). Throws Error if the
  // pattern is malformed or has a feature that PCRE2 does not have in the same form.
  Regex(std::string_view pattern, std::string where);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Appends matches and the parts between them, in order; together they cover `text`. As with
  // Oniguruma's find_iter, a match may be empty, but not directly after the previous match. `text`
  // must be UTF-8. Throws Error naming the pattern if it needs more steps or memory than PCRE2
  // allows, or reads a long text again and again: the result is never wrong.
  void find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// Translates `pattern` from Oniguruma's (Ruby) dialect to PCRE2's: \s, \w, \h, \b, (?m),
// \p{Script}, {n}?, {n,m}+ and {,m} have other meanings there. Throws Error starting with `where`
// if PCRE2 has no equivalent: classes in classes, &&.
std::string translate_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace stagecraft
