// The input is a regular expression of a tokenizer.json, a newline, and a text that it cuts. The
// parts must cover the text in order, or there must be an Error.
#include "base/error.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "text/pipeline/regex.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [pattern, bytes] = two_texts(as_text(data, size), '\n');
  const std::string text = utf8_with_replacements(bytes);
  try {
    const Regex regex(pattern, "pattern");
    std::vector<Match> parts;
    regex.find_all(text, parts);
    std::size_t covered = 0;
    for (const Match& part : parts) {
      require(part.begin == covered && part.end >= part.begin && part.end <= text.size(),
              "the parts cover the text in order");
      require(utf8_error_offset(std::string_view(text).substr(part.begin, part.end - part.begin)) ==
                  std::string_view::npos,
              "no part ends within a character");
      covered = part.end;
    }
    require(covered == text.size(), "the parts cover the text");
  } catch (const Error&) {
  }
  return 0;
}
