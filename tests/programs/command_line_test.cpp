// Help texts and errors name the program as the user typed it: stagecraft, or the script ./stage.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

constexpr const char* kAlone = "STAGECRAFT_HOME=";
const std::string kInStage = "STAGECRAFT_HOME=" + shell_quoted(REPOSITORY);

std::string help(const std::string& command, const std::string& environment) {
  return run_program({command, "--help"}, "", environment).out;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(CommandLine, HelpNamesTheProgramAsItWasTyped) {
  for (const std::string command : {"story", "chat", "serve", "bench", "convert", "tokenize",
                                    "info", "peek", "trace", "compare", "perplexity"}) {
    const std::string alone = help(command, kAlone), in_stage = help(command, kInStage);
    EXPECT_TRUE(has(alone, "stagecraft " + command + " ")) << alone;
    EXPECT_FALSE(has(alone, "./stage " + command)) << alone;
    EXPECT_TRUE(has(in_stage, "./stage " + command + " [OPTIONS]")) << in_stage;
    EXPECT_TRUE(has(in_stage, "./stage " + command + " ")) << in_stage;
    EXPECT_FALSE(has(in_stage, "stagecraft ")) << in_stage;
  }
}

TEST(CommandLine, ErrorsNameTheProgramAsItWasTyped) {
  EXPECT_EQ(run_program({"story", "--mire"}, "", kInStage).err,
            "stagecraft: unexpected option '--mire'; see './stage story --help'\n");
  EXPECT_EQ(run_program({}, "", kInStage).err,
            "stagecraft: expected a command; './stage --help' lists them\n");
}

TEST(CommandLine, HelpIsAlsoACommand) {
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  const ProgramResult story = run_program({"help", "story"});
  EXPECT_EQ(story.code, 0);
  EXPECT_EQ(story.out, run_program({"story", "--help"}).out);
}

TEST(CommandLine, HelpSaysWhatExcludesAnOptionAfterWhatItDoes) {
  const std::string story = help("story", kAlone);
  EXPECT_TRUE(has(story, "-p,--prompt TEXT=\"Once upon a time\"\n")) << story;
  EXPECT_TRUE(has(story, "How the story begins (not with --file, --ids)\n")) << story;
  EXPECT_TRUE(has(help("perplexity", kAlone), "The text, UTF-8 (required)\n"));
}

TEST(CommandLine, TheLastValueOfAnOptionHolds) {
  const auto ids = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"story", "--model", TEST_DATA "/gguf/whole-f32.gguf", "--ids", "1",
                               "--print-ids", "--temp", "5", "-n", "9"});
    const ProgramResult result = run_program(more);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(ids({"--seed", "1", "--seed", "2"}), ids({"--seed", "2"}));
  EXPECT_NE(ids({"--seed", "2"}), ids({"--seed", "1"}));
  EXPECT_EQ(ids({"--seed", "2", "-n", "3"}),
            ids({"--seed", "2"}).substr(0, ids({"--seed", "2", "-n", "3"}).size() - 1) + "\n");
}

TEST(CommandLine, AnOptionWithoutAValueDoesNotTakeTheNextArgument) {
  const ProgramResult result = run_program({"story", "--stop=", "-n", "3"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err, "stagecraft: --stop: expected text, found ''\n");
  EXPECT_EQ(
      run_program({"tokenize", "--model", TEST_DATA "/gguf/whole-f32.gguf", "--", "--a="}).code, 0);
}

TEST(CommandLine, TwoDashesEndTheOptions) {
  const std::string model = TEST_DATA "/gguf/whole-f32.gguf";
  const ProgramResult result = run_program({"tokenize", "--model", model, "--", "--the cat"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, run_program({"tokenize", "--model", model}, "--the cat").out);
}

TEST(CommandLine, HelpInStageNamesTheOptionsOfTheScript) {
  for (const std::string command : {"story", "chat", "serve", "trace", "peek", "bench"}) {
    EXPECT_TRUE(has(help(command, kInStage), "  --mine ")) << command;
    EXPECT_FALSE(has(help(command, kAlone), "--mine")) << command;
  }
  EXPECT_TRUE(has(help("bench", kInStage), "--against llama-bench --model FILE.gguf"));
  EXPECT_FALSE(has(help("info", kInStage), "--mine"));
}

TEST(CommandLine, TheVersionNamesTheProgramItself) {
  EXPECT_TRUE(run_program({"--version"}, "", kInStage).out.starts_with("stagecraft "));
}

}  // namespace
}  // namespace stagecraft
