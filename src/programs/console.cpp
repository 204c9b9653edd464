#include "programs/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "programs/terminal.h"

namespace stagecraft {

namespace {

// Removes what a terminal would obey, except newline and tab.
std::string without_controls(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence_length(text));
    if (text[0] == '\n' || text[0] == '\t' || !utf8_controls_terminal(text)) {
      kept += text.substr(0, length);
    }
    text.remove_prefix(length);
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

std::string tokens_text(std::size_t n, double seconds) {
  return fmt::format("{}, {:.0f} tokens/s", counted(n, "token"),
                     seconds > 0.0 ? static_cast<double>(n) / seconds : 0.0);
}

void print_message(std::string_view text) {
  const bool wraps = is_terminal(stderr);
  const std::string line =
      wraps ? WordWrap(erasable_columns()).next(without_controls(text)) : std::string(text);
  std::fputs((line + "\n").c_str(), stderr);
}

void print_error(std::string_view error) {
  print_message(fmt::format("stagecraft: {}", printable(error, 4096)));
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
