// Properties of the tokenizer besides equality with the library.
#include "text/tokenizer.h"

#include <array>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/fixtures.h"

namespace stagecraft {
namespace {

using Ids = std::vector<TokenId>;

Tokenizer tokenizer_of(std::string_view json) {
  const TemporaryFolder folder;
  return Tokenizer::open(folder.write("tokenizer.json", json));
}

TEST(Tokenizer, KeepsTextPlainEvenWhereItsModelCouldSpellASpecialToken) {
  constexpr std::string_view kMerging = R"({
    "added_tokens": [{"id": 5, "content": "END", "special": true, "normalized": false, "single_word": true},
                     {"id": 0, "content": "?", "special": true, "normalized": false}],
    "model": {"type": "BPE", "ignore_merges": false, "unk_token": "?", "merges": ["N D", "E ND"],
              "vocab": {"?": 0, "E": 1, "N": 2, "D": 3, "ND": 4, "END": 5}}})";
  std::string whole(kMerging);
  whole.replace(whole.find("false, \"unk"), 5, "true");
  for (const std::string_view json : {kMerging, std::string_view(whole)}) {
    const Tokenizer tokenizer = tokenizer_of(json);
    EXPECT_EQ(tokenizer.encode("END", {}), Ids{5});
    EXPECT_EQ(tokenizer.encode("END", {.parse_special = false}), (Ids{1, 2, 3}));
    EXPECT_EQ(tokenizer.encode("NDx", {.parse_special = false}), (Ids{4, 0}));
  }
}

TEST(Tokenizer, TakesTheLaterFlagsOfAnAddedTokenThatIsGivenTwice) {
  const Tokenizer tokenizer = tokenizer_of(R"({
    "added_tokens": [{"id": 2, "content": "<x>", "special": false, "normalized": false},
                     {"id": 2, "content": "<x>", "special": true, "normalized": false, "rstrip": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, " ": 1}, "merges": []}})");
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_EQ(tokenizer.encode("a<x>  a", {}), (Ids{0, 2, 0}));
}

// The ids are those of the tokenizers library.
TEST(Tokenizer, GivesNoTokenForBlanksThatTheTokenBeforeHasTaken) {
  const Tokenizer tokenizer = tokenizer_of(R"({
    "added_tokens": [{"id": 2, "content": "  ", "special": false, "normalized": false,
                      "lstrip": true, "rstrip": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  EXPECT_EQ(tokenizer.encode("a    b", {}), (Ids{0, 2, 1}));
}

// prepend_scheme "first": no blank before a piece whose beginning the normalizer removed. The ids
// are those of the tokenizers library.
TEST(Tokenizer, PutsNoBlankWhereTheNormalizerRemovedTheStart) {
  auto json = nlohmann::json::parse(
      read_file((tokenizers_folder() / "metaspace_first/tokenizer.json").string()));
  json["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  const Tokenizer tokenizer = tokenizer_of(json.dump());
  EXPECT_EQ(tokenizer.encode(" bc", {}), (Ids{47, 48}));
  EXPECT_EQ(tokenizer.encode("bc", {}), (Ids{361, 48}));
}

TEST(Tokenizer, KnowsTheBytesThatATokenHasInsideAText) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "llama2");
  const TokenId the = tokenizer.id_of("▁the").value();
  EXPECT_EQ(tokenizer.decode(Ids{the}), "the");  // at the beginning of a text
  EXPECT_EQ(tokenizer.bytes_of(the), " the");
  EXPECT_EQ(tokenizer.bytes_of(tokenizer.id_of("<0xC3>").value()), "\xc3");
  EXPECT_EQ(tokenizer.bytes_of(-1), "");
}

// bytes_of compares a token with the same token twice.
TEST(Tokenizer, KnowsTheBytesOfATokenAlsoIfTwoOfThemAreShorter) {
  const Tokenizer tokenizer = tokenizer_of(R"({
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "aa"}, "content": ""}]},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  EXPECT_EQ(tokenizer.decode(Ids{0, 0}), "");
  EXPECT_EQ(tokenizer.bytes_of(0), "a");
  EXPECT_EQ(tokenizer.bytes_of(1), "b");
}

TEST(Tokenizer, SaysWhereTextIsNoUtf8) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "gpt2");
  try {
    tokenizer.encode("ab\xff", {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "text: expected UTF-8, found the byte 0xff at offset 2");
  }
}

// A small tokenizer.json with these steps, the tokens "a" (0) and "b" (1), and `more` keys.
Tokenizer tokenizer_with_steps(const nlohmann::json& more) {
  auto json = nlohmann::json::parse(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  json.update(more);
  return tokenizer_of(json.dump());
}

nlohmann::json repeated(std::string_view list, const nlohmann::json& step, int n) {
  return {{"type", "Sequence"}, {list, nlohmann::json(std::vector<nlohmann::json>(n, step))}};
}

void expect_error_end(const std::function<void()>& act, const std::string& end) {
  try {
    act();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("tokenizer.json: " + end)) << error.what();
  }
}

