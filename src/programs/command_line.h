#pragma once

#include <span>
#include <string_view>

#include "programs/commands.h"

namespace stagecraft {

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app);  // adds the subcommand, see commands.h
};

// Runs the command that the command line names. Returns the exit code: 0, or the command's own; 2
// if the command line is wrong; 1 after any other error. An error prints one line on stderr.
int run_command_line(int argc, char** argv, std::span<const Command> commands);

}  // namespace stagecraft
