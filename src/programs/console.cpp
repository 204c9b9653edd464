#include "programs/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "programs/terminal.h"

namespace stagecraft {

namespace {

// Removes U+0000 to U+001F except newline and tab, and U+007F to U+009F.
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

void to_stdout(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);  // flush_stdout() checks for errors
  flush_stdout();
}

// The width of the terminal on stdout; 0 if there is no terminal, or if it cannot erase text.
std::size_t erasable_columns() {
  const char* kind = std::getenv("TERM");
  const bool can_erase = kind != nullptr && std::string_view(kind) != "dumb";
  return is_terminal(stdout) && can_erase ? Terminal::of_stdout().width : 0;
}

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

std::string counted(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string tokens_text(std::size_t n, double seconds) {
  return fmt::format("{} tokens, {:.0f} tokens/s", n,
                     seconds > 0.0 ? static_cast<double>(n) / seconds : 0.0);
}

void print_message(std::string_view text) {
  const bool wraps = is_terminal(stderr);
  const std::string line =
      wraps ? WordWrap(erasable_columns()).next(without_controls(text)) : std::string(text);
  std::fputs((line + "\n").c_str(), stderr);
}

void print_note(std::string_view text) {
  if (has_colour(stderr)) fmt::print(stderr, "\033[2m");
  print_message(text);
  if (has_colour(stderr)) fmt::print(stderr, "\033[0m");
}

void flush_stdout() {
  errno = EIO;  // the reason, if only an earlier write failed
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error("stdout: cannot be written: {}", std::strerror(errno));
  }
}

void print_now(std::string_view text) {
  to_stdout(is_terminal(stdout) ? without_controls(text) : std::string(text));
}

TextPrinter::TextPrinter() : wrap_(erasable_columns()) {}

TextPrinter::~TextPrinter() {
  try {
    end_line();
  } catch (const Error&) {  // an earlier call has thrown it already, or nobody needs it
  }
}

void TextPrinter::print(std::string_view piece) {
  if (!piece.empty()) last_ = piece.back();
  if (!is_terminal(stdout)) return to_stdout(piece);
  to_stdout(wrap_.next(without_controls(piece)));
}

void TextPrinter::end_line() {
  if (last_ != '\n') print_now("\n");
  last_ = '\n';
}

}  // namespace stagecraft
