// `stagecraft story` with the model that comes with the project.
#include <gtest/gtest.h>
#include <sys/stat.h>

#if defined(__linux__) && defined(__x86_64__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "operators/kernels/kernels.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

const std::string kStoryModel = std::string(REPOSITORY) + "/models/story";

ProgramResult story(std::vector<std::string> arguments) {
  std::vector<std::string> all = {"story", "--model", kStoryModel};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all);
}

TEST(Story, PutsTheTextAloneOnStdoutAndOneClosingLineOnStderr) {
  const ProgramResult result = story({"One day, a small fox", "--seed", "7", "-n", "30"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.out.starts_with("One day, a small fox")) << result.out;
  EXPECT_TRUE(result.out.ends_with("\n"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find("30 tokens"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("seed 7"), std::string::npos) << result.err;
}

TEST(Story, SaysOnceThatItGoesBeyondWhatTheModelWasTrainedFor) {
  const ProgramResult result = story({"--context", "100000", "-n", "3"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.err.starts_with("note: the model was trained for ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
}

// The error lists only backends that are in this program.
TEST(Story, SaysWhichBackendsThereAre) {
  const std::string list = "stagecraft: --backend: expected one of cpu, textbook, found ";
  EXPECT_EQ(story({"--backend", "nothing"}).err, list + "'nothing'\n");
  EXPECT_EQ(story({"--backend", "cuda"}).err,
            list + "'cuda'; docs/cuda.md says how to build with CUDA\n");
  EXPECT_EQ(story({"--backend", "cuda-emulator"}).err,
            list + "'cuda-emulator'; ./stage builds a program with it\n");
}

TEST(Story, TellsTheSameForTheSameSeedOnAnyNumberOfThreads) {
  const ProgramResult one = story({"--seed", "11", "-n", "60", "--threads", "1"});
  const ProgramResult again = story({"--seed", "11", "-n", "60", "--threads", "1"});
  const ProgramResult three = story({"--seed", "11", "-n", "60", "--threads", "3"});
  const ProgramResult other = story({"--seed", "12", "-n", "60", "--threads", "1"});
  EXPECT_EQ(one.out, again.out);
  EXPECT_EQ(one.out, three.out);
  EXPECT_NE(one.out, other.out);
}

#if defined(__linux__) && defined(__x86_64__)
// Makes the system refuse AMX's registers to this process and to every program that it starts.
void withhold_amx() {
  constexpr unsigned kAskForFeature = 0x1023;  // ARCH_REQ_XCOMP_PERM
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAskForFeature, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::fputs("no filter", stderr);
    std::exit(3);
  }
}

TEST(Story, RunsWithoutAmxWhereTheSystemWithholdsIt) {
  if (std::string_view(runnable_kernels().back()->name) != "amx") {
    GTEST_SKIP() << "this processor has no AMX, or its system withholds it anyway";
  }
  EXPECT_EXIT(
      {
        withhold_amx();
        const ProgramResult usual = story({"-n", "5"});
        ::setenv("STAGECRAFT_ISA", "amx", 1);
        const ProgramResult wanted = story({"-n", "5"});
        std::fputs((usual.err + wanted.err).c_str(), stderr);
        std::exit(usual.code == 0 && wanted.code == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "STAGECRAFT_ISA: expected an instruction set of this processor");
}
#endif

TEST(Story, TellsSeveralSideBySideEachAsItsSeedAlone) {
  std::string expected;
  for (const char* seed : {"20", "21", "22"}) {
    if (!expected.empty()) expected += "\n";
    expected += story({"One day", "--seed", seed, "-n", "200", "--threads", "1"}).out;
  }
  const ProgramResult several = story({"One day", "--seed", "20", "-n", "200", "--stories", "3"});
  EXPECT_EQ(several.code, 0) << several.err;
  EXPECT_EQ(several.out, expected);
  EXPECT_NE(several.err.find("3 stories"), std::string::npos) << several.err;
}

TEST(Story, SaysWhichKernelsRanWhereTheyWereChosen) {
  const std::string least = runnable_kernels().front()->name;
  const std::vector<std::string> words = {"story", "--model", kStoryModel, "--seed",
                                          "7",     "-n",      "30"};
  const ProgramResult usual = run_program(words);
  const ProgramResult chosen = run_program(words, "", "STAGECRAFT_ISA=" + least);
  EXPECT_EQ(chosen.code, 0);
  EXPECT_NE(chosen.err.find("; kernels " + least + ";"), std::string::npos) << chosen.err;
  EXPECT_EQ(chosen.out, usual.out);
  EXPECT_EQ(usual.err.find("; kernels"), std::string::npos) << usual.err;
  const ProgramResult refused = run_program(words, "", "STAGECRAFT_ISA=mmx");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.starts_with("stagecraft: STAGECRAFT_ISA: expected an instruction set "))
      << refused.err;
}

TEST(Story, KeepsKeysAndValuesAsHalvesOrBytesWhereAsked) {
  for (const std::string kind : {"f16", "bf16", "q8_0"}) {
    const ProgramResult result = story({"--seed", "7", "-n", "30", "--kv-type", kind});
    EXPECT_EQ(result.code, 0) << result.err;
    const ProgramResult refused = story({"--textbook", "--kv-type", kind});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.err,
              "stagecraft: --kv-type: expected f32 (the only type that the layers of the course "
              "use), found " +
                  kind + "\n");
  }
  const ProgramResult unknown = story({"--kv-type", "q4_0"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--kv-type: expected one of f32, f16, bf16, q8_0, found 'q4_0'"),
            std::string::npos)
      << unknown.err;
}

TEST(Story, IsGreedyAtTemperatureZeroWhateverTheSeed) {
  const ProgramResult one = story({"--temperature", "0", "--seed", "1", "-n", "40"});
  const ProgramResult two = story({"--temp", "0", "--seed", "2", "-n", "40"});
  EXPECT_EQ(one.out, two.out);
}

TEST(Story, TakesLlamaCppsNamesForItsOptions) {
  const ProgramResult ours =
      run_program({"story", "The cat", "--model", kStoryModel, "--max-tokens", "20", "--context",
                   "64", "--temperature", "0", "--threads", "2"});
  const ProgramResult theirs = run_program({"story", "-m", kStoryModel, "-p", "The cat", "-n", "20",
                                            "-c", "64", "--temp", "0", "-t", "2"});
  EXPECT_EQ(ours.code, 0) << ours.err;
  EXPECT_EQ(theirs.code, 0) << theirs.err;
  EXPECT_EQ(ours.out, theirs.out);
}

TEST(Story, PrintsOnlyTheNewIdsOnOneLine) {
  const ProgramResult result =
      story({"--ids", "0,100,200", "--print-ids", "--temperature", "0", "-n", "5"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), ','), 4) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  EXPECT_EQ(result.out.find_first_not_of("0123456789,\n"), std::string::npos) << result.out;
}

TEST(Story, BeginsWithATextFromAFileWithoutItsLastLineEnd) {
  const TemporaryFolder folder;
  const std::string file = folder.file("prompt.txt");
  const std::vector<std::string> how = {"--temperature", "0", "-n", "8"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), how.begin(), how.end());
    return story(words);
  };
  const std::string expected = with({"A dog\n\nA cat"}).out;
  for (const char* end : {"", "\n", "\r\n"}) {
    write_file(file, std::string("A dog\n\nA cat") + end);
    EXPECT_EQ(with({"-f", file}).out, expected);
  }
  EXPECT_EQ(with({"-f", file, "A dog"}).code, 2);
  EXPECT_EQ(with({"--file", file, "--ids", "1"}).code, 2);
  write_file(file, "\n");
  const ProgramResult empty = with({"-f", file});
  EXPECT_EQ(empty.code, 1);
  EXPECT_EQ(empty.err, "stagecraft: " + file + ": expected some text, found none\n");
  write_file(file, "caf\xe9");
  EXPECT_EQ(with({"-f", file}).err,
            "stagecraft: " + file + ": expected UTF-8, found the byte 0xe9 at offset 3\n");
}

TEST(Story, StopsAtATextAlsoIfItPrintsIds) {
  const auto n_ids = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--ids", "0",  "--print-ids", "--temperature",
                                      "0",     "-n", "20"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string ids = story(words).out;
    return std::count(ids.begin(), ids.end(), ',') + 1;
  };
  EXPECT_EQ(n_ids({}), 20);
  EXPECT_LT(n_ids({"--stop", "e"}), 10);
}

TEST(Story, GivesTheSameIdsForAPromptAsForItsTokens) {
  const ProgramResult tokens =
      run_program({"tokenize", "--model", kStoryModel, "--add-special"}, "Once upon a time");
  const std::string ids = tokens.out.substr(0, tokens.out.find('\n'));
  const ProgramResult from_text =
      story({"Once upon a time", "--print-ids", "--temperature", "0", "-n", "12"});
  const ProgramResult from_ids =
      story({"--ids", ids, "--print-ids", "--temperature", "0", "-n", "12"});
  EXPECT_EQ(from_text.out, from_ids.out);
}

TEST(Story, SavesTheNewIdsAndStillTellsTheStory) {
  const TemporaryFolder folder;
  const std::string file = folder.file("ids");
  const ProgramResult ids = story({"A dog", "--print-ids", "--seed", "4", "-n", "9"});
  const ProgramResult told = story({"A dog", "--save-ids", file, "--seed", "4", "-n", "9"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_TRUE(told.out.starts_with("A dog")) << told.out;
  EXPECT_EQ(read_file(file), ids.out);
}

TEST(Story, KeepsTheOldIdsIfItTellsNoStory) {
  const TemporaryFolder folder;
  const std::string file = folder.write("ids", "1,2,3\n");
  EXPECT_EQ(story({"--ids", "999999", "--save-ids", file}).code, 2);
  EXPECT_EQ(story({std::string(60000, 'a'), "-c", "8", "--save-ids", file}).code, 1);
  EXPECT_EQ(read_file(file), "1,2,3\n");
}

TEST(Story, RefusesTheTokenizerOfAnotherModel) {
  const ProgramResult result = run_program(
      {"story", "--model", kStoryModel, "--tokenizer", REPOSITORY "/models/chat", "-n", "3"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "stagecraft: " REPOSITORY
                        "/models/chat/tokenizer.json: expected ids from 0 to 4095 (the 4096 rows "
                        "of " +
                            std::string(kStoryModel) + "), found 7167\n");
}

TEST(Story, RefusesAFileForIdsThatCannotBeWrittenBeforeItTellsAnything) {
  const ProgramResult result = story({"--save-ids", "/no/such/folder/ids"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "stagecraft: /no/such/folder/ids: cannot be written: No such file or directory\n");
  const TemporaryFolder folder;
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(story({"--save-ids", fifo}).err,
            "stagecraft: " + fifo + ": expected a regular file, found a FIFO\n");
}

TEST(Story, SaysSoWhereStdoutCannotBeWritten) {
  const std::vector<std::string> arguments = {"story", "--model", kStoryModel, "-n", "3"};
  for (const char* out : {"/dev/full", "&-"}) {
    const ProgramResult result = run_program(arguments, "", "", out);
    EXPECT_EQ(result.code, 1) << out;
    EXPECT_TRUE(result.err.starts_with("stagecraft: stdout: cannot be written: ")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// If nothing else took its descriptor, the file of the ids would become the program's stdout.
TEST(Story, KeepsTheIdsApartFromTheStoryWithoutStdout) {
  const TemporaryFolder folder;
  const std::string file = folder.file("ids");
  const ProgramResult result =
      run_program({"story", "--model", kStoryModel, "-n", "3", "--save-ids", file}, "", "", "&-");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(read_file(file), "");
}

TEST(Story, EndsWhereAStopTextAppearsAndDoesNotPrintIt) {
  const std::string whole = story({"--temperature", "0", "-n", "60"}).out;
  const std::string stop = whole.substr(30, 4);  // some part of the story
  const ProgramResult stopped = story({"--temperature", "0", "-n", "60", "--stop", stop});
  const std::string prompt = "Once upon a time";
  const std::size_t at = whole.find(stop, prompt.size());
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(stopped.out, whole.substr(0, at) + "\n");
}

TEST(Story, SaysWhenTheContextIsFull) {
  const ProgramResult result = story({"Once upon a time", "-c", "12", "-n", "100", "--seed", "3"});
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.err.find("the context of 12 tokens is full"), std::string::npos) << result.err;
}

TEST(Story, RefusesAPromptLongerThanTheContext) {
  const ProgramResult result = story({"Once upon a time there was a little girl", "-c", "4"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("prompt: expected at most 4 tokens"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Story, RefusesTextThatIsNoUtf8) {
  const ProgramResult result = story({"caf\xe9"});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("prompt: expected UTF-8, found the byte 0xe9 at offset 3"),
            std::string::npos)
      << result.err;
}

TEST(Story, AnswersAWrongCommandLineWithTwo) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--temperature", "nan"},
                                             {"--temperature", "0x1"},
                                             {"--temperature", " 1"},
                                             {"--temperature", "+1"},
                                             {"--temperature", "1e-400"},
                                             {"--temperature", "1e-60"},
                                             {"--temperature", "-1"},
                                             {"--top-p", "1.5"},
                                             {"--threads", "0"},
                                             {"--max-tokens", "many"},
                                             {"--ids", "1,,2"},
                                             {"--ids", "-1"},
                                             {"--no-such-option"},
                                             {"--seed"}}) {
    const ProgramResult result = story(wrong);
    EXPECT_EQ(result.code, 2) << wrong.front() << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace stagecraft
