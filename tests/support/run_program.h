#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace stagecraft {

struct ProgramResult {
  int code = -1;  // the exit code; -1 if a signal ended it
  std::string out;
  std::string err;
};

// Whether the program's stdout contains `text`.
inline bool says(const ProgramResult& result, std::string_view text) {
  return result.out.find(text) != std::string::npos;
}

inline std::string shell_quoted(std::string_view text) {
  std::string quoted(1, '\'');
  for (const char c : text) {
    if (c == '\'') {
      quoted.append("'\\''");
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('\'');
  return quoted;
}

// Runs `stagecraft`, or the program that TESTED_PROGRAM in the environment names, with these
// arguments and without a terminal. environment: "NAME=value ...". out: the target of stdout as in
// a shell, such as "/dev/full", or "&-" to close it; by default the text is returned.
inline ProgramResult run_program(const std::vector<std::string>& arguments,
                                 const std::string& input = "", const std::string& environment = "",
                                 const std::string& out = "") {
  const TemporaryFolder folder;
  write_file(folder.file("in"), input);
  const char* tested = std::getenv("TESTED_PROGRAM");
  std::string command =
      fmt::format("{} {}", environment, shell_quoted(tested != nullptr ? tested : PROGRAM));
  for (const std::string& argument : arguments) {
    command += fmt::format(" {}", shell_quoted(argument));
  }
  command += fmt::format(" <{} >{} 2>{}", shell_quoted(folder.file("in")),
                         out.empty() ? shell_quoted(folder.file("out")) : out,
                         shell_quoted(folder.file("err")));
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder.file("out")),
          read_file(folder.file("err"))};
}

}  // namespace stagecraft
