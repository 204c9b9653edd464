#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "tests/support/error_of.h"
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

TEST(AtomicFile, DoesNotReplaceAFileThatWasMadeMeanwhile) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder.file("a"), false);
    file.write(std::string_view("new"));
    folder.write("a", "of another program");
    EXPECT_EQ(error_of([&] { file.commit(); }),
              folder.file("a") + ": already exists (--force replaces it)");
  }
  EXPECT_EQ(read_file(folder.file("a")), "of another program");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// Its name has the id of the process, which may come again.
TEST(AtomicFile, DoesNotWriteIntoAnUnfinishedFileThatIsLeftOver) {
  const TemporaryFolder folder;
  const std::filesystem::path other = folder.write("other", "kept");
  std::filesystem::create_symlink(other, folder.file(fmt::format("a.part-{}", ::getpid())));
  AtomicFile file(folder.file("a"), false);
  file.write(std::string_view("new"));
  file.commit();
  EXPECT_EQ(read_file(folder.file("a")), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.file("a")));
  EXPECT_EQ(read_file(other), "kept");
}

TEST(AtomicFile, KeepsWhoMayReadTheFileThatItReplaces) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("a", "old");
  std::filesystem::permissions(path, std::filesystem::perms{0600});
  AtomicFile file(path, true);
  file.write(std::string_view("new"));
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600});
}

TEST(AtomicFile, FollowsALinkToARegularFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("a", "old"), link = folder.file("link");
  std::filesystem::create_symlink(path, link);
  AtomicFile file(link, true);
  file.write(std::string_view("new"));
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST(AtomicFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const std::string fifo = folder.file("fifo"), link = folder.file("link");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(folder.file("nothing"), link);
  const std::string kept = folder.path().string();
  const std::pair<std::string, std::string> cases[] = {
      {"/dev/null", "a device"}, {fifo, "a FIFO"}, {link, "a link to nothing"}, {kept, "a folder"}};
  for (const auto& [path, found] : cases) {
    EXPECT_EQ(error_of([&path = path] { AtomicFile(path, true); }),
              path + ": expected a regular file, found " + found);
  }
}

// In a folder without search permission, the program cannot know whether the file exists.
TEST(AtomicFile, SaysThatAFolderMayNotBeSearched) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may search everything";
  const TemporaryFolder folder;
  const std::filesystem::path closed = folder.path() / "closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  for (const bool replace : {false, true}) {
    EXPECT_EQ(error_of([&] { AtomicFile(closed / "a", replace); }),
              (closed / "a").string() + ": cannot be written: Permission denied");
  }
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
}

// A limit of the file size acts like a full disk.
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
