#include "programs/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cwchar>
#include <iostream>
#include <set>
#include <string_view>
#include <vector>

#include "programs/console.h"
#include "programs/terminal.h"

namespace stagecraft {
namespace {

constexpr int kHistoryLines = 1000;

// libedit reads characters in the encoding of the locale, and a bare machine has no locale set.
// This program always uses UTF-8.
void speak_utf8() {
  const auto is_utf8 = [] { return std::string_view(::nl_langinfo(CODESET)) == "UTF-8"; };
  if (std::setlocale(LC_CTYPE, "") != nullptr && is_utf8()) return;
  for (const char* name : {"C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr && is_utf8()) return;
  }
}

// A key without a character of its own sends several: "\e[" or "\eO", numbers, and a last
// character. libedit knows only keys without numbers. Of other keys, it drops the start and inserts
// the rest.
struct KeyBinding {
  const char* sequence;  // in libedit's notation: \e is Escape
  const char* command;
};

constexpr KeyBinding kKeys[] = {
    {"\\e[A", "ed-prev-history"},
    {"\\eOA", "ed-prev-history"},
    {"\\e[B", "ed-next-history"},
    {"\\eOB", "ed-next-history"},
    {"\\e[C", "ed-next-char"},
    {"\\eOC", "ed-next-char"},
    {"\\e[D", "ed-prev-char"},
    {"\\eOD", "ed-prev-char"},
    {"\\e[H", "ed-move-to-beg"},
    {"\\eOH", "ed-move-to-beg"},
    {"\\e[1~", "ed-move-to-beg"},
    {"\\e[7~", "ed-move-to-beg"},
    {"\\e[F", "ed-move-to-end"},
    {"\\eOF", "ed-move-to-end"},
    {"\\e[4~", "ed-move-to-end"},
    {"\\e[8~", "ed-move-to-end"},
    {"\\e[3~", "ed-delete-next-char"},
    // With Shift (2), Alt (3), Ctrl (5). rxvt has sequences of its own.
    {"\\e[1;2C", "ed-next-char"},
    {"\\e[1;2D", "ed-prev-char"},
    {"\\e[1;3C", "em-next-word"},
    {"\\e[1;3D", "ed-prev-word"},
    {"\\e[1;5C", "em-next-word"},
    {"\\e[1;5D", "ed-prev-word"},
    {"\\eOc", "em-next-word"},
    {"\\eOd", "ed-prev-word"},
    {"\\e\\e[C", "em-next-word"},
    {"\\e\\e[D", "ed-prev-word"},
    {"\\e[1;2H", "ed-move-to-beg"},
    {"\\e[1;2F", "ed-move-to-end"},
    {"\\e[1;3H", "ed-move-to-beg"},
    {"\\e[1;3F", "ed-move-to-end"},
    {"\\e[1;5H", "ed-move-to-beg"},
    {"\\e[1;5F", "ed-move-to-end"},
    {"\\e[3;3~", "em-delete-next-word"},
    {"\\e[3;5~", "em-delete-next-word"},
};

// A terminal with "bracketed paste" switched on sends these before and after a pasted text.
constexpr const char* kPaste = "\\e[200~";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

// Binds kKeys. Binds "ignore-key" to all other sequences that begin like one of them.
void bind_keys(EditLine* editor) {
  const auto bind = [&](const std::string& sequence, const char* command) {
    ::el_set(editor, EL_BIND, sequence.c_str(), command, nullptr);
  };
  // Sorted, because libedit forgets longer sequences when a prefix of them is bound.
  std::set<std::string> beginnings;
  std::vector<std::string_view> sequences = {kPaste};
  for (const KeyBinding& key : kKeys) sequences.emplace_back(key.sequence);
  for (const std::string_view sequence : sequences) {
    const std::size_t introducer = sequence.find_first_of("[O");
    for (std::size_t end = introducer + 1; end < sequence.size(); ++end) {
      beginnings.emplace(sequence.substr(0, end));
    }
  }
  for (const std::string& beginning : beginnings) {
    for (char c = '!'; c <= '~'; ++c) {
      const bool has_meaning = c == '\\' || c == '^';  // special in libedit's notation
      bind(beginning + (has_meaning ? "\\" : "") + c, "ignore-key");
    }
  }
  for (const KeyBinding& key : kKeys) bind(key.sequence, key.command);
}

}  // namespace

struct LineEditor::Terminal {
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt;
  bool interrupted = false;
  bool marks_pastes = false;  // the terminal supports bracketed paste

