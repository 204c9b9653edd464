#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "programs/word_wrap.h"

namespace stagecraft {

bool is_terminal(std::FILE* stream);

// "12 tokens, 40 tokens/s"
std::string tokens_text(std::size_t n, double seconds);

// Prints a message to the user on stderr. A terminal breaks it between words. If stderr cannot be
// written, the message is lost.
void print_message(std::string_view text);
// The same for "stagecraft: ERROR" in one line, whatever the error contains: a path may contain a
// newline, an argument may be broken UTF-8.
void print_error(std::string_view error);
// The same for a remark: faint, if the stream may carry colours.
void print_note(std::string_view text);

// Prints text of a model to stdout at once, without buffering. On a terminal, control characters
// (except newline and tab) are removed: a model could steer the terminal with them. Throws Error if
// stdout cannot be written.
void print_now(std::string_view text);

// Throws Error "stdout: cannot be written: REASON" if any printed text did not arrive, for example
// because the disk is full.
void flush_stdout();

// Like print_now(), for one text in several pieces: a terminal breaks its lines between words.
class TextPrinter {
 public:
  TextPrinter();
  ~TextPrinter();  // ends the line; ignores errors
  TextPrinter(const TextPrinter&) = delete;
  TextPrinter& operator=(const TextPrinter&) = delete;
  void print(std::string_view piece);
  void end_line();  // does nothing at the start of a line

 private:
  WordWrap wrap_;
  char last_ = '\n';
};

}  // namespace stagecraft
