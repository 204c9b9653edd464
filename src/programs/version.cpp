// If only the commit has changed, this is the one file that is compiled again.
#include "programs/version.h"

#include <fmt/format.h>

#include "generated_version.h"  // STAGECRAFT_VERSION, STAGECRAFT_COMMIT; written by CMake

namespace stagecraft {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

#if defined(__x86_64__)
constexpr const char* kInstructionSet = "x86-64 (portable)";
#elif defined(__aarch64__)
constexpr const char* kInstructionSet = "aarch64 (portable)";
#else
constexpr const char* kInstructionSet = "portable";
#endif

}  // namespace

std::string version_text() {
  return fmt::format("stagecraft {} (commit {})\ncompiler {}\ninstruction set {}",
                     STAGECRAFT_VERSION, STAGECRAFT_COMMIT, kCompiler, kInstructionSet);
}

}  // namespace stagecraft
