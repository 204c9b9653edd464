// The error message for a wrong sentencepiece tokenizer.model, or a wrong Unigram tokenizer.json.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "tests/hostile/rows.h"
#include "tests/hostile/run_limited.h"
#include "tests/support/temporary_folder.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

using nlohmann::json;

// Writes Protocol Buffers, without the code that is tested.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}
std::string number(std::uint32_t field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string bytes(std::uint32_t field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string real(std::uint32_t field, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  std::string text = varint(field << 3 | 5);
  for (int i = 0; i < 4; ++i) text += static_cast<char>(bits >> (8 * i));
  return text;
}
std::string piece(const std::string& text, float score, std::uint64_t type) {
  return bytes(1, bytes(1, text) + real(2, score) + number(3, type));
}

// The smallest correct model. A field that is appended again replaces the earlier one.
std::string good_model() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("a", -1, 1);
}
std::string trainer(const std::string& fields) { return bytes(2, fields); }
std::string normalizer(const std::string& fields) { return bytes(3, fields); }
// A charsmap: the size of its trie, the trie, the texts.
std::string charsmap(std::uint32_t n_bytes, const std::string& rest) {
  std::string blob;
  for (int i = 0; i < 4; ++i) blob += static_cast<char>(n_bytes >> (8 * i));
  return normalizer(bytes(2, blob + rest));
}

struct BadTokenizerFile {
  std::string name;
  Contents contents;
  std::string message;  // after "FILE: "
};

void PrintTo(const BadTokenizerFile& row, std::ostream* out) { *out << row.name; }

const std::string kNul(1, '\0');
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const BadTokenizerFile kBadSentencepieces[] = {
    {"empty", "", "expected a sentencepiece model, found no pieces"},
    {"json", R"({"version": "1.0"})", "byte 0: field 15: expected wire type 0, 1, 2 or 5, found 3"},
    {"zeros", std::string(64, '\0'),
     "byte 0: expected a field number from 1 to 536870911, found 0: this is not a protobuf"},
    {"cut_within_a_piece", good_model().substr(0, good_model().size() - 3),
     "byte 47: expected 10 more bytes, found 7: the file is cut short or damaged"},
    {"a_length_beyond_the_file", varint(1 << 3 | 2) + varint(1ull << 60),
     "byte 10: expected 1152921504606846976 more bytes, found 0: the file is cut short or damaged"},
    {"a_number_without_end", varint(1 << 3) + std::string(40, '\xff'),
     "byte 1: expected a number of at most 10 bytes, found more"},
    {"a_group", good_model() + varint(9 << 3 | 3),
     "byte 57: field 9: expected wire type 0, 1, 2 or 5, found 3"},
    {"a_piece_that_is_a_number", number(1, 7), "pieces: expected bytes, found a whole number"},
    {"a_piece_without_text", good_model() + bytes(1, real(2, 1)),
     "pieces[4]: piece: expected a text, found none"},
    {"a_piece_that_is_not_utf8", good_model() + piece("a\xff", 0, 1),
     "pieces[4]: piece: expected UTF-8, found the byte 0xff at offset 1"},
    {"a_piece_that_is_too_long", good_model() + piece(std::string(1025, 'x'), 0, 1),
     "pieces[4]: piece: expected at most 1024 bytes, found 1025"},
    {"a_piece_twice", good_model() + piece("a", -2, 1),
     "pieces[4]: expected each token once, found 'a', which is also token 3"},
    {"a_score_that_is_a_text", good_model() + bytes(1, bytes(1, "b") + bytes(2, "1.5")),
     "pieces[4]: score: expected a number of 4 bytes, found bytes"},
    {"a_score_that_is_no_number", good_model() + piece("b", kNan, 1),
     "pieces[4]: score: expected a finite number, found nan"},
    {"an_unknown_type", good_model() + piece("b", 0, 7),
     "pieces[4]: type: expected 1 to 6, found 7"},
    {"two_unknown_pieces", good_model() + piece("<unknown>", 0, 2),
     "pieces[4]: expected one piece of type UNKNOWN, found '<unknown>' after '<unk>'"},
    {"no_unknown_piece", piece("a", 0, 1) + piece("b", 0, 1),
     "pieces: expected one piece of type UNKNOWN, found none among 2 pieces"},
    {"words", good_model() + trainer(number(3, 3)),
     "trainer_spec: model_type: expected 1 (UNIGRAM) or 2 (BPE), found 3 (WORD)"},
    {"characters", good_model() + trainer(number(3, 4)),
     "trainer_spec: model_type: expected 1 (UNIGRAM) or 2 (BPE), found 4 (CHAR)"},
    {"a_type_of_model_that_is_not_known", good_model() + trainer(number(3, 9)),
     "trainer_spec: model_type: expected 1 (UNIGRAM) or 2 (BPE), found 9"},
    {"a_space_as_suffix", good_model() + trainer(number(24, 1)),
     "trainer_spec: treat_whitespace_as_suffix: expected false (true is not supported), found "
     "true"},
    {"a_byte_without_fallback", good_model() + piece("<0x41>", 0, 6),
     "pieces[4]: expected no byte piece if trainer_spec.byte_fallback is false, found '<0x41>'"},
    {"a_byte_that_is_none", good_model() + piece("<0xag>", 0, 6) + trainer(number(35, 1)),
     "pieces[4]: expected a byte from <0x00> to <0xFF>, found '<0xag>'"},
    {"a_byte_in_lower_case", good_model() + piece("<0xaf>", 0, 6) + trainer(number(35, 1)),
     "pieces[4]: expected a byte from <0x00> to <0xFF>, found '<0xaf>'"},
    {"bytes_that_are_missing", good_model() + piece("<0x00>", 0, 6) + trainer(number(35, 1)),
     "pieces: expected one piece for every byte (trainer_spec.byte_fallback is true), found none "
     "for <0x01>"},
    {"spaces_that_stay", good_model() + normalizer(number(5, 0)),
     "normalizer_spec: escape_whitespaces: expected true (false is not supported), found false"},
    {"a_denormalizer", good_model() + bytes(5, bytes(2, "abcdef")),
     "denormalizer_spec: precompiled_charsmap: expected none (it is not supported), found 6 bytes"},
    {"a_charsmap_of_three_bytes", good_model() + normalizer(bytes(2, "abc")),
     "normalizer_spec.precompiled_charsmap: expected at least 4 bytes, found 3"},
    {"a_trie_beyond_the_charsmap", good_model() + charsmap(400, "abcd" + kNul),
     "normalizer_spec.precompiled_charsmap: expected a trie of 4 to 5 bytes, a multiple of 4, "
     "found 400"},
    {"a_trie_of_five_bytes", good_model() + charsmap(5, "abcde" + kNul),
     "normalizer_spec.precompiled_charsmap: expected a trie of 4 to 6 bytes, a multiple of 4, "
     "found 5"},
    {"a_charsmap_without_texts", good_model() + charsmap(4, "abcd"),
     "normalizer_spec.precompiled_charsmap: expected texts that end with a zero byte, found none"},
    {"texts_without_an_end", good_model() + charsmap(4, "abcdx"),
     "normalizer_spec.precompiled_charsmap: expected texts that end with a zero byte, found "
     "another byte"},
    {"texts_that_are_not_utf8", good_model() + charsmap(4, "abcd\xe4\xbd" + kNul),
     "normalizer_spec.precompiled_charsmap: texts: expected UTF-8, found the byte 0xe4 at offset "
     "0"},
    {"a_text_that_is_too_long", good_model() + charsmap(4, "abcd" + std::string(2000, 'x') + kNul),
     "normalizer_spec.precompiled_charsmap: texts: expected at most 1024 bytes each, found one of "
     "2000"},
    // a wrong unit is found only when a text leads to it
    {"a_trie_that_leads_out_of_itself",
     good_model() + charsmap(4, std::string("\0\xfc\xff\xff", 4) + "x" + kNul),
     "normalizer_spec.precompiled_charsmap: expected a trie that leads to replacement texts, found "
     "an invalid entry for 'a'"},
};

Contents unigram(const std::function<void(json&)>& change) {
  return [=] {
    json file = json::parse(read_file(TEST_DATA "/tokenizers/unigram/tokenizer.json"));
    change(file);
    return file.dump();
  };
}
Contents model(const std::string& name, const json& value) {
  return unigram([=](json& file) { file["model"][name] = value; });
}
Contents precompiled(const json& value) {
  return unigram([=](json& file) {
    file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", value}};
  });
}

const BadTokenizerFile kBadUnigrams[] = {
    {"no_vocab", unigram([](json& file) { file["model"].erase("vocab"); }),
     "model: expected a field 'vocab', found none"},
    {"a_vocab_as_of_bpe", model("vocab", {{"a", 0}}),
     "model.vocab: expected an array, found an object"},
    {"a_token_without_score", model("vocab", json::parse(R"([["a"]])")),
     "model.vocab[0]: expected a token and its score, found an array of 1"},
    {"a_token_that_is_a_number", model("vocab", json::parse("[[1, 1.5]]")),
     "model.vocab[0][0]: expected a string, found 1"},
    {"a_score_that_is_a_string", model("vocab", json::parse(R"([["a", "-1"]])")),
     "model.vocab[0][1]: expected a number, found \"-1\""},
    {"a_token_twice", model("vocab", json::parse(R"([["a", -1.5], ["a", -1.5]])")),
     "model.vocab[1]: expected each token once, found 'a', which is also token 0"},
    {"a_token_that_is_too_long",
     model("vocab", json::array({json::array({std::string(1025, 'x'), 0})})),
     "model.vocab[0][0]: expected at most 1024 bytes, found 1025"},
    {"an_unknown_token_beyond_the_vocab", model("unk_id", 100'000),
     "model.unk_id: expected an id of the vocabulary (of 423 tokens), found 100000"},
    {"an_unknown_token_below_it", model("unk_id", -1),
     "model.unk_id: expected an id of the vocabulary (of 423 tokens), found -1"},
    {"byte_fallback_that_is_a_number", model("byte_fallback", 1),
     "model.byte_fallback: expected true or false, found 1"},
    {"a_charsmap_that_is_no_base64", precompiled("a?=="),
     "normalizer.precompiled_charsmap: expected base64, found something else"},
    {"a_charsmap_that_is_nothing", precompiled(""),
     "normalizer.precompiled_charsmap: expected at least 4 bytes, found 0"},
    {"a_charsmap_without_texts", precompiled("BAAAAAAAAAA="),
     "normalizer.precompiled_charsmap: expected texts that end with a zero byte, found none"},
    {"no_charsmap", precompiled(nullptr),
     "normalizer: expected a field 'precompiled_charsmap', found none"},
};

class RefusedTokenizer : public testing::TestWithParam<BadTokenizerFile> {
 protected:
  // Some errors are found only when a text is encoded.
  void expect_refusal(const std::string& name) {
    const std::string path = folder_.file(name);
    write_file(path, GetParam().contents());
    const std::string message = path + ": " + GetParam().message;
    std::string said;
    try {
      Tokenizer::open(path).encode("a", {});
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_EQ(said, message);
  }

  const TemporaryFolder folder_;
};

class RefusedSentencepiece : public RefusedTokenizer {};
class RefusedUnigram : public RefusedTokenizer {};

TEST_P(RefusedSentencepiece, InOneLineThatSaysWhatIsWrong) { expect_refusal("tokenizer.model"); }
TEST_P(RefusedUnigram, InOneLineThatSaysWhatIsWrong) { expect_refusal("tokenizer.json"); }

INSTANTIATE_TEST_SUITE_P(All, RefusedSentencepiece, testing::ValuesIn(kBadSentencepieces),
                         row_name);
INSTANTIATE_TEST_SUITE_P(All, RefusedUnigram, testing::ValuesIn(kBadUnigrams), row_name);

TEST(RefusedSentencepiece, RunsBeforeItIsBroken) {
  const TemporaryFolder folder;
  write_file(folder.file("tokenizer.model"), good_model());
  EXPECT_EQ(Tokenizer::open(folder.path()).encode("a", {}), (std::vector<TokenId>{0, 3}));
}

TEST(RefusedSentencepiece, ByTheProgramToo) {
  const TemporaryFolder folder;
  const std::string path = folder.file("tokenizer.model");
  write_file(path, good_model() + piece("a", -2, 1));
  const LimitedRun run = run_limited({"tokenize", "--model", folder.path().string()});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_EQ(run.err,
            "stagecraft: " + path +
                ": pieces[4]: expected each token once, found 'a', which is also token 3\n");
  EXPECT_EQ(run.out, "");
}

// A text that the tokens cannot spell, with no token for unknown text.
TEST(RefusedUnigram, HasNoTokenForWhatIsUnknown) {
  const TemporaryFolder folder;
  const std::string path = folder.file("tokenizer.json");
  write_file(path, model("unk_id", nullptr)());
  const Tokenizer tokenizer = Tokenizer::open(path);
  EXPECT_FALSE(tokenizer.encode("a", {}).empty());
  try {
    tokenizer.encode("\U0001f9ff", {});
    ADD_FAILURE() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        path + ": model.unk_id: expected the id of the unknown token for '\U0001f9ff', found null");
  }
}

}  // namespace
}  // namespace stagecraft
