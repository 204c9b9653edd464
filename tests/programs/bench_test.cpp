// `stagecraft bench` with the model that comes with the project.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/processors.h"
#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

TEST(Bench, WritesWhatItMeasuredAsJson) {
  const TemporaryFolder folder;
  const std::string file = folder.file("bench.json");
  const ProgramResult result =
      run_program({"bench", "--model", std::string(REPOSITORY) + "/models/story", "-p", "8", "-n",
                   "4", "-d", "0,5", "-t", "1", "-r", "2", "--kv-type", "f16", "--json", file});
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json records = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(records.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const nlohmann::json& record = records[i];
    EXPECT_EQ(record.at("prompt"), i % 2 == 0 ? 8 : 0);
    EXPECT_EQ(record.at("generate"), i % 2 == 0 ? 0 : 4);
    EXPECT_EQ(record.at("depth"), i < 2 ? 0 : 5);
    EXPECT_EQ(record.at("batch"), 1);
    EXPECT_EQ(record.at("threads"), 1);
    EXPECT_EQ(record.at("kv_type"), "f16");
    EXPECT_EQ(record.at("seconds").size(), 2u);
    EXPECT_GT(record.at("tokens_per_second"), 0.0);
  }
}

TEST(Bench, NamesTheThreadsThatItUsed) {
  const TemporaryFolder folder;
  const std::string file = folder.file("bench.json");
  const ProgramResult result =
      run_program({"bench", "--model", std::string(REPOSITORY) + "/models/story", "-p", "2", "-n",
                   "0", "-t", "256", "-r", "1", "--json", file});
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json records = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(records.at(0).at("threads"), std::min<std::size_t>(usable_cores(), 256));
}

TEST(Bench, MeasuresUpToTheLastPositionThatAModelHasLearned) {
  const std::string model = TEST_DATA "/models/gpt2-tied";  // 64 positions
  const auto bench = [&](const char* prompt, const char* generate) {
    return run_program(
        {"bench", "--model", model, "-p", prompt, "-n", generate, "-r", "1", "-t", "1"});
  };
  EXPECT_EQ(bench("64", "0").code, 0);
  EXPECT_EQ(bench("0", "64").code, 0);
  EXPECT_EQ(bench("65", "0").code, 1);
}

TEST(Bench, RefusesListsWithEmptyElements) {
  for (const char* list : {"1,,2", "1,", ",1", ",", ""}) {
    const ProgramResult result = run_program({"bench", "-p", list});
    EXPECT_EQ(result.code, 2) << list;
    EXPECT_EQ(
        result.err,
        fmt::format("stagecraft: --prompt: expected numbers as in 1,2,3, found '{}'\n", list));
  }
  EXPECT_EQ(run_program({"bench", "-p", "1,x"}).err,
            "stagecraft: --prompt: expected a whole number from 0 to 1000000, found 'x'\n");
  EXPECT_NE(run_program({"bench", "--help"}).out.find("-p,--prompt N,N=512 ..."),
            std::string::npos);
}

TEST(Bench, CountsNothingThatCtrlCInterrupted) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {  // not by a shell, which makes background programs ignore Ctrl-C
    ::signal(SIGINT, SIG_DFL);
    std::freopen(folder.file("out").c_str(), "w", stdout);
    std::freopen(folder.file("err").c_str(), "w", stderr);
    ::execl(PROGRAM, PROGRAM, "bench", "--model", REPOSITORY "/models/story", "-p", "8", "-n", "0",
            "-d", "100000", "-r", "1", "-t", "1", "--json", folder.file("json").c_str(), nullptr);
    ::_exit(127);
  }
  // The run is interrupted after its first words on stderr.
  int status = 0;
  std::error_code missing;
  while (std::filesystem::file_size(folder.file("err"), missing) == 0 || missing) {
    ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0);
    ::usleep(100'000);
  }
  ::kill(child, SIGINT);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_EQ(read_file(folder.file("out")).find("prompt 8"), std::string::npos);
  const std::string err = read_file(folder.file("err"));
  EXPECT_TRUE(err.starts_with("note: the model was trained for ")) << err;
  EXPECT_TRUE(err.ends_with("[interrupted: --json has not been written]\n")) << err;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(Bench, SaysSoWhereItsJsonCannotBeWritten) {
  const ProgramResult result =
      run_program({"bench", "--model", std::string(REPOSITORY) + "/models/story", "-p", "2", "-n",
                   "0", "-t", "1", "-r", "1", "--json", "/nowhere/bench.json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");  // the error comes before the first measurement
  EXPECT_EQ(result.err,
            "stagecraft: /nowhere/bench.json: cannot be written: No such file or directory\n");
}

}  // namespace
}  // namespace stagecraft
