#include "programs/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"

namespace stagecraft {

namespace {

// Drops U+0000 to U+001F but newline and tab, and U+007F to U+009F.
std::string without_controls(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      ++i;
    } else if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t') {
      kept += text[i];
    }
  }
  return kept;
}

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

bool has_colour(std::FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(stream) && (no_colour == nullptr || *no_colour == '\0');
}

void print_note(std::string_view text) {
  if (has_colour(stderr)) {
    fmt::print(stderr, "\033[2m{}\033[0m\n", text);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
}

void print_now(std::string_view text) {
  std::string harmless;
  if (is_terminal(stdout)) text = harmless = without_controls(text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error("stdout: cannot be written");
  }
}

}  // namespace stagecraft
