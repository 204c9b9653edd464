#pragma once

#include <span>
#include <string_view>

// CLI11's header would take seconds to compile.
namespace CLI {
class App;
}

namespace stagecraft {

// `add` adds one subcommand: its options, its help, and a callback that does the work. A callback
// throws Error if its input is wrong. To end with another exit code, it throws
// CLI::RuntimeError(code).
struct Command {
  std::string_view name;
  void (*add)(CLI::App& app);
};

// Runs the command that the command line names. Returns the exit code: 0, or the command's own; 2
// if the command line is wrong; 1 after any other error. An error prints one line on stderr.
int run_command_line(int argc, char** argv, std::span<const Command> commands);

}  // namespace stagecraft
