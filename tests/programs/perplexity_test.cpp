#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/support/random_model.h"
#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

const std::string kModel = TEST_DATA "/gguf/whole-f32.gguf";
const std::string kText = "the cat and the hat\nthe cat and the hat\n";

class PerplexityProgram : public ::testing::Test {
 protected:
  PerplexityProgram() { write_file(file("text"), kText); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  ProgramResult run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"perplexity", "--model", kModel, "--threads", "1"});
    return run_program(more);
  }
  nlohmann::json json(std::vector<std::string> more) const {
    more.insert(more.end(), {"--text", file("text"), "--json"});
    const ProgramResult result = run(more);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  TemporaryFolder folder_;
};

TEST_F(PerplexityProgram, SaysBitsPerByteAndPerplexity) {
  const ProgramResult result = run({"--text", file("text")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("bits per byte  ")) << result.out;
  EXPECT_NE(result.out.find("\nperplexity     "), std::string::npos) << result.out;
  EXPECT_EQ(result.err.find('\r'), std::string::npos) << "a bar where there is no terminal";
}

TEST_F(PerplexityProgram, TheFiguresFollowFromOneAnother) {
  const auto got = json({"--context", "8", "--stride", "3"});
  const double nats = got.at("nats"), tokens = got.at("tokens"), bytes = got.at("bytes");
  EXPECT_DOUBLE_EQ(got.at("perplexity"), std::exp(nats / tokens));
  EXPECT_DOUBLE_EQ(got.at("bits_per_byte"), nats / std::log(2.0) / bytes);
  const ProgramResult ids = run_program({"tokenize", "--model", kModel}, kText);
  EXPECT_EQ(tokens, std::count(ids.out.begin(), ids.out.end(), ','));  // all but the first token
  EXPECT_EQ(bytes, static_cast<double>(kText.size() - 2));             // "th" has no score
}

TEST_F(PerplexityProgram, ReadsItsTextFromAPipe) {
  const auto from_pipe = [&](const std::string& more) {
    const std::string out = file("out");
    const std::string command = fmt::format(
        "cat {} | {} perplexity --model {} --text /dev/stdin "
        "--json {} >{} 2>{}",
        file("text"), PROGRAM, kModel, more, out, file("err"));
    EXPECT_EQ(std::system(command.c_str()), 0) << read_file(file("err"));
    return nlohmann::json::parse(read_file(out), nullptr, false);
  };
  EXPECT_EQ(from_pipe("--threads 1"), json({}));
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += kText;  // more than a pipe holds at once
  write_file(file("text"), text);
  EXPECT_EQ(from_pipe("--threads 1 -n 100"), json({"-n", "100"}));
}

// The result of the beginning of a text must not look like that of the whole.
TEST_F(PerplexityProgram, SaysSoIfCtrlCInterruptedIt) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += kText;
  write_file(file("text"), text);
  for (const bool as_json : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {  // not by a shell, which makes background programs ignore Ctrl-C
      ::signal(SIGINT, SIG_DFL);
      std::freopen(file("out").c_str(), "w", stdout);
      std::freopen(file("err").c_str(), "w", stderr);
      ::execl(PROGRAM, PROGRAM, "perplexity", "--model", REPOSITORY "/models/story", "--text",
              file("text").c_str(), "-t", "1", as_json ? "--json" : nullptr, nullptr);
      ::_exit(127);
    }
    ::sleep(3);  // to open the model takes a part of a second; to score the text, minutes
    ::kill(child, SIGINT);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGINT);
    const std::string out = read_file(file("out")), err = read_file(file("err"));
    if (as_json) {
      EXPECT_EQ(out, "");
      EXPECT_EQ(err, "[interrupted: no JSON has been printed]\n");
    } else {
      EXPECT_NE(out.find(" per token (of the first "), std::string::npos) << out;
      EXPECT_TRUE(err.starts_with("[interrupted]\n")) << err;
    }
  }
}

TEST_F(PerplexityProgram, TakesTheTokenizerThatIsNamed) {
  write_file(file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"t": 0, "h": 1, "e": 2}, "merges": []}})");
  write_file(file("text"), "thethe");
  EXPECT_EQ(json({"--tokenizer", file("tokenizer.json")}).at("tokens"), 5);
}

