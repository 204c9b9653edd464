// The command convert.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

const std::string kQuantized = TEST_DATA "/gguf/whole.gguf";

TEST(ConvertProgram, WritesWhatTheNameSays) {
  const TemporaryFolder folder;
  for (const std::string name : {"a.gguf", "a.flm", "a"}) {
    const ProgramResult result = run_program({"convert", kQuantized, folder.file(name)});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with(folder.file(name) + ": 1")) << result.out;
    const ProgramResult story = run_program(
        {"story", "the cat", "--model", folder.file(name), "--temperature", "0", "-n", "5"});
    EXPECT_EQ(story.code, 0) << story.err;
  }
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("a")));
  const ProgramResult again = run_program({"convert", kQuantized, folder.file("a.gguf")});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.err,
            "stagecraft: " + folder.file("a.gguf") + ": already exists (--force replaces it)\n");
  EXPECT_EQ(run_program({"convert", kQuantized, folder.file("a.gguf"), "--force"}).code, 0);
}

TEST(ConvertProgram, TakesTheExtensionOfAnotherFormatForAMistake) {
  const TemporaryFolder folder;
  for (const std::string name : {"a.safetensors", "a.bin", "a.PT", "c3.xyz", "a.gguff"}) {
    const ProgramResult result = run_program({"convert", kQuantized, folder.file(name)});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err, "stagecraft: OUT: expected NAME.gguf, NAME.flm or a folder, found '" +
                              folder.file(name) + "' (--to folder writes a folder of that name)\n");
    EXPECT_FALSE(std::filesystem::exists(folder.file(name)));
  }
  EXPECT_EQ(run_program({"convert", kQuantized, folder.file("a.GGUF")}).code, 0);
  EXPECT_TRUE(std::filesystem::is_regular_file(folder.file("a.GGUF")));
  for (const std::string name : {"SmolLM2-1.7B", "Qwen2.5-0.5B-Instruct", "a.v2", "c3.xyz/"}) {
    EXPECT_EQ(run_program({"convert", kQuantized, folder.file(name)}).code, 0) << name;
    EXPECT_TRUE(std::filesystem::is_directory(folder.file(name))) << name;
  }
  EXPECT_EQ(run_program({"convert", kQuantized, folder.file("a.bin"), "--to", "folder"}).code, 0);
}

// nohup makes a program ignore SIGHUP, which comes when the terminal is closed.
TEST(ConvertProgram, GoesOnUnderNohupWhereTheTerminalIsClosed) {
  const TemporaryFolder folder;
  const std::string run = fmt::format(
      "trap '' HUP; {} convert {}/models/story {} >/dev/null 2>&1 & pid=$!\n"
      "while kill -HUP $pid 2>/dev/null; do :; done\n"
      "wait $pid",
      PROGRAM, REPOSITORY, folder.file("a.gguf"));
  EXPECT_EQ(std::system(run.c_str()), 0);
}

TEST(ConvertProgram, RefusesATypeThatTheTargetDoesNotHave) {
  const ProgramResult folder = run_program({"convert", kQuantized, "nowhere", "--type", "q8_0"});
  EXPECT_EQ(folder.code, 2);
  EXPECT_EQ(folder.err,
            "stagecraft: --type: expected f32, f16 or bf16 for a folder, found 'q8_0'\n");
  const ProgramResult flm = run_program({"convert", kQuantized, "nowhere.flm", "--type", "f16"});
  EXPECT_EQ(flm.code, 2);
  EXPECT_EQ(flm.err, "stagecraft: --type: expected f32 for a .flm file, found 'f16'\n");
}

}  // namespace
}  // namespace stagecraft
