#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

// The resident memory of the mapping of this file in KB, as Linux counts it; -1 on other systems.
int resident_kb(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path)) found = true;
    if (found && line.starts_with("Rss:")) return std::stoi(line.substr(4));
  }
  return -1;
}

TEST(MappedFile, LetsGoOfItsPagesAndReadsThemAgain) {
  const TemporaryFolder folder;
  const std::string path = folder.file("file");
  write_file(path, std::string(1u << 20, 'x'));
  const MappedFile file(path);
  const auto count = [&] { return std::ranges::count(file.bytes(), std::byte{'x'}); };
  EXPECT_EQ(count(), 1 << 20);
  const int before = resident_kb(path);
  if (before < 0) GTEST_SKIP() << "nobody counts resident pages here";
  EXPECT_GE(before, 1024);
  file.release_pages();
  EXPECT_LE(resident_kb(path), 64);
  EXPECT_EQ(count(), 1 << 20);
}

}  // namespace
}  // namespace stagecraft
