#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace stagecraft {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

int combining_class(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Whether all characters are below `limit`, the first one that normalization may change. If so, the
// text stays as it is.
bool all_below(std::string_view text, char32_t limit) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.value >= limit) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

// Hugging Face's library normalizes with Unicode 9. These characters did not exist there, so they
// had neither decompositions nor combining classes. The table lists the newer characters that now
// have one, and the blocks in which they were added. reference/check_tokenizers.py made it and
// checks every character against that library.
constexpr std::pair<char32_t, char32_t> kNewerThanUnicode9[] = {
    {0x7fd, 0x7fd},     {0x870, 0x89f},     {0x8be, 0x8d3},     {0x9fe, 0x9fe},
    {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
    {0x1abf, 0x1aff},   {0x1df6, 0x1dfa},   {0x32ff, 0x32ff},   {0xa7f1, 0xa7f4},
    {0xa82c, 0xa82c},   {0xab66, 0xab6b},   {0x105c0, 0x105ff}, {0x10780, 0x107bf},
    {0x10d00, 0x10d8f}, {0x10e80, 0x10fff}, {0x11070, 0x11075}, {0x1133b, 0x1133b},
    {0x11380, 0x113ff}, {0x1145e, 0x1145f}, {0x11800, 0x1184f}, {0x11900, 0x1195f},
    {0x119a0, 0x11aaf}, {0x11d00, 0x11daf}, {0x11f00, 0x11f5f}, {0x16100, 0x1613f},
    {0x16d40, 0x16d7f}, {0x16ff0, 0x16ff1}, {0x1ccd6, 0x1ccf9}, {0x1e030, 0x1e08f},
    {0x1e100, 0x1e14f}, {0x1e290, 0x1e2ff}, {0x1e4d0, 0x1e4ff}, {0x1e5d0, 0x1e5ff},
    {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9},
};

// The marks that Unicode 17 has and that library does not know. A range ends before the next mark
// that it knows, so that it may also contain characters that are no marks.
constexpr std::pair<char32_t, char32_t> kMarksNewerThanUnicode9[] = {
    {0x5c8, 0x5c9},     {0x7fd, 0x7fd},     {0x897, 0x8d3},     {0x9fe, 0x9fe},
    {0xafa, 0xaff},     {0xb53, 0xb55},     {0xc04, 0xc3c},     {0xcf3, 0xd00},
    {0xd3b, 0xd3c},     {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},
    {0x1715, 0x1715},   {0x180f, 0x180f},   {0x1abf, 0x1af0},   {0x1cf7, 0x1cf7},
    {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0xa8ff, 0xa8ff},   {0x10d24, 0x10f85},
    {0x11070, 0x11074}, {0x110c2, 0x110c2}, {0x11145, 0x11146}, {0x111c9, 0x111c9},
    {0x111ce, 0x111cf}, {0x11241, 0x11241}, {0x1133b, 0x1133b}, {0x113b8, 0x113e2},
    {0x1145e, 0x1145e}, {0x1182c, 0x11b67}, {0x11d31, 0x1612f}, {0x16f4f, 0x16f4f},
    {0x16f7f, 0x16f87}, {0x16fe4, 0x16ff1}, {0x1cf00, 0x1d128}, {0x1d250, 0x1d281},
    {0x1e08f, 0x1e6f5},
};

bool is_in(std::span<const std::pair<char32_t, char32_t>> ranges, char32_t c) {
  const auto range =
      std::ranges::lower_bound(ranges, c, {}, &std::pair<char32_t, char32_t>::second);
  return range != ranges.end() && range->first <= c;
}

bool is_newer_than_unicode_9(char32_t c) { return is_in(kNewerThanUnicode9, c); }

// A text with only characters below this one is already in the form. It is the first combining mark
// for NFC, and for the others the first character with a canonical or compatibility decomposition.
char32_t first_changing(NormalForm form) {
  switch (form) {
    case NormalForm::kNFC:
      return 0x300;
    case NormalForm::kNFD:
      return 0xc0;
    case NormalForm::kNFKC:
    case NormalForm::kNFKD:
      return 0xa0;
  }
  return 0;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t value = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) value = value << 6 | (byte_at(text, i) & 0x3fu);
  return {value, length};
}

