#include "programs/command_line.h"

namespace stagecraft {
namespace {

// CMake writes commands.inc: COMMAND(name) for each command of this program.
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
