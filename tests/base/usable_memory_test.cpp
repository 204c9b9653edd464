#include "base/usable_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

void write_limit(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << '\n';
}

TEST(UsableMemory, IsTheLimitOfTheContainerIfThatIsLess) {
  const TemporaryFolder v2, v1;
  write_limit(v2.path() / "memory.max", "1048576");
  EXPECT_EQ(usable_memory(v2.path()), 1048576.0);
  write_limit(v1.path() / "memory/memory.limit_in_bytes", "2097152");
  EXPECT_EQ(usable_memory(v1.path()), 2097152.0);
}

TEST(UsableMemory, IsThatOfTheMachineIfTheContainerHasNoLimit) {
  const TemporaryFolder none, v2, v1;
  const double machine = usable_memory(none.path());
  EXPECT_GT(machine, 1e6);
  write_limit(v2.path() / "memory.max", "max");
  EXPECT_EQ(usable_memory(v2.path()), machine);
  write_limit(v1.path() / "memory/memory.limit_in_bytes", "9223372036854771712");  // as v1 has it
  EXPECT_EQ(usable_memory(v1.path()), machine);
}

}  // namespace
}  // namespace stagecraft
