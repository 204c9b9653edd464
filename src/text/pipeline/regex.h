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

// A regular expression of a tokenizer.json, run by PCRE2. Those are written in the dialect of
// Oniguruma (which Hugging Face's library uses), so the pattern is translated first.
// Immutable; threads may share it.
//
// Why not Oniguruma itself: on 0.54 MB of Markdown, the patterns of GPT-2 and Llama 3 take PCRE2's
// compiled code 42 and 35 ms, and Debian's libonig 6.9.8 231 and 197 ms, with the same cuts. The
// translation is 180 lines, and refuses what it does not know.
class Regex {
 public:
  // `where` names the pattern in errors ("FILE: pre_tokenizer.pattern.Regex"). Throws Error if the
  // pattern is malformed or asks for what PCRE2 cannot do the same way.
  Regex(std::string_view pattern, std::string where);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Appends parts that together cover `text`, matches and what lies between, in order. As in
  // Oniguruma's find_iter a match may be empty, but not right behind the one before.
  // `text` must be UTF-8. Throws Error, naming the pattern, if it takes more steps or memory than
  // PCRE2 allows: never a wrong answer.
  void find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// `pattern` from Oniguruma's (Ruby) dialect to PCRE2's: \s, \w, \h, \b, (?m) and \p{Script} mean
// other things there. Throws Error starting with `where` for what has no counterpart: classes in
// classes, &&.
std::string translate_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace stagecraft