  Terminal() {
    speak_utf8();
    editor = ::el_init("stagecraft", stdin, stdout, stderr);
    history = ::history_init();
    HistEvent event;
    ::history(history, &event, H_SETSIZE, kHistoryLines);
    ::history(history, &event, H_SETUNIQUE, 1);
    ::el_set(editor, EL_CLIENTDATA, this);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_SIGNAL, 1);  // redraw after a resize or Ctrl-Z
    ::el_set(editor, EL_HIST, ::history, history);
    ::el_set(editor, EL_PROMPT_ESC, &Terminal::show_prompt, '\1');
    // Wide functions, because el_set() would copy the names and never free them.
    ::el_wset(editor, EL_ADDFN, L"ignore-key", L"Read a key and do nothing", &Terminal::ignore_key);
    ::el_wset(editor, EL_ADDFN, L"interrupt", L"Clear the line, or leave", &Terminal::on_interrupt);
    ::el_wset(editor, EL_ADDFN, L"suspend", L"Stop the program for now", &Terminal::on_suspend);
    ::el_wset(editor, EL_ADDFN, L"paste", L"Insert a pasted text", &Terminal::on_paste);
    bind_keys(editor);
    ::el_source(editor, nullptr);  // ~/.editrc
    // While a line is edited, Ctrl-C is a key and not a signal, so that it cannot interrupt at a
    // bad moment. Ctrl-Z is a key, too; its function sends the signal.
    ::el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
    ::el_set(editor, EL_BIND, "^C", "interrupt", nullptr);
    ::el_set(editor, EL_BIND, "^Z", "suspend", nullptr);
    marks_pastes = can_mark_pastes();
    if (marks_pastes) ::el_set(editor, EL_BIND, kPaste, "paste", nullptr);
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

  // False in vi mode (~/.editrc), because Escape alone is a key there.
  bool can_mark_pastes() const {
    const char* kind = std::getenv("TERM");
    const char* keys = nullptr;
    ::el_get(editor, EL_EDITOR, &keys);
    return kind != nullptr && std::string_view(kind) != "dumb" && keys != nullptr &&
           std::string_view(keys) == "emacs";
  }

  void mark_pastes(bool on) const {
    if (!marks_pastes) return;
    fmt::print("\033[?2004{}", on ? 'h' : 'l');
    std::fflush(stdout);
  }

  // Inserts the pasted text as it is: a newline does not end the line, and no character is a
  // command.
  static unsigned char on_paste(EditLine* editor, wint_t) {
    constexpr wchar_t kCtrlC = 3;  // in case the end marker does not arrive
    std::wstring text;
    while (!text.ends_with(kPasteEnd)) {
      wchar_t next = 0;
      if (::el_wgetc(editor, &next) != 1) return CC_EOF;
      if (next == kCtrlC) return CC_REFRESH;
      const bool after_return = next == '\n' && text.ends_with('\r');
      if (!after_return) text += next;
    }
    text.resize(text.size() - kPasteEnd.size());
    std::ranges::replace(text, L'\r', L'\n');
    std::erase_if(text, [](wchar_t c) { return (c < ' ' && c != '\n' && c != '\t') || c == 127; });
    while (text.ends_with('\n')) text.pop_back();
    if (!text.empty() && ::el_winsertstr(editor, text.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }

  // Reads the rest of a key's sequence. `last` is the character that was read last.
  static unsigned char ignore_key(EditLine* editor, wint_t last) {
    const auto is_number = [](wint_t c) { return c >= '0' && c <= '?'; };  // or ; : < = >
    wchar_t next = static_cast<wchar_t>(last);
    // F1 to F5 of the Linux console are "\e[[A" to "\e[[E".
    bool more = is_number(last) || last == '[';
    while (more) {
      if (::el_wgetc(editor, &next) != 1) return CC_EOF;
      more = is_number(static_cast<wint_t>(next));
    }
    return CC_NORM;
  }

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

  static unsigned char on_suspend(EditLine* editor, wint_t) {
    of(editor).mark_pastes(false);
    std::raise(SIGTSTP);
    of(editor).mark_pastes(true);
    return CC_REDISPLAY;
  }

  Status read(const std::string& marker, std::string& line) {
    // Text between two \1 counts as zero columns wide. libedit writes it together with the next
    // character. So a space comes after the end of the bold text: the line may stay empty.
    prompt = has_colour(stdout) ? fmt::format("\1\033[1m\1{}\1\033[0m\1 ", marker) : marker + " ";
    interrupted = false;
    int count = 0;
    ::el_set(editor, EL_PREP_TERM, 1);  // before the prompt, or a key could arrive too early
    mark_pastes(true);
    const char* text = ::el_gets(editor, &count);
    mark_pastes(false);
    if (text == nullptr || count <= 0) {
      fmt::print("\n");  // leaves the prompt's line
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

LineEditor::Status LineEditor::read(const std::string& marker, std::string& line) {
  if (terminal_ != nullptr) return terminal_->read(marker, line);
  if (is_terminal(stdin) && is_terminal(stderr)) fmt::print(stderr, "{} ", marker);
  if (!std::getline(std::cin, line)) return Status::End;
  if (line.ends_with('\r')) line.pop_back();
  return Status::Line;
}

NoEcho::NoEcho() {
  // In the background, changing the terminal would stop the program.
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp() || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios silent = before_;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  is_off_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &silent) == 0;
}

NoEcho::~NoEcho() {
  if (is_off_ && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
}

}  // namespace stagecraft
