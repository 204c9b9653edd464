// Every command that takes a model also takes a GGUF file.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

const std::string kGgufFiles = TEST_DATA "/gguf/";
const std::string kWhole = kGgufFiles + "whole.gguf";         // quantised
const std::string kWholeF32 = kGgufFiles + "whole-f32.gguf";  // the same, dequantised

// Expects the same output, not empty, for both files.
std::string output_for_both(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin() + 1, {"--model", kWhole});
  const ProgramResult result = run_program(arguments, input);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out, "");
  arguments[2] = kWholeF32;
  EXPECT_EQ(run_program(arguments, input).out, result.out);
  return result.out;
}

TEST(GgufProgram, TellsAStory) {
  const std::string story =
      output_for_both({"story", "the cat", "--temperature", "0", "--max-tokens", "20"});
  EXPECT_TRUE(story.starts_with("the cat")) << story;
}

TEST(GgufProgram, Chats) {
  output_for_both({"chat", "and the cat?", "--temperature", "0", "--max-tokens", "20"});
}

TEST(GgufProgram, ShowsTheNextTokens) { output_for_both({"peek", "the cat"}); }

TEST(GgufProgram, TokenizesAndBack) {
  EXPECT_EQ(output_for_both({"tokenize"}, "the cat"), "35,7,29,5,3,22\n");
  EXPECT_EQ(output_for_both({"tokenize", "--decode"}, "35,7,29,5,3,22"), "the cat");
}

TEST(GgufProgram, TracesWhatTheFolderTraces) {
  const TemporaryFolder folder;
  const std::vector<std::string> models = {kGgufFiles + "qwen3-qk-norm.gguf",
                                           TEST_DATA "/models/qwen3-qk-norm"};
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ProgramResult result = run_program({"trace", "--model", models[i], "--ids", "1,2,3",
                                              "--out", folder.file(i == 0 ? "a" : "b")});
    EXPECT_EQ(result.code, 0) << result.err;
  }
  EXPECT_EQ(read_file(folder.file("a")), read_file(folder.file("b")));
}

TEST(GgufProgram, SaysWhatAFileHolds) {
  const ProgramResult result = run_program({"info", kWhole});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(says(result, "  architecture    llama, 1 layer\n")) << result.out;
  EXPECT_TRUE(says(result, "  parameters      11,296\n"));  // blocks are counted by their elements
  EXPECT_TRUE(says(result, "  vocabulary      62 rows, tied to the output head\n"));
  EXPECT_TRUE(says(result, "  kind            byte-level BPE\n"));
  EXPECT_TRUE(says(result, "  chat template   ChatML (tokenizer.chat_template)\n"));
  EXPECT_TRUE(says(result, "  model.layers.*.mlp.down_proj.weight             [32, 64]  Q4_0\n"));
  EXPECT_TRUE(says(result, "  weights           "));
}

}  // namespace
}  // namespace stagecraft
