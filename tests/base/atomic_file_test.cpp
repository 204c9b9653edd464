#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/error.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

TEST(AtomicFile, IsThereWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("a");
  {
    AtomicFile file(path, false);
    file.write(std::string_view("half"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  AtomicFile file(path, false);
  file.write(std::string_view("whole"));
  file.commit();
  EXPECT_EQ(read_file(path), "whole");
  EXPECT_THROW(AtomicFile(path, false), Error);
}

// What a full disk does, done by a limit.
TEST(AtomicFile, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    AtomicFile file(path, false);
    for (int i = 0; i < 10; ++i) file.write(std::string(4096, 'x'));
    file.commit();
  } catch (const Error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, path + ": cannot be written: File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace stagecraft