// Opening the weights of a large model takes long.
TEST_F(PerplexityProgram, RefusesATextThatIsTooShortBeforeItOpensTheWeights) {
  write_file(file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"t": 0}, "merges": []}})");
  write_file(file("text"), "t");
  const ProgramResult result =
      run_program({"perplexity", "--model", folder_.path().string(), "--text", file("text")});
  EXPECT_EQ(result.err,
            "stagecraft: " + file("text") + ": expected a text of at least 2 tokens, found 1\n");
}

TEST_F(PerplexityProgram, IsNullInJsonWhereItIsTooLargeForANumber) {
  write_random_model(folder_.path(), {.gain = 20.0f});  // logits of about 1,000
  write_file(file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"t": 0, "h": 1, "e": 2}, "merges": []}})");
  write_file(file("text"), "thethe");
  const ProgramResult result = run_program(
      {"perplexity", "--model", folder_.path().string(), "--text", file("text"), "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const auto got = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(got.is_object()) << result.out;
  EXPECT_TRUE(got.at("perplexity").is_null()) << result.out;
  EXPECT_GT(got.at("nats"), 5 * 709.0) << result.out;
}

TEST_F(PerplexityProgram, OnlyTheFirstTokensWhenAsked) {
  const auto some = json({"--max-tokens", "5"});
  EXPECT_EQ(some.at("tokens"), 4);
  EXPECT_LT(some.at("nats"), json({}).at("nats"));
}

TEST_F(PerplexityProgram, WarnsBeyondWhatTheModelWasTrainedFor) {
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += kText;
  write_file(file("text"), longer);
  const ProgramResult result = run({"--text", file("text"), "--context", "200"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.err.starts_with("note: the model was trained for 128 tokens")) << result.err;
}

// The largest loss of exactness that each type of keys and values may cause, on any processor.
TEST_F(PerplexityProgram, KeysAndValuesInBytesCostAtMostHalfAPercent) {
  write_file(file("story"),
             "Once upon a time, there was a little hen who lived on a farm near a big river. Every "
             "morning she walked to the water and counted the boats. One day there was a red boat "
             "that she had never seen. A boy sat in it and he was crying. \"Why are you sad?\" "
             "asked the hen. \"I lost my hat,\" said the boy. \"The wind took it and now my head "
             "is cold.\" The hen looked up and saw the hat in a tall tree. She called her friend, "
             "the crow. The crow flew up, took the hat and gave it to the boy. The boy was so "
             "happy that he took them both for a ride in his red boat.\n");
  const auto perplexity = [&](const std::string& kind) -> double {
    const ProgramResult result =
        run_program({"perplexity", "--model", std::string(REPOSITORY) + "/models/story", "--text",
                     file("story"), "--json", "--kv-type", kind});
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false).at("perplexity");
  };
  const double f32 = perplexity("f32"), q8_0 = perplexity("q8_0");
  EXPECT_NE(q8_0, f32);
  EXPECT_LE(q8_0, 1.005 * f32);
  EXPECT_LE(perplexity("f16"), 1.005 * f32);
}

TEST_F(PerplexityProgram, RefusesBadInputInOneLine) {
  write_file(file("empty"), "");
  write_file(file("one"), "t");
  write_file(file("broken"), "the \xc3(");
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"--text", file("none")}, file("none") + ": cannot be opened: No such file or directory"},
      {{"--text", file("empty")},
       file("empty") + ": expected a text of at least 2 tokens, found 0"},
      {{"--text", file("one")}, file("one") + ": expected a text of at least 2 tokens, found 1"},
      {{"--text", file("broken")},
       file("broken") + ": expected UTF-8, found the byte 0xc3 at offset 4"},
      {{"--text", folder_.path().string()},
       folder_.path().string() + ": expected a file, found a folder"},
  };
  for (const auto& [arguments, message] : table) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "stagecraft: " + message + "\n");
  }
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"--text", ""},
           {"--text", file("text"), "--stride", "0"},
           {"--text", file("text"), "--stride", "8", "--context", "8"},
           {"--text", file("text"), "--context", "1"},
           {"--text", file("text"), "--max-tokens", "1"}}) {
    EXPECT_EQ(run(arguments).code, 2);
  }
}

}  // namespace
}  // namespace stagecraft
