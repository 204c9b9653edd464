#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Makes a folder with a tokenizer of a few tokens, and runs the program on it.
class TokenizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("tokenizer.json", R"({
      "version": "1.0",
      "added_tokens": [{"id": 6, "content": "<|end|>", "special": true, "normalized": false}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "decoder": {"type": "ByteLevel"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|end|>"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<|end|>": {"ids": [6]}}},
      "model": {"type": "BPE", "merges": ["a b", "Ġ ab"],
        "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4, "Ċ": 5, "ð": 7, "Ł": 8, "<": 9}}})");
  }

  Outcome run(const std::string& flags, const std::string& input) const {
    folder_.write("in", input);
    const std::string at = folder_.path().string();
    const int status =
        std::system((std::string(PROGRAM) + " tokenize --model '" + at + "' " + flags + " < '" +
                     at + "/in' > '" + at + "/out' 2> '" + at + "/err'")
                        .c_str());
    return {WEXITSTATUS(status), slurp(folder_.path() / "out"), slurp(folder_.path() / "err")};
  }

  TemporaryFolder folder_;
};

TEST_F(TokenizeCommand, WritesTheIdsOfAllOfStdinOnOneLine) {
  EXPECT_EQ(run("", "ab ab\na").out, "3,4,5,0\n");
  EXPECT_EQ(run("", "a\n").out, "0,5\n");  // the last newline counts
  EXPECT_EQ(run("", "").out, "\n");
}

TEST_F(TokenizeCommand, ReadsSpecialTokensUnlessToldThatTextIsPlain) {
  EXPECT_EQ(run("", "a<|end|>b").out, "0,6,1\n");
  EXPECT_EQ(run("--plain", "a<|end|>b").out, "0,9,1\n");
  EXPECT_EQ(run("--add-special", "ab").out, "6,3\n");
}

TEST_F(TokenizeCommand, DecodesBytesExactlyAndAddsNoNewline) {
  EXPECT_EQ(run("--decode", "3,4,5,0\n").out, "ab ab\na");
  EXPECT_EQ(run("--decode", "7, 8").out, "\xf0\x9f");
  EXPECT_EQ(run("--decode", "").out, "");
}

TEST_F(TokenizeCommand, TakesAndGivesJsonLines) {
  EXPECT_EQ(run("--jsonl", "\"ab\"\n\"a\\nb\"\n\"\"\n").out, "[3]\n[0,5,1]\n[]\n");
  EXPECT_EQ(run("--jsonl --decode", "[3,4]\n[]\n[7,8,0]").out,
            "\"ab ab\"\n\"\"\n\"\xef\xbf\xbd"
            "a\"\n");
}

TEST_F(TokenizeCommand, NamesTheLineOfBadInputAndExitsWith1) {
  const auto expect_error = [&](const std::string& flags, const std::string& input,
                                const std::string& message) {
    const Outcome outcome = run(flags, input);
    EXPECT_EQ(outcome.exit_code, 1) << input;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  };
  expect_error("", "ab\nb\xff", "stdin, line 2: expected UTF-8, found the byte 0xff");
  expect_error("--decode", "1,2\n3,x", "stdin, line 2: expected token ids, found 'x'");
  expect_error("--decode", "1,10", "stdin, line 1: expected token ids from 0 to 9, found 10");
  expect_error("--decode", "-1", "found -1");
  expect_error("--decode", "99999999999999999999", "from 0 to 9, found 99999999999999999999");
  expect_error("--jsonl", "\"a\"\nb\n", "stdin, line 2: expected a JSON string, found 'b'");
  expect_error("--jsonl", "[1]\n", "stdin, line 1: expected a JSON string");
  expect_error("--jsonl", std::string("\"a\"\0b\n", 6), "stdin, line 1: expected a JSON string");
  expect_error("--jsonl", "\"\\ud800\"\n", "stdin, line 1: expected a JSON string");
  expect_error("--jsonl", "\"\xff\"\n", "stdin, line 1: expected UTF-8");
  expect_error("--jsonl --decode", "[1]\n[1.5]", "stdin, line 2: expected a JSON array");
  expect_error("--jsonl --decode", "[18446744073709551615]",
               "from 0 to 9, found 18446744073709551615");
}

TEST_F(TokenizeCommand, ExitsWith2OnAWrongCommandLine) {
  EXPECT_EQ(run("--no-such-option", "").exit_code, 2);
  EXPECT_EQ(run("--jsonl=maybe", "").exit_code, 2);
}

}  // namespace
}  // namespace stagecraft