CodePoint last_code_point(std::string_view text) {
  std::size_t start = text.size() - 1;
  while (utf8_is_continuation(text[start])) --start;
  return first_code_point(text.substr(start));
}

std::size_t length_of_leading_blanks(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty() && is_whitespace(first_code_point(text).value)) {
    text.remove_prefix(first_code_point(text).length);
  }
  return size - text.size();
}

std::size_t begin_of_trailing_blanks(std::string_view text) {
  while (!text.empty() && is_whitespace(last_code_point(text).value)) {
    text.remove_suffix(last_code_point(text).length);
  }
  return text.size();
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += utf8_is_continuation(c) ? 0 : 1;
  return count;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

std::size_t grapheme_length(std::string_view text) {
  CodePoint last = first_code_point(text);
  std::size_t length = last.length;
  utf8proc_int32_t state = 0;
  while (length < text.size()) {
    const CodePoint next = first_code_point(text.substr(length));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    length += next.length;
    last = next;
  }
  return length;
}

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_letter(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_mark_of_unicode_9(char32_t c) {
  if (c == 0x1cf2 || c == 0x1cf3) return true;  // letters since Unicode 12
  const auto kind = category(c);
  const bool is_mark =
      kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ME;
  return is_mark && !is_in(kMarksNewerThanUnicode9, c);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_word(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO:  // symbols with Other_Alphabetic: letters in a circle or box
      return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
             (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
    default:
      return c == 0x200c || c == 0x200d;
  }
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

char32_t to_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

namespace {

std::string normalize_known(std::string_view text, NormalForm form) {
  if (all_below(text, first_changing(form))) return std::string(text);
  const bool compatible = form == NormalForm::kNFKC || form == NormalForm::kNFKD;
  const bool composed = form == NormalForm::kNFC || form == NormalForm::kNFKC;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatible ? UTF8PROC_COMPAT : 0));

  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    text.remove_prefix(c.length);
    utf8proc_int32_t decomposed[32];  // the longest decomposition has 18 (U+FDFA)
    int last_boundary_class = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), decomposed, 32,
                                           options, &last_boundary_class);
    if (n < 0 || n > 32) throw Error("normalization: {}", utf8proc_errmsg(n));
    characters.insert(characters.end(), decomposed, decomposed + n);
  }

  // Canonical order: sort each run of marks by combining class. utf8proc would do it, too, but in
  // time quadratic in the length of a run.
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(char32_t(c)) == 0; };
  for (auto at = characters.begin(); at != characters.end();) {
    const auto run = std::find_if_not(at, characters.end(), is_starter);
    at = std::find_if(run, characters.end(), is_starter);
    std::stable_sort(run, at, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(char32_t(a)) < combining_class(char32_t(b));
    });
  }

  auto length = static_cast<utf8proc_ssize_t>(characters.size());
  if (composed) length = utf8proc_normalize_utf32(characters.data(), length, options);
  if (length < 0) throw Error("normalization: {}", utf8proc_errmsg(length));
  std::string out;
  out.reserve(characters.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_utf8(out, static_cast<char32_t>(characters[static_cast<std::size_t>(i)]));
  }
  return out;
}

}  // namespace

// A character that Unicode 9 lacks is a boundary: no mark moves past it, and nothing is composed
// with it.
std::string normalize(std::string_view text, NormalForm form) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.substr(at));
    if (is_newer_than_unicode_9(c.value)) {
      out += normalize_known(text.substr(begin, at - begin), form);
      out += text.substr(at, c.length);
      begin = at + c.length;
    }
    at += c.length;
  }
  out += normalize_known(text.substr(begin), form);
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    text.remove_prefix(c.length);
    if (c.value == 0x130) {  // the only character whose lower case is two: i and a dot above
      out += "i\xcc\x87";
    } else {
      append_utf8(out, to_lower(c.value));
    }
  }
  return out;
}

}  // namespace stagecraft
