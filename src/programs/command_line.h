#pragma once

#include <span>
#include <string_view>

#include "programs/commands.h"

namespace stagecraft {

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app);  // see commands.h
};

// Runs the one of `commands` that the command line names. Returns the exit code: what is wrong is
// told on stderr, in one line, with code 2 where it is the command line itself, and else 1.
int run_command_line(int argc, char** argv, std::span<const Command> commands);

}  // namespace stagecraft
