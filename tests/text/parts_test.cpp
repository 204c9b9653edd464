// The small components of the tokenizer: promises that the fixtures cannot test.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "text/pipeline/added_tokens.h"
#include "text/pipeline/byte_level.h"
#include "text/pipeline/charsmap.h"
#include "text/subwords/byte_tokens.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace stagecraft {
namespace {

TEST(ByteLevel, GivesEveryByteACharacterAndTakesItBack) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    std::string character;
    append_byte_level(character, bytes);
    EXPECT_EQ(bytes_of_byte_level(character), bytes);
  }
  std::string text;
  append_byte_level(text, " \n");
  EXPECT_EQ(text, "ĠĊ");
}

TEST(ByteTokens, AreSpeltInUpperCaseAndReadInBoth) {
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<unsigned char>(i);
    EXPECT_EQ(byte_token_text(byte), fmt::format("<0x{:02X}>", i));
    EXPECT_EQ(byte_of_token(byte_token_text(byte)), byte);
    EXPECT_EQ(byte_of_token(fmt::format("<0x{:02x}>", i)), byte);
  }
  for (const std::string_view text :
       {"", "<0x4>", "<0x4G>", "<0x-1>", "<0x 1>", "<0x1 >", "<0X4A>", "<0x4A", " <0x4A>"}) {
    EXPECT_EQ(byte_of_token(text), std::nullopt) << text;
  }
}

TEST(ByteLevel, IsNoAlphabetForOtherText) {
  EXPECT_EQ(bytes_of_byte_level("a b"), std::nullopt);  // another character stands for a space
  EXPECT_EQ(bytes_of_byte_level("字"), std::nullopt);
  EXPECT_EQ(bytes_of_byte_level("\xff"), std::nullopt);
}

TEST(LiteralMatcher, FindsTheLeftmostAndOfThoseTheLongest) {
  const LiteralMatcher matcher({{"ab", 0}, {"abcd", 1}, {"bc", 2}, {"\xff", 3}});
  const auto find = [&](std::string_view text, std::size_t from) {
    const auto found = matcher.find(text, from);
    return found ? std::tuple(found->begin, found->end, found->value) : std::tuple(9ul, 9ul, 9ul);
  };
  EXPECT_EQ(find("xabcd", 0), std::tuple(1ul, 5ul, 1ul));
  EXPECT_EQ(find("xabcx", 0), std::tuple(1ul, 3ul, 0ul));
  EXPECT_EQ(find("xabcx", 2), std::tuple(2ul, 4ul, 2ul));
  EXPECT_EQ(find("abc", 0), std::tuple(0ul, 2ul, 0ul));
  EXPECT_EQ(find("a\xff", 0), std::tuple(1ul, 2ul, 3ul));
  EXPECT_EQ(find("xyz", 0), std::tuple(9ul, 9ul, 9ul));
  EXPECT_EQ(find("", 0), std::tuple(9ul, 9ul, 9ul));
}

// A trie in which 'a' leads back to the same node.
TEST(Charsmap, GivesUpInALoop) {
  constexpr std::uint32_t kUnits = 'a' + 1, kLoop = std::uint32_t{'a'} << 10 | 'a';
  std::string blob;
  const auto put = [&](std::uint32_t number) {
    for (int i = 0; i < 4; ++i) blob += static_cast<char>(number >> (8 * i));
  };
  put(4 * kUnits);
  for (std::uint32_t i = 0; i < kUnits; ++i) put(i == 'a' ? kLoop : 0);
  const Charsmap charsmap(blob + std::string("x\0", 2), "file");
  EXPECT_FALSE(charsmap.longest(std::string(1000, 'a')));
  try {
    (void)charsmap.longest(std::string(2000, 'a'));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "file: expected a trie that leads to replacement texts, found an invalid entry "
                 "for 'a'");
  }
}

