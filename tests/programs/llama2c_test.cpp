// All commands that can read a llama2.c file.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

const std::string kLlama2cFiles = TEST_DATA "/formats/";

// The model's story is noise, but the same noise each time.
ProgramResult short_story(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"story", "a", "--temperature", "0", "-n", "5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

TEST(Llama2cProgram, TellsTheStoryOfTheFolderWithTheVocabularyBesideOrNamed) {
  const TemporaryFolder folder;
  const std::string model = folder.file("model.bin");
  std::filesystem::copy_file(kLlama2cFiles + "llama2c-story.bin", model);
  const ProgramResult none = short_story({"--model", model});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err,
            "stagecraft: " + model +
                ": expected its vocabulary in the same folder, as tokenizer.bin or tok700.bin, "
                "found neither (for a vocabulary in another folder: --tokenizer FILE)\n");
  const ProgramResult named =
      short_story({"--model", model, "--tokenizer", kLlama2cFiles + "tokenizer-bytes.bin"});
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_TRUE(named.out.starts_with("a")) << named.out;
  EXPECT_GT(named.out.size(), 2u);
  std::filesystem::copy_file(kLlama2cFiles + "tokenizer-angles.bin", folder.file("tokenizer.bin"));
  EXPECT_EQ(short_story({"--model", model}).out, named.out);
}

TEST(Llama2cProgram, NamesTheVocabularyOfAnotherModel) {
  const std::string tokenizer = std::string(REPOSITORY) + "/models/story";
  const ProgramResult result = run_program({"story", "-m", kLlama2cFiles + "llama2c-v0.bin",
                                            "--tokenizer", tokenizer, "Once upon a time"});
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.err.starts_with("stagecraft: " + tokenizer +
                                     "/tokenizer.json: expected ids from 0 to "))
      << result.err;
}

TEST(Llama2cProgram, SaysWhatAFileHolds) {
  const ProgramResult result = run_program({"info", kLlama2cFiles + "llama2c-v2.bin"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(says(result, "  architecture    llama, 2 layers\n")) << result.out;
  EXPECT_TRUE(says(result, "  vocabulary      65 rows, tied to the output head\n"));
  EXPECT_TRUE(says(result, "  kind            none\n"));
}

// This tokenizer has tokens that remove a space, and tokens that are parts of characters.
TEST(Llama2cProgram, TellsSeveralStoriesAsEachSeedAloneWithAStopText) {
  const auto tell = [](const char* seed, std::vector<std::string> more) {
    std::vector<std::string> words = {"story",       "One day",
                                      "--model",     TEST_DATA "/formats/llama2c-story.bin",
                                      "--tokenizer", TEST_DATA "/formats/tokenizer-angles.bin",
                                      "-n",          "40",
                                      "--stop",      "e",
                                      "--seed",      seed};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  for (const char* seed : {"2", "34", "60"}) {
    const std::string alone = tell(seed, {}).out;
    const ProgramResult several = tell(seed, {"--stories", "2"});
    EXPECT_TRUE(several.out.starts_with(alone)) << alone << several.out << several.err;
  }
}

}  // namespace
}  // namespace stagecraft
