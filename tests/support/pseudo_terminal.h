#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// Runs a program in its own pseudo-terminal: a test can type, and read what the program shows.
class PseudoTerminal {
 public:
  // False in a bare chroot, which has no /dev/pts.
  static bool available() {
    const int terminal = open_one();
    if (terminal >= 0) ::close(terminal);
    return terminal >= 0;
  }

  PseudoTerminal(const std::string& program, std::vector<std::string> arguments,
                 const std::string& home) {
    terminal_ = open_one();
    if (terminal_ < 0) {
      ADD_FAILURE() << "no pseudo-terminal";
      return;
    }
    const winsize size = {24, 80, 0, 0};
    ::ioctl(terminal_, TIOCSWINSZ, &size);
    const std::string name = ::ptsname(terminal_);
    arguments.insert(arguments.begin(), program);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::setsid();
      ::signal(SIGINT, SIG_DFL);  // ignored, if the tests are a job in the background
      const int side = ::open(name.c_str(), O_RDWR);
      ::ioctl(side, TIOCSCTTY, 0);
      for (const int stream : {0, 1, 2}) ::dup2(side, stream);
      ::setenv("TERM", "vt100", 1);
      ::setenv("HOME", home.c_str(), 1);
      ::setenv("NO_COLOR", "1", 1);
      ::unsetenv("LC_ALL");
      ::unsetenv("LANG");
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~PseudoTerminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(terminal_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  void type(std::string_view text) {
    ASSERT_EQ(::write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  // Waits until `text` appears in the unread output. Returns the output up to the end of `text`;
  // the rest stays unread.
  std::string wait_for(std::string_view text) {
    std::size_t found;
    while ((found = unread_.find(text)) == std::string::npos) {
      if (!read_more()) {
        ADD_FAILURE() << "waited for '" << text << "', saw '" << unread_ << "'";
        return {};
      }
    }
    const std::string seen = unread_.substr(0, found + text.size());
    unread_.erase(0, seen.size());
    return seen;
  }

  // Waits for the program to end. Returns its exit code, or minus the signal that ended it. A
  // program that prints nothing for a minute and does not end is killed: -SIGKILL.
  int wait_for_end() {
    while (read_more()) {
    }
    int status = 0;
    if (!ends_soon(status)) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, &status, 0);
    }
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const std::string& unread() const { return unread_; }

 private:
  static int open_one() {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) return -1;
    if (::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0 &&
        ::access(::ptsname(terminal), R_OK | W_OK) == 0) {
      return terminal;
    }
    ::close(terminal);
    return -1;
  }

  // Whether the program ends within two seconds.
  bool ends_soon(int& status) const {
    for (int i = 0; i < 200; ++i) {
      if (::waitpid(child_, &status, WNOHANG) == child_) return true;
      ::usleep(10'000);
    }
    return false;
  }

  // Reads more output. False at its end, or if nothing comes for a minute.
  bool read_more() {
    pollfd waiting = {terminal_, POLLIN, 0};
    if (::poll(&waiting, 1, 60'000) <= 0) return false;
    char buffer[4096];
    const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
    if (n <= 0) return false;
    unread_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string unread_;
};

}  // namespace stagecraft
