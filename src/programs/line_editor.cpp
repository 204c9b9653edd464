#include "programs/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>

#include <clocale>
#include <csignal>
#include <cwchar>
#include <iostream>
#include <string_view>

#include "programs/console.h"

namespace stagecraft {
namespace {

constexpr int kHistoryLines = 1000;

// libedit reads characters as the locale has them, and a bare machine has none set; what this
// program speaks is UTF-8 in any case.
void speak_utf8() {
  const auto is_utf8 = [] { return std::string_view(::nl_langinfo(CODESET)) == "UTF-8"; };
  if (std::setlocale(LC_CTYPE, "") != nullptr && is_utf8()) return;
  for (const char* name : {"C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr && is_utf8()) return;
  }
}

}  // namespace

struct LineEditor::Terminal {
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt;
  bool interrupted = false;

  Terminal() {
    speak_utf8();
    editor = ::el_init("stagecraft", stdin, stdout, stderr);
    history = ::history_init();
    HistEvent event;
    ::history(history, &event, H_SETSIZE, kHistoryLines);
    ::history(history, &event, H_SETUNIQUE, 1);
    ::el_set(editor, EL_CLIENTDATA, this);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_SIGNAL, 1);  // a resized window, Ctrl-Z
    ::el_set(editor, EL_HIST, ::history, history);
    ::el_set(editor, EL_PROMPT_ESC, &Terminal::show_prompt, '\1');
    ::el_source(editor, nullptr);  // ~/.editrc
    // While a line is edited Ctrl-C is a key and no signal, so that none can come at a bad moment;
    // Ctrl-Z, which then is a key too, sends its signal as before.
    ::el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
    // Wide, since el_set() would copy the names and never free them.
    ::el_wset(editor, EL_ADDFN, L"interrupt", L"Clear the line, or leave", &Terminal::on_interrupt);
    ::el_wset(editor, EL_ADDFN, L"suspend", L"Stop the program for now", &Terminal::on_suspend);
    ::el_set(editor, EL_BIND, "^C", "interrupt", nullptr);
    ::el_set(editor, EL_BIND, "^Z", "suspend", nullptr);
  }
  ~Terminal() {
    ::history_end(history);
    ::el_end(editor);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static Terminal& of(EditLine* editor) {
    void* self = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Terminal*>(self);
  }

  static char* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }

  static unsigned char on_interrupt(EditLine* editor, wint_t) {
    const LineInfoW* line = ::el_wline(editor);
    const auto length = line->lastchar - line->buffer;
    if (length == 0) {
      of(editor).interrupted = true;
      return CC_EOF;
    }
    ::el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
    ::el_wdeletestr(editor, static_cast<int>(length));
    return CC_REFRESH;
  }

  static unsigned char on_suspend(EditLine*, wint_t) {
    std::raise(SIGTSTP);
    return CC_REDISPLAY;
  }

  Status read(const std::string& marker, std::string& line) {
    // What stands between two \1 has no width.
    prompt = has_colour(stdout) ? fmt::format("\1\033[1m\1{}\1\033[0m\1", marker) : marker;
    interrupted = false;
    int count = 0;
    ::el_set(editor, EL_PREP_TERM, 1);  // before the prompt, else a key could come too early
    const char* text = ::el_gets(editor, &count);
    if (text == nullptr || count <= 0) {
      fmt::print("\n");  // leave the line of the prompt
      return interrupted ? Status::Interrupted : Status::End;
    }
    line.assign(text, static_cast<std::size_t>(count));
    if (line.ends_with('\n')) line.pop_back();
    if (!line.empty()) {
      HistEvent event;
      ::history(history, &event, H_ENTER, line.c_str());
    }
    return Status::Line;
  }
};

LineEditor::LineEditor() {
  if (is_terminal(stdin) && is_terminal(stdout)) terminal_ = std::make_unique<Terminal>();
}

LineEditor::~LineEditor() = default;

LineEditor::Status LineEditor::read(const std::string& prompt, std::string& line) {
  if (terminal_ != nullptr) return terminal_->read(prompt, line);
  if (is_terminal(stdin) && is_terminal(stderr)) fmt::print(stderr, "{}", prompt);
  if (!std::getline(std::cin, line)) return Status::End;
  if (line.ends_with('\r')) line.pop_back();
  return Status::Line;
}

}  // namespace stagecraft
