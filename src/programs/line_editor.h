#pragma once

#include <termios.h>

#include <memory>
#include <string>

namespace stagecraft {

// Reads lines. On a terminal, a person can edit each line, and there is a history as long as this
// object exists. If stdin or stdout is not a terminal, reads plain lines from stdin.
class LineEditor {
 public:
  enum class Status {
    Line,         // a line was read
    Interrupted,  // Ctrl-C on an empty line (on a line with text it only clears the line)
    End,          // end of input, or Ctrl-D on an empty line
  };

  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  bool is_interactive() const { return terminal_ != nullptr; }

  // Gets `line` without its newline, with its bytes unchanged. It contains newlines only if a
  // person pasted a text of several lines and then pressed Enter. The prompt is shown
  // only to a person: on stdout, or on stderr if only stdin is a terminal. It is `marker` and a
  // space.
  Status read(const std::string& marker, std::string& line);

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;  // null: reads plain lines
};

// While it exists, the terminal on stdin does not show typed keys: they would appear in the middle
// of the text that the program prints. The next line gets them. Does nothing if stdin
// is not a terminal, or belongs to another program now.
class NoEcho {
 public:
  NoEcho();
  ~NoEcho();
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;

 private:
  bool is_off_ = false;
  termios before_ = {};
};

}  // namespace stagecraft
