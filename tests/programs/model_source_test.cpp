// Every command opens and reads the file of a model once.
#ifdef __linux__
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

// Counts how often a file was opened since this object was made.
class Openings {
 public:
  explicit Openings(const std::string& file) : events_(inotify_init1(IN_NONBLOCK)) {
    // The kernel reports consecutive equal events as one, so closings are watched, too.
    EXPECT_GE(inotify_add_watch(events_, file.c_str(), IN_OPEN | IN_CLOSE_NOWRITE), 0);
  }
  ~Openings() { close(events_); }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;

  std::size_t count() const {
    std::size_t found = 0;
    inotify_event event;  // without a name: the watch is on a file, not a folder
    while (read(events_, &event, sizeof event) == sizeof event) {
      if ((event.mask & IN_OPEN) != 0) ++found;
    }
    return found;
  }

 private:
  int events_;
};

// Replaces MODEL in the words by a copy of the file, OUT.gguf by the path of a new file beside it.
void expect_one_opening(const std::string& original, std::vector<std::string> words,
                        const std::string& input = "") {
  const TemporaryFolder folder;
  const std::string model = folder.file(std::filesystem::path(original).filename().string());
  std::filesystem::copy_file(original, model);
  for (std::string& word : words) {
    if (word == "MODEL") word = model;
    if (word == "OUT.gguf") word = folder.file(word);
  }
  const Openings openings(model);
  const ProgramResult result = run_program(words, input);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(openings.count(), 1u) << words.front() << " " << original;
}

TEST(ModelSource, IsOpenedOnceByEachCommand) {
  for (const std::string path : {TEST_DATA "/gguf/whole.gguf", TEST_DATA "/formats/story.flm"}) {
    expect_one_opening(path, {"story", "--model", "MODEL", "the cat", "--max-tokens", "3"});
    expect_one_opening(path, {"peek", "--model", "MODEL", "the cat"});
    expect_one_opening(path, {"tokenize", "--model", "MODEL"}, "the cat");
  }
  for (const std::string path : {TEST_DATA "/gguf/whole.gguf", TEST_DATA "/formats/story.flm",
                                 TEST_DATA "/formats/llama2c-story.bin"}) {
    expect_one_opening(path, {"bench", "--model", "MODEL", "-p", "4", "-n", "2", "-r", "1"});
    expect_one_opening(path, {"info", "MODEL"});
    expect_one_opening(path, {"convert", "MODEL", "OUT.gguf", "--without-tokenizer"});
  }
  const std::string chats = TEST_DATA "/gguf/whole.gguf";
  expect_one_opening(chats, {"chat", "--model", "MODEL", "--max-tokens", "3"}, "and the cat?\n");
  expect_one_opening(chats, {"convert", "MODEL", "OUT.gguf"});
}

TEST(ModelSource, OfAFolderIsReadOnceByEachCommand) {
  for (const std::string file : {"config.json", "tokenizer.json", "model.safetensors"}) {
    for (const std::string command : {"story", "peek"}) {
      const TemporaryFolder folder;
      const std::string model = folder.file("model");
      ASSERT_EQ(run_program({"convert", TEST_DATA "/gguf/whole.gguf", model}).code, 0);
      const Openings openings(model + "/" + file);
      std::vector<std::string> words = {command, "--model", model, "the cat"};
      if (command == "story") words.insert(words.end(), {"--max-tokens", "3"});
      const ProgramResult result = run_program(words);
      EXPECT_EQ(result.code, 0) << result.err;
      EXPECT_EQ(openings.count(), 1u) << command << " " << file;
    }
  }
}

TEST(ModelSource, OfAFolderThatMayNotBeSearchedIsRefusedForThatReason) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may search everything";
  const TemporaryFolder folder;
  write_file(folder.file("tokenizer.json"), "{}");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::none);
  const ProgramResult result = run_program({"tokenize", "-m", folder.path().string(), "a"});
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "stagecraft: " + folder.file("tokenizer.json") +
                            ": cannot be opened: Permission denied\n");
}

}  // namespace
}  // namespace stagecraft
#endif
