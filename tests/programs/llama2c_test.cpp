// What is done with a llama2.c file.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

const std::string kFolder = TEST_DATA "/formats/";

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The story that this model tells is noise, but the same noise.
ProgramResult story(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"story", "a", "--temperature", "0", "-n", "5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

TEST(Llama2cProgram, TellsTheStoryOfTheFolderWithTheVocabularyBesideOrNamed) {
  const TemporaryFolder folder;
  const std::string model = folder.file("model.bin");
  std::filesystem::copy_file(kFolder + "llama2c-story.bin", model);
  const ProgramResult none = story({"--model", model});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err, "stagecraft: " + model +
                          ": expected its vocabulary beside it, as tokenizer.bin or tok700.bin, "
                          "found none (elsewhere: --tokenizer FILE)\n");
  const ProgramResult named =
      story({"--model", model, "--tokenizer", kFolder + "tokenizer-bytes.bin"});
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_TRUE(named.out.starts_with("a")) << named.out;
  EXPECT_GT(named.out.size(), 2u);
  std::filesystem::copy_file(kFolder + "tokenizer-angles.bin", folder.file("tokenizer.bin"));
  EXPECT_EQ(story({"--model", model}).out, named.out);
}

TEST(Llama2cProgram, SaysWhatAFileHolds) {
  const ProgramResult result = run_program({"info", kFolder + "llama2c-v2.bin"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(says(result.out, "  architecture    llama, 2 layers\n")) << result.out;
  EXPECT_TRUE(says(result.out, "  vocabulary      65 rows, tied to the output head\n"));
  EXPECT_TRUE(says(result.out, "  kind            none\n"));
}

}  // namespace
}  // namespace stagecraft