const nlohmann::json kTenfold = {
    {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaa"}};

// 100 kB of a file can describe terabytes of text.
TEST(Tokenizer, RefusesTextThatItsNormalizerMakesTooLong) {
  const Tokenizer longer =
      tokenizer_with_steps({{"normalizer", repeated("normalizers", kTenfold, 6)}});
  expect_error_end([&] { longer.encode("ba", {}); },
                   "normalizer Replace: expected at most 4224 bytes made from a text of 2 bytes, "
                   "found more");
  const Tokenizer prepends = tokenizer_with_steps(
      {{"normalizer", {{"type", "Prepend"}, {"prepend", std::string(100'000, 'a')}}}});
  expect_error_end([&] { prepends.encode("b", {}); },
                   "normalizer Prepend: expected at most 4160 bytes made from a text of 1 bytes, "
                   "found more");
}

// Each text between two added tokens is normalized by itself, but the limit is that of the whole.
TEST(Tokenizer, RefusesTextThatItsNormalizerMakesTooLongBetweenAddedTokens) {
  const Tokenizer tokenizer = tokenizer_with_steps(
      {{"normalizer", {{"type", "Prepend"}, {"prepend", std::string(1000, 'a')}}},
       {"added_tokens", {{{"id", 2}, {"content", "x"}, {"special", true}}}}});
  EXPECT_EQ(tokenizer.encode("bxbx", {}).size(), 2004u);
  std::string text;
  for (int i = 0; i < 10; ++i) text += "bx";
  expect_error_end([&] { tokenizer.encode(text, {}); },
                   "normalizer Prepend: expected at most 5376 bytes made from a text of 20 bytes, "
                   "found more");
}

TEST(Tokenizer, RefusesTextThatItsPreTokenizersMakeTooLong) {
  const nlohmann::json twice = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const Tokenizer tokenizer =
      tokenizer_with_steps({{"pre_tokenizer", repeated("pretokenizers", twice, 40)}});
  expect_error_end([&] { tokenizer.encode(" ", {}); },
                   "pre_tokenizer ByteLevel: expected at most 4160 bytes made from a text of 1 "
                   "bytes, found more");
}

TEST(Tokenizer, RefusesTokensThatItsDecoderMakesTooLong) {
  const Tokenizer tokenizer =
      tokenizer_with_steps({{"decoder", repeated("decoders", kTenfold, 6)}});
  EXPECT_EQ(tokenizer.decode(Ids{1}), "b");
  expect_error_end(
      [&] {
        tokenizer.decode(Ids{1, 0});
      },
      "decoder: Replace: expected at most 4352 bytes made from a text of 4 bytes, "
      "found more");
}

TEST(Tokenizer, NamesTheCharacterThatItHasNoTokenFor) {
  const Tokenizer tokenizer = tokenizer_of(
      R"({"model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"a": 0}, "merges": []}})");
  EXPECT_EQ(tokenizer.encode("aa", {}), (Ids{0, 0}));
  try {
    tokenizer.encode("ab", {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("model.unk_token: expected a token of model.vocab as the unknown token for "
                        "'b', found '<unk>'"),
              std::string::npos)
        << error.what();
  }
}

TEST(Tokenizer, DecodesBytesThatAreNoUtf8AsTheyAre) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "llama2");
  EXPECT_EQ(tokenizer.decode(Ids{tokenizer.id_of("<0xE4>").value(), tokenizer.id_of("a").value()}),
            "\xe4"
            "a");
}

TEST(Tokenizer, RefusesToDecodeIdsOutOfRange) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "gpt2");
  const auto end = static_cast<TokenId>(tokenizer.vocab_size());
  EXPECT_THROW(tokenizer.decode(Ids{end}), Error);
  EXPECT_THROW(tokenizer.decode(Ids{-1}), Error);
  EXPECT_NO_THROW(tokenizer.decode(Ids{end - 1}));
}

TEST(Tokenizer, KnowsItsTokensByNameAndById) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "qwen2");
  const TokenId end = tokenizer.id_of("<|im_end|>").value();
  EXPECT_EQ(tokenizer.token_of(end), "<|im_end|>");
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_FALSE(tokenizer.is_special(tokenizer.id_of("<tool_call>").value()));  // added, but text
  EXPECT_FALSE(tokenizer.is_special(0));
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.token_of(1'000'000), "");
  EXPECT_FALSE(tokenizer.is_special(-1));
}

TEST(Tokenizer, IsSharedByThreads) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "llama3");
  const auto cases = read_cases("llama3");
  std::vector<std::thread> threads;
  std::array<int, 4> wrong = {};
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (const TokenizerCase& c : cases) count += tokenizer.encode(c.text, {}) != c.ids;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

}  // namespace
}  // namespace stagecraft
