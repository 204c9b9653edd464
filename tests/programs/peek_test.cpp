#include <gtest/gtest.h>

#include "tests/support/random_model.h"
#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

constexpr const char* kUtf8 = "LC_ALL=C.UTF-8";
constexpr const char* kAscii = "LC_ALL=C";

// A fixed model of ten tokens, 2 layers, 2 heads.
constexpr RandomModelSizes kSizes = {.vocab_size = 11,
                                     .dim = 8,
                                     .ffn_dim = 12,
                                     .n_layers = 2,
                                     .n_heads = 2,
                                     .n_kv_heads = 1,
                                     .gain = 0.9f};

class PeekProgram : public testing::Test {
 protected:
  PeekProgram() {
    write_random_model(folder_.path(), kSizes);
    write_file(folder_.file("tokenizer.json"), R"({
      "version": "1.0",
      "added_tokens": [{"id": 0, "content": "<s>", "special": true, "normalized": false}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "decoder": {"type": "ByteLevel"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<s>": {"ids": [0]}}},
      "model": {"type": "BPE", "merges": ["a b", "Ġ ab"],
        "vocab": {"a": 1, "b": 2, "Ġ": 3, "ab": 4, "Ġab": 5, "Ċ": 6, "ç": 7, "Į": 8, "«": 9}}})");
  }

  ProgramResult peek(const std::string& text, std::vector<std::string> more = {},
                     const std::string& environment = kUtf8) const {
    more.insert(more.begin(), {"peek", text, "--model", folder_.path().string()});
    return run_program(more, "", environment);
  }

  TemporaryFolder folder_;
};

TEST_F(PeekProgram, ShowsTokensGuessesAndAttention) {
  const ProgramResult result = peek("ab ab\n", {"--top", "3", "--attention", "1.0"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, R"(  <s>  ab  ·ab  ↵
    0   4    5  6

after <s>
  ↵                    6   24.1%  ███████████▏
  <8c>                 8   12.5%  █████▊
  <s>                  0   10.6%  ████▉
▸ ab                   4    6.8%  rank 7

after ab
  <8c>                 8   34.9%  ████████████████▏
  ↵                    6   29.5%  █████████████▌
  b                    2    8.1%  ███▊
▸ ·ab                  5    2.3%  rank 10

after ·ab
  <8c>                 8   36.6%  ████████████████▉
  (no token)          10   13.3%  ██████▏
  <e7>                 7   10.8%  █████
▸ ↵                    6    5.9%  rank 6

after ↵
  a                    1   16.4%  ███████▌
  <e7>                 7   15.4%  ███████▏
  (no token)          10   14.1%  ██████▌

layer 1, head 0: how much each token attends to itself and to those before it
· under 5%  ░ 5%  ▒ 25%  ▓ 50%  █ 75%; at the end: the token it attends to most

  ██ <s>                   100% <s>
  ▒▒▓▓ ab                   56% ab
  ░░▒▒▒▒ ·ab                39% ·ab
  ▒▒░░░░░░ ↵                35% <s>
)");
}

TEST_F(PeekProgram, UsesAsciiAloneWhereTheLocaleHasNoUtf8) {
  for (const char* environment :
       {"LC_ALL=C", "LC_ALL= LC_CTYPE= LANG=", "LC_ALL=POSIX LANG=C.UTF-8"}) {
    const ProgramResult result = peek("ab \xe7\x8c\xab\n", {"--attention", "0.1"}, environment);
    EXPECT_EQ(result.code, 0);
    for (const char c : result.out) {
      ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << result.out;
    }
    EXPECT_NE(result.out.find("<e7>"), std::string::npos);
    EXPECT_NE(result.out.find("\\n"), std::string::npos);
    EXPECT_NE(result.out.find("##"), std::string::npos);
  }
}

TEST_F(PeekProgram, MarksTheActualNextTokenAlsoWhereItIsNotAmongTheLikeliest) {
  const std::string out = peek("abbbab", {"--top", "1"}, kAscii).out;
  std::size_t marks = 0;
  for (std::size_t at = 0; (at = out.find("\n> ", at)) != std::string::npos; ++at) ++marks;
  EXPECT_EQ(marks, 4u) << out;  // <s> ab b b ab: one mark after each but the last
  EXPECT_NE(out.find("rank "), std::string::npos) << out;
}

TEST_F(PeekProgram, NamesARowThatNoTokenHas) {
  const ProgramResult result = peek("a", {"--top", "11"});
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("(no token)"), std::string::npos);
}

TEST_F(PeekProgram, ShowsTheLastPositionsAloneWithMax) {
  const std::string out = peek("abbbab", {"--max", "2"}, kAscii).out;
  EXPECT_NE(out.find("(the last 2 of 5 positions; --max 5 shows all)"), std::string::npos) << out;
  EXPECT_EQ(out.find("after <s>"), std::string::npos) << out;
}

TEST_F(PeekProgram, CutsTheLabelsOfAttentionWhereTheTerminalIsNarrow) {
  const std::string narrow = std::string(kUtf8) + " NO_COLOR=1 STAGECRAFT_PAGED=40";
  const std::string out = peek("ab ab\n abb", {"--top", "0", "--attention", "1.0"}, narrow).out;
  EXPECT_EQ(out.find("do not fit"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with(R"(
  █ <s>               100% <s>
  ▒▓ ab                56% ab
  ░▒▒ ·ab              39% ·ab
  ▒░░░ ↵               35% <s>
  ░░░░▒ ·ab            31% ·ab
  ▒░···▒ b             46% <s>
)")) << out;
  const std::string many =
      peek(std::string(20, 'b'), {"--top", "0", "--attention", "1.0"}, narrow).out;
  EXPECT_NE(many.find("(the first 5 of 21 tokens do not fit)"), std::string::npos) << many;
}

TEST_F(PeekProgram, HasNoColourWithoutATerminal) {
  EXPECT_EQ(peek("ab").out.find('\x1b'), std::string::npos);
}

TEST_F(PeekProgram, DoesNotDependOnTheNumberOfThreads) {
  EXPECT_EQ(peek("ab ab", {"--threads", "1"}).out, peek("ab ab", {"--threads", "3"}).out);
}

TEST_F(PeekProgram, NamesTheRangeOfLayersAndHeads) {
  for (const char* head : {"2.0", "0.2", "99.99"}) {
    const ProgramResult result = peek("ab", {"--attention", head});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.err,
              std::string("stagecraft: --attention: expected a layer from 0 to 1 and a head from 0 "
                          "to 1, found ") +
                  head + "\n");
  }
  for (const char* head : {"", "0", "0.", ".0", "0.0.0", "a.b", "-1.0", "0,1", " 0.0"}) {
    const ProgramResult result = peek("ab", {std::string("--attention=") + head});
    EXPECT_EQ(result.code, 2) << head;
    EXPECT_NE(result.err.find("LAYER.HEAD"), std::string::npos) << result.err;
  }
}

TEST_F(PeekProgram, ShowsTheBytesOfWhatATerminalWouldObey) {
  const std::string file = folder_.file("tokenizer.json");
  std::string text = read_file(file);
  const std::string before = R"("added_tokens": [)";
  text.insert(text.find(before) + before.size(),
              R"({"id": 10, "content": "\u009b\u202e", "special": false, "normalized": false},)");
  write_file(file, text);
  const std::string out = peek("a\xc2\x9b\xe2\x80\xae").out;
  EXPECT_EQ(out.find("\xc2\x9b"), std::string::npos) << out;
  EXPECT_EQ(out.find("\xe2\x80\xae"), std::string::npos) << out;
  EXPECT_NE(out.find("<c2><9b>"), std::string::npos) << out;
}

TEST_F(PeekProgram, RefusesALayerWithoutAttention) {
  RandomModelSizes convolving = kSizes;
  convolving.convolves = true;
  write_random_model(folder_.path(), convolving);
  const ProgramResult result = peek("ab", {"--attention", "0.0"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err,
            "stagecraft: --attention: expected a layer with attention, found 0.0: layer 0 has no "
            "attention\n");
  EXPECT_EQ(peek("ab", {"--attention", "1.1"}).code, 0);
}

TEST_F(PeekProgram, RefusesTextThatIsNoneOrTooLong) {
  EXPECT_EQ(peek("a\xff").code, 2);
  std::string longer;
  for (int i = 0; i < 300; ++i) longer += "b";
  const ProgramResult result = peek(longer);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "stagecraft: text: expected at most 256 tokens (the context), found 301\n");
}

}  // namespace
}  // namespace stagecraft
