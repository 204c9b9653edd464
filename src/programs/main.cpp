#include "programs/command_line.h"

// CMake writes commands.inc: COMMAND(name) for each command of this program. NAME.cpp defines
// add_NAME.
namespace stagecraft {

#define COMMAND(name) void add_##name(CLI::App& app);
#include "commands.inc"
#undef COMMAND

namespace {

constexpr Command kCommands[] = {
#define COMMAND(name) {#name, add_##name},
#include "commands.inc"
#undef COMMAND
};

}  // namespace
}  // namespace stagecraft

int main(int argc, char** argv) {
  return stagecraft::run_command_line(argc, argv, stagecraft::kCommands);
}