TEST(Vocabulary, FindsTokensByTextAndById) {
  const Json document(R"({"a": 7, "": 2, "字": 0})", "file");
  const Vocabulary vocabulary = Vocabulary::read(document.root());
  EXPECT_EQ(vocabulary.end_id(), 8u);
  EXPECT_EQ(vocabulary.find("a"), 7);
  EXPECT_EQ(vocabulary.find(""), 2);
  EXPECT_EQ(vocabulary.find("b"), std::nullopt);
  EXPECT_EQ(vocabulary.text(0), "字");
  EXPECT_TRUE(vocabulary.contains(2));
  for (const TokenId id : {-1, 1, 8, 2147483647}) EXPECT_FALSE(vocabulary.contains(id));
}

TEST(JsonNode, SaysItsWayIntoTheDocument) {
  const Json document(R"({"a": [1, {"b\n": {"c": null}}]})", "file");
  auto element = document.root().at("a").elements().begin();
  ++element;
  EXPECT_EQ((*(*element).members().begin()).where(), "file: a[1].b\\x0a");
  EXPECT_EQ(document.root().where(), "file");
  EXPECT_THROW(document.root().at("a").string(), Error);
  EXPECT_EQ(document.root().find("none").has_value(), false);
}

TEST(Unicode, NormalizesByTheExamplesOfUax15) {
  EXPECT_EQ(normalize("\u212b", NormalForm::kNFC), "\u00c5");              // Angstrom
  EXPECT_EQ(normalize("\u1e9b\u0323", NormalForm::kNFC), "\u1e9b\u0323");  // figure 6
  EXPECT_EQ(normalize("\u1e9b\u0323", NormalForm::kNFD), "\u017f\u0323\u0307");
  EXPECT_EQ(normalize("\u1e9b\u0323", NormalForm::kNFKC), "\u1e69");
  EXPECT_EQ(normalize("\u1e9b\u0323", NormalForm::kNFKD), "s\u0323\u0307");
  EXPECT_EQ(normalize("\u1112\u1161\u11ab", NormalForm::kNFC), "\ud55c");  // Hangul
  EXPECT_EQ(normalize("\ud55c", NormalForm::kNFD), "\u1112\u1161\u11ab");
  EXPECT_EQ(normalize("\u0958", NormalForm::kNFC), "\u0915\u093c");  // excluded from composition
  EXPECT_EQ(normalize("q\u0307\u0323", NormalForm::kNFC), "q\u0323\u0307");  // sorted
}

// The numbers are from tokenizers.normalizers.StripAccents, run on every character.
TEST(Unicode, KnowsTheMarksThatHuggingFacesLibraryKnows) {
  std::size_t n = 0;
  std::uint64_t sum = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (!is_mark_of_unicode_9(c)) continue;
    n += 1;
    sum += c;
  }
  EXPECT_EQ(n, 2097u);
  EXPECT_EQ(sum, 286880651u);
  EXPECT_TRUE(is_mark_of_unicode_9(0x301));
  EXPECT_TRUE(is_mark_of_unicode_9(0x1cf2));
  EXPECT_FALSE(is_mark_of_unicode_9(0x1df6));  // of Unicode 10
}

TEST(Unicode, LowersEachCharacterByItself) { EXPECT_EQ(lowercase("ΑΣ İ ẞ Ǆ"), "ασ i\u0307 ß ǆ"); }

TEST(Unicode, KnowsLettersInCirclesAsWordCharacters) {
  EXPECT_TRUE(is_word(U'\u24b6'));
  EXPECT_TRUE(is_word(U'\u0301'));
  EXPECT_TRUE(is_word(U'_'));
  EXPECT_TRUE(is_word(U'\u200d'));
  EXPECT_FALSE(is_word(U'\u00b2'));
  EXPECT_FALSE(is_word(U'\U0001f600'));
}

TEST(Unicode, ReadsCharactersFromBothEnds) {
  for (const char32_t c : {U'a', U'\u00e9', U'\u5b57', U'\U0010ffff'}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(first_code_point(text + "z").value, c);
    EXPECT_EQ(last_code_point("z" + text).value, c);
    EXPECT_EQ(last_code_point("z" + text).length, text.size());
  }
}

}  // namespace
}  // namespace stagecraft
