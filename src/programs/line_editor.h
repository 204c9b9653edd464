#pragma once

#include <memory>
#include <string>

namespace stagecraft {

// Lines that a person types, with editing and a history that lasts as long as the object; or, where
// stdin and stdout are not both a terminal, plain lines of stdin.
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

  // `line` is given without its newline; the bytes are as they came. It holds newlines only where
  // a person pasted a text of several lines and then pressed Enter. The prompt is shown only to a
  // person: where stdout is not a terminal but stdin is, on stderr.
  Status read(const std::string& prompt, std::string& line);

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;  // null: plain lines
};

}  // namespace stagecraft
