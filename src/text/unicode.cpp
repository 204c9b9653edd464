#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

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

// Text that every character below `limit` leaves as it is needs no work.
bool all_below(std::string_view text, char32_t limit) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.value >= limit) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

// The characters below which every text is in the form: the first combining mark for NFC, the first
// character with a compatibility or canonical decomposition for the others.
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
  while ((byte_at(text, start) & 0xc0u) == 0x80u) --start;
  return first_code_point(text.substr(start));
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

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_ME;
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
    case UTF8PROC_CATEGORY_SO:  // the symbols that are Other_Alphabetic: letters in a circle or box
      return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
             (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
    default:
      return c == 0x200c || c == 0x200d;
  }
}

std::string normalize(std::string_view text, NormalForm form) {
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

  // Canonical order: each run of marks is sorted by combining class. utf8proc would do it too, but
  // in time quadratic in the length of a run.
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

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    text.remove_prefix(c.length);
    if (c.value == 0x130) {  // the one character whose lower case is two: i and a dot above
      out += "i\xcc\x87";
    } else {
      append_utf8(out,
                  static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value))));
    }
  }
  return out;
}

}  // namespace stagecraft
