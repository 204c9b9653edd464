#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "text/word_wrap.h"

namespace stagecraft {

bool is_terminal(std::FILE* stream);

// May this stream carry colours? Terminals only, and not where NO_COLOR (no-color.org) is set.
bool has_colour(std::FILE* stream);

// A message to the person on stderr. A terminal breaks it between words. Where stderr cannot be
// written, it is lost.
void print_message(std::string_view text);
// The same, shown faint where colours are welcome: a remark.
void print_note(std::string_view text);

// Text that a model wrote, to stdout, to be seen at once. A terminal gets it without control
// characters (other than newline and tab): a model could steer it with them. Throws Error if it
// cannot be written.
void print_now(std::string_view text);

// Throws Error "stdout: cannot be written: REASON" if anything that was printed has not arrived: on
// a full disk, for example.
void flush_stdout();

// The same as print_now(), for one text that arrives piece by piece: a terminal breaks its lines
// between words.
class TextPrinter {
 public:
  TextPrinter();
  ~TextPrinter();  // ends the line, if stdout can be written: what comes next may be an error
  TextPrinter(const TextPrinter&) = delete;
  TextPrinter& operator=(const TextPrinter&) = delete;
  void print(std::string_view piece);
  void end_line();  // where a line has begun

 private:
  WordWrap wrap_;
  char last_ = '\n';
};

}  // namespace stagecraft
