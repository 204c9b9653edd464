#include "programs/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/ascii.h"
#include "base/utf8.h"
#include "programs/console.h"
#include "programs/word_wrap.h"

namespace stagecraft {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = ascii_lower(environment(name));
    if (value.empty()) continue;  // the first variable that is set decides
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

bool has_colour(std::FILE* stream) {
  const bool is_paged = stream == stdout && !environment("STAGECRAFT_PAGED").empty();
  return (is_paged || is_terminal(stream)) && environment("NO_COLOR").empty() &&
         environment("TERM") != "dumb";
}

Terminal Terminal::of_stdout() {
  Terminal terminal;
  terminal.utf8 = locale_is_utf8();
  const std::string paged = environment("STAGECRAFT_PAGED");
  if (paged.empty() && !is_terminal(stdout)) return terminal;
  winsize size{};
  std::size_t columns = std::strtoul(paged.c_str(), nullptr, 10);
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns != 0) terminal.width = std::clamp<std::size_t>(columns, 8, 200);
  terminal.color = has_colour(stdout);
  return terminal;
}

std::string Terminal::bold(std::string_view text) const {
  return color ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

std::string Terminal::dim(std::string_view text) const {
  return color ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text);
}

std::string visible(std::string_view text, bool utf8) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (byte == ' ') {
      out += utf8 ? "·" : "_";
    } else if (byte == '\n') {
      out += utf8 ? "↵" : "\\n";
    } else if (byte == '\t') {
      out += utf8 ? "⇥" : "\\t";
    } else if (length == 0 || utf8_controls_terminal(text) || (length > 1 && !utf8)) {
      for (const char c : text.substr(0, std::max<std::size_t>(1, length))) {
        out += fmt::format("<{:02x}>", static_cast<unsigned char>(c));
      }
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence_length(text));
    width += character_width(text.substr(0, length));
    text.remove_prefix(length);
  }
  return width;
}

std::string pad_right(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  return std::string(columns > width ? columns - width : 0, ' ') + std::string(text);
}

std::string cut_to(std::string_view text, std::size_t columns, bool utf8) {
  if (display_width(text) <= columns) return std::string(text);
  const std::string_view mark = utf8 ? "…" : "~";
  std::size_t end = 0;
  std::size_t width = 1;  // the mark's width
  while (end < text.size()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence_length(text.substr(end)));
    width += character_width(text.substr(end, length));
    if (width > columns) break;
    end += length;
  }
  return fmt::format("{}{}", text.substr(0, end), mark);
}

std::string bar(double fraction, std::size_t columns, bool utf8) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!std::isfinite(fraction)) return "";
  const double length = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(columns);
  std::string out;
  if (!utf8) return std::string(static_cast<std::size_t>(std::lround(length)), '#');
  const auto eighths = static_cast<std::size_t>(std::lround(length * 8.0));
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + std::string(kEighths[eighths % 8]);
}

}  // namespace stagecraft
