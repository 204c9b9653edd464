#include "text/pipeline/regex.h"

#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  unsigned char buffer[200] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR bytes(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

template <class Pointer>
Pointer allocated(Pointer pointer) {
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

// The data of one run over a text, besides the pattern.
//
// A pattern such as \w+\s|\w reads a long word to its end for each of its letters, and PCRE2 only
// limits a single match. So at first, a match sees the next kWindow bytes. If PCRE2 wants to read
// beyond them (a partial match), it sees twice as many. The bytes that it sees in this way are
// counted, and limited. An ordinary pattern sees each byte about twice.
class Matcher {
 public:
  Matcher(const pcre2_code* code, std::string_view text)
      : code_(code),
        text_(text),
        data_(allocated(MatchData(pcre2_match_data_create(1, nullptr)))),
        most_shown_(kMostTimes * (text.size() + kWindow)) {}

  // Returns PCRE2's result: the number of groups found, or a negative code.
  int match(std::size_t from) {
    for (std::size_t window = kWindow;; window *= 2) {
      const std::size_t end = character_at(from + window);
      const int answer = match_until(from, end);
      const bool wants_more = answer == PCRE2_ERROR_PARTIAL || answer == PCRE2_ERROR_NOMATCH ||
                              (answer >= 0 && this->end() == end);
      if (end == text_.size() || !wants_more) return answer;
      shown_ += window;
      if (shown_ > most_shown_) return PCRE2_ERROR_MATCHLIMIT;
    }
  }

  std::size_t begin() const { return pcre2_get_ovector_pointer(data_.get())[0]; }
  std::size_t end() const { return pcre2_get_ovector_pointer(data_.get())[1]; }

 private:
  static constexpr std::size_t kWindow = 1024, kMostTimes = 64;

  // The first byte of the character at `at`, or the end of the text.
  std::size_t character_at(std::size_t at) const {
    if (at >= text_.size()) return text_.size();
    while ((static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) --at;
    return at;
  }

  int match_until(std::size_t from, std::size_t end) {
    const std::string_view text = text_.substr(0, end);
    int answer = match_once(text, from);
    if (answer == PCRE2_ERROR_JIT_STACKLIMIT && !stack_) {
      // The compiled code starts with 32 KiB on the thread's own stack, which is enough for all
      // patterns in use, except on extreme texts. Such a text gets a separate stack, whose pages
      // cost nothing until they are used.
      stack_ = allocated(JitStack(pcre2_jit_stack_create(1 << 16, 1 << 26, nullptr)));
      context_ = allocated(MatchContext(pcre2_match_context_create(nullptr)));
      pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
      answer = match_once(text, from);
    }
    return answer;
  }

  int match_once(std::string_view text, std::size_t from) {
    const std::uint32_t partial = text.size() < text_.size() ? PCRE2_PARTIAL_HARD : 0;
    return pcre2_match(code_, bytes(text), text.size(), from, PCRE2_NO_UTF_CHECK | partial,
                       data_.get(), context_.get());
  }

  const pcre2_code* code_;
  std::string_view text_;
  MatchData data_;
  JitStack stack_;
  MatchContext context_;
  std::size_t shown_ = 0, most_shown_;  // bytes
};

}  // namespace

struct Regex::Impl {
  std::string where;
  std::string pattern;
  Code code;
};

Regex::Regex(std::string_view pattern, std::string where) {
  auto impl = std::make_unique<Impl>();
  impl->where = std::move(where);
  impl->pattern = pattern;
  const std::string translated = translate_oniguruma(pattern, impl->where);

  const auto context = allocated(CompileContext(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  // MULTILINE: Ruby's ^ and $ always match at lines. DUPNAMES: Ruby allows a group name twice.
  // NEVER_BACKSLASH_C: \C could split a character.
  impl->code.reset(pcre2_compile(
      bytes(translated), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_DUPNAMES | PCRE2_NEVER_BACKSLASH_C, &error,
      &at, context.get()));
  if (!impl->code) {
    throw Error("{}: expected a regular expression, found '{}' ({})", impl->where,
                printable(pattern), message_of(error));
  }
  // This affects only speed: if PCRE2 has no JIT compiler for the processor, it interprets the
  // pattern.
  pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
  impl_ = std::move(impl);
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

void Regex::find_all(std::string_view text, std::vector<Match>& matches) const {
  Matcher matcher(impl_->code.get(), text);
  std::size_t covered = 0;      // end of the appended parts
  std::size_t from = 0;         // where the next search begins
  bool matched_before = false;  // a match ended at `covered`
  while (from <= text.size()) {
    const int answer = matcher.match(from);
    if (answer == PCRE2_ERROR_NOMATCH) break;
    if (answer < 0) {
      throw Error("{}: the pattern '{}' failed on a text of {} bytes: {}", impl_->where,
                  printable(impl_->pattern), text.size(), message_of(answer));
    }
    const std::size_t begin = matcher.begin();
    const std::size_t end = matcher.end();
    if (begin < covered || end < begin) {
      throw Error("{}: expected a pattern whose matches follow one another, found '{}'",
                  impl_->where, printable(impl_->pattern));
    }
    if (begin == end && matched_before && begin == covered) {  // empty, right after the last one
      if (from == text.size()) break;
      from += first_code_point(text.substr(from)).length;
      continue;
    }
    if (covered != begin) matches.push_back({covered, begin, false});
    matches.push_back({begin, end, true});
    covered = from = end;
    matched_before = true;
  }
  if (covered != text.size()) matches.push_back({covered, text.size(), false});
}

}  // namespace stagecraft
