// Files that are broken, contradict themselves, or need an unsupported feature: the error is one
// line that names file, field, expected and found.
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/fixtures.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

using nlohmann::json;

json good() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": null, "decoder": null, "post_processor": null,
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3},
              "merges": [["a", "b"]]}})");
}

std::string message_of(const std::filesystem::path& path) {
  try {
    Tokenizer::open(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "opened";
}

struct BadTokenizerFile {
  const char* name;
  std::function<void(json&)> spoil;
  const char* message;  // after the file's name
};

// A pattern that is written as JSON.
json split(const char* regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

// 65 steps: 32 in a Sequence inside of a Sequence, an empty Sequence, and 32 more.
json sequence_of(const char* list, const json& step) {
  const json inner = {{"type", "Sequence"}, {list, json::array_t(32, step)}};
  json outer = inner;
  outer[list].push_back(inner);
  outer[list].push_back({{"type", "Sequence"}, {list, json::array()}});
  return outer;
}

const BadTokenizerFile kBadTokenizers[] = {
    {"NoModel", [](json& j) { j.erase("model"); }, "expected a field 'model', found none"},
    {"ModelIsNull", [](json& j) { j["model"] = nullptr; }, "expected a field 'model', found none"},
    {"ModelIsAString", [](json& j) { j["model"] = "BPE"; },
     "model: expected an object, found \"BPE\""},
    {"WordPiece", [](json& j) { j["model"]["type"] = "WordPiece"; },
     "model.type: expected 'BPE' or 'Unigram' (no other model is supported), found \"WordPiece\""},
    {"WordLevel", [](json& j) { j["model"]["type"] = "WordLevel"; }, "found \"WordLevel\""},
    {"TypeIsANumber", [](json& j) { j["model"]["type"] = 3; },
     "model.type: expected a string, found 3"},
    {"NeitherTypeNorMerges",
     [](json& j) {
       j["model"] = {{"vocab", json::object()}};
     },
     "model: expected a model of type 'BPE' or 'Unigram', found no type and no merges"},
    {"NoVocab", [](json& j) { j["model"].erase("vocab"); },
     "model: expected a field 'vocab', found none"},
    {"VocabIsAnArray", [](json& j) { j["model"]["vocab"] = {"a"}; },
     "model.vocab: expected an object, found an array"},
    {"IdIsAString", [](json& j) { j["model"]["vocab"]["a"] = "0"; },
     "model.vocab.a: expected an integer, found \"0\""},
    {"IdIsAFraction", [](json& j) { j["model"]["vocab"]["a"] = 0.5; },
     "model.vocab.a: expected an integer, found 0.5"},
    {"IdIsNegative", [](json& j) { j["model"]["vocab"]["a"] = -1; },
     "model.vocab.a: expected an id from 0 to 65543 (for 4 entries), found -1"},
    {"IdIsHuge", [](json& j) { j["model"]["vocab"]["a"] = 2147483648; }, "found 2147483648"},
    {"IdBeyond64Bits", [](json& j) { j["model"]["vocab"]["a"] = 1e30; }, "expected an integer"},
    {"IdTwice", [](json& j) { j["model"]["vocab"]["b"] = 0; },
     "model.vocab.b: expected a unique id, found 0, which 'a' also has"},
    {"NoMerges", [](json& j) { j["model"].erase("merges"); },
     "model: expected a field 'merges', found none"},
    {"MergesAreAnObject", [](json& j) { j["model"]["merges"] = json::object(); },
     "model.merges: expected an array, found an object"},
    {"MergeOfAnUnknownToken",
     [](json& j) {
       j["model"]["merges"] = {"a b", "a x"};
     },
     "model.merges[1]: expected two tokens of model.vocab whose concatenation is also in "
     "model.vocab, found 'x', which is not in it"},
    {"MergeIntoAnUnknownToken",
     [](json& j) {
       j["model"]["merges"] = {{"b", "c"}};
     },
     "model.merges: expected"},
    {"MergePairIntoAnUnknownToken",
     [](json& j) {
       j["model"]["merges"] = json::array({{"b", "c"}, {"a", "b"}});
     },
     "model.merges[0]: expected two tokens of model.vocab whose concatenation is also in "
     "model.vocab, found 'bc'"},
    {"MergeOfThree", [](json& j) { j["model"]["merges"] = {"a b c"}; },
     "model.merges[0]: expected two tokens separated by a space, found \"a b c\""},
    {"MergeIsANumber", [](json& j) { j["model"]["merges"] = {7}; },
     "model.merges[0]: expected a pair of tokens, found 7"},
    {"Dropout", [](json& j) { j["model"]["dropout"] = 0.1; }, "model.dropout: expected null"},
    {"SubwordPrefix", [](json& j) { j["model"]["continuing_subword_prefix"] = "##"; },
     "model.continuing_subword_prefix: expected null or '' (it is not supported), found \"##\""},
    {"WordSuffix", [](json& j) { j["model"]["end_of_word_suffix"] = "</w>"; },
     "model.end_of_word_suffix: expected null or '' (it is not supported), found \"</w>\""},
    {"FuseUnkIsAString", [](json& j) { j["model"]["fuse_unk"] = "yes"; },
     "model.fuse_unk: expected true or false, found \"yes\""},
    {"Version", [](json& j) { j["version"] = "2.0"; }, "version: expected '1.0', found \"2.0\""},
    {"Truncation", [](json& j) { j["truncation"] = 5; },
     "truncation: expected an object or null, found 5"},
    {"Padding", [](json& j) { j["padding"] = "Fixed"; },
     "padding: expected an object or null, found \"Fixed\""},
    {"RootIsAnArray", [](json& j) { j = json::array({j}); }, "expected an object, found an array"},
    {"AddedTokensAreAnObject", [](json& j) { j["added_tokens"] = json::object(); },
     "added_tokens: expected an array, found an object"},
    {"AddedTokenHasNoId", [](json& j) { j["added_tokens"][0].erase("id"); },
     "added_tokens[0]: expected a field 'id', found none"},
    {"AddedTokenHasNoContent", [](json& j) { j["added_tokens"][0].erase("content"); },
     "added_tokens[0]: expected a field 'content', found none"},
    {"AddedIdIsHuge", [](json& j) { j["added_tokens"][0]["id"] = 2147483647; },
     "added_tokens[0].id: expected an id from 0 to 65541, found 2147483647"},
    {"AddedIdIsNegative", [](json& j) { j["added_tokens"][0]["id"] = -4; },
     "added_tokens[0].id: expected an id from 0 to 65541, found -4"},
    {"AddedIdIsTaken", [](json& j) { j["added_tokens"][0]["id"] = 2; },
     "added_tokens[0].id: expected a unique id for '<s>', found 2, which 'c' has in "
     "model.vocab"},
    {"AddedIdContradictsTheModel", [](json& j) { j["added_tokens"][0]["content"] = "c"; },
     "added_tokens[0].id: expected 2, as 'c' has in model.vocab, found 4"},
    {"AddedIdTwice",
     [](json& j) {
       j["added_tokens"].push_back(j["added_tokens"][0]);
       j["added_tokens"][1]["content"] = "</s>";
     },
     "added_tokens[1].id: expected one id for each added token, and one token for each id, found "
     "4"},
    {"AddedTokensAreOneWhenNormalized",
     [](json& j) {
       j["normalizer"] = {{"type", "Lowercase"}};
       j["added_tokens"] = {{{"id", 4}, {"content", "Fox"}, {"normalized", true}},
                            {{"id", 5}, {"content", "fox"}, {"normalized", true}}};
     },
     "added_tokens: expected tokens that differ after normalization, found 'Fox' and 'fox'"},
    {"AddedTokenIsNothingWhenNormalized",
     [](json& j) {
       j["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
       j["added_tokens"][0]["content"] = "  ";
       j["added_tokens"][0]["normalized"] = true;
     },
     "added_tokens[0].content: expected a text that is not empty after normalization"},
    {"NormalizerHasNoType", [](json& j) { j["normalizer"] = json::object(); },
     "normalizer: expected a field 'type', found none"},
    {"UnknownNormalizer",
     [](json& j) {
       j["normalizer"] = {{"type", "BertNormalizer"}};
     },
     "normalizer.type: expected a supported normalizer"},
    {"UnknownNormalizerInASequence",
     [](json& j) {
       j["normalizer"] = {{"type", "Sequence"},
                          {"normalizers", {{{"type", "NFC"}}, {{"type", "BertNormalizer"}}}}};
     },
     "normalizer.normalizers[1].type: expected a supported normalizer"},
    {"ReplaceWithoutPattern",
     [](json& j) {
       j["normalizer"] = {{"type", "Replace"}, {"content", "x"}};
     },
     "normalizer: expected a field 'pattern', found none"},
    {"PatternOfNoKind",
     [](json& j) {
       j["normalizer"] = {{"type", "Replace"}, {"content", "x"}, {"pattern", json::object()}};
     },
     "normalizer.pattern: expected either a field 'String' or a field 'Regex', found none"},
    {"UnknownPreTokenizer",
     [](json& j) {
       j["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
     },
     "pre_tokenizer.type: expected a supported pre-tokenizer"},
    {"BrokenRegex", [](json& j) { j["pre_tokenizer"] = split("(a"); },
     "pre_tokenizer.pattern.Regex: expected a regular expression, found '(a'"},
    {"UnknownProperty", [](json& j) { j["pre_tokenizer"] = split(R"(\p{Nope})"); },
     "pre_tokenizer.pattern.Regex: expected a regular expression"},
    {"ClassInAClass", [](json& j) { j["pre_tokenizer"] = split("[a[bc]]"); },
     "pre_tokenizer.pattern.Regex: a character class in a character class in a pattern is not "
     "supported"},
    {"ClassIntersection", [](json& j) { j["pre_tokenizer"] = split("[a-z&&[^b]]"); },
     "pre_tokenizer.pattern.Regex: && in a character class in a pattern is not supported"},
    {"SplitBehavior",
     [](json& j) {
       j["pre_tokenizer"] = split("a");
       j["pre_tokenizer"]["behavior"] = "Shredded";
     },
     "pre_tokenizer.behavior: expected 'Removed', 'Isolated'"},
    {"MetaspaceMarkOfTwoCharacters",
     [](json& j) {
       j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "__"}};
     },
     "pre_tokenizer.replacement: expected one character, found \"__\""},
    {"MetaspaceScheme",
     [](json& j) {
       j["pre_tokenizer"] = {
           {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "often"}};
     },
     "pre_tokenizer.prepend_scheme: expected 'first', 'never' or 'always', found \"often\""},
    {"FixedLengthOfNothing",
     [](json& j) {
       j["pre_tokenizer"] = {{"type", "FixedLength"}, {"length", 0}};
     },
     "pre_tokenizer.length: expected at least 1, found 0"},
    {"UnknownDecoder",
     [](json& j) {
       j["decoder"] = {{"type", "CTC"}};
     },
     "decoder.type: expected a supported decoder"},
    {"DecoderWithRegex",
     [](json& j) {
       j["decoder"] = {{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", ""}};
     },
     "decoder.pattern: expected a field 'String' (a decoder's Regex is not supported), found none"},
    {"StripOfManyCharacters",
     [](json& j) {
       j["decoder"] = {{"type", "Strip"}, {"content", " "}, {"start", 4000000000}, {"stop", 0}};
     },
     "decoder.start: expected a count from 0 to 1000, found 4000000000"},
    {"AddedTokenThatNormalizationMakesLong",
     [](json& j) {
       const json longer = {
           {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "12345"}};
       j["normalizer"] = longer;
       j["added_tokens"][0]["content"] = std::string(1024, 'a');
       j["added_tokens"][0]["normalized"] = true;
     },
     "added_tokens[0].content: expected at most 4096 bytes after normalization, found 5120"},
    {"AddedTokenThatNormalizationMakesEndless",
     [](json& j) {
       const json longer = {
           {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaa"}};
       j["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array_t(6, longer)}};
       j["added_tokens"][0]["content"] = std::string(1024, 'a');
       j["added_tokens"][0]["normalized"] = true;
     },
     "added_tokens[0].content: normalizer Replace: expected at most 69632 bytes made from a text "
     "of "
     "1024 bytes, found more"},
    {"NormalizersWithoutEnd",
     [](json& j) {
       j["normalizer"] = sequence_of("normalizers", {{"type", "NFC"}});
     },
     "normalizer: expected at most 64 steps, found 65"},
    {"PreTokenizersWithoutEnd",
     [](json& j) {
       j["pre_tokenizer"] = sequence_of("pretokenizers", {{"type", "Whitespace"}});
     },
     "pre_tokenizer: expected at most 64 steps, found 65"},
    {"DecodersWithoutEnd",
     [](json& j) {
       j["decoder"] = sequence_of("decoders", {{"type", "Fuse"}});
     },
     "decoder: expected at most 64 steps, found 65"},
    {"AddedTokenOfAPage", [](json& j) { j["added_tokens"][0]["content"] = std::string(2000, 'a'); },
     "added_tokens[0].content: expected at most 1024 bytes, found 2000"},
    {"UnknownPostProcessor",
     [](json& j) {
       j["post_processor"] = {{"type", "RobertaProcessing"}};
     },
     "post_processor.type: expected a supported post-processor"},
    {"TemplateOfAnUnknownToken",
     [](json& j) {
       j["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}},
                              {"special_tokens", json::object()}};
     },
     "post_processor.single[0].SpecialToken.id: expected a key of special_tokens, found \"<s>\""},
    {"TemplateOfAnUnknownId",
     [](json& j) {
       j["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}},
                              {"special_tokens", {{"<s>", {{"ids", {5}}}}}}};
     },
     "post_processor: expected ids of the vocabulary, found 5"},
    {"TemplateOfTooManyTexts",
     [](json& j) {
       const json text = {{"Sequence", {{"id", "A"}}}};
       j["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", std::vector<json>(1025, text)},
                              {"special_tokens", json::object()}};
     },
     "post_processor.single: expected at most 1024 tokens and texts, found more"},
    {"TemplateOfTwoTexts",
     [](json& j) {
       j["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", {{{"Sequence", {{"id", "B"}}}}}},
                              {"special_tokens", json::object()}};
     },
     "post_processor.single[0].Sequence.id: expected 'A', the one text of 'single', found \"B\""},
};

class BadTokenizer : public testing::TestWithParam<BadTokenizerFile> {};

INSTANTIATE_TEST_SUITE_P(Every, BadTokenizer, testing::ValuesIn(kBadTokenizers),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadTokenizer, IsRefusedInOneLineThatNamesTheField) {
  json spoilt = good();
  GetParam().spoil(spoilt);
  const TemporaryFolder folder;
  const auto file = folder.write("tokenizer.json", spoilt.dump());
  const std::string message = message_of(folder.path());
  EXPECT_EQ(message.substr(0, file.string().size() + 2), file.string() + ": ");
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(BadTokenizers, AreSpoiltFromAGoodOne) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", good().dump());
  EXPECT_EQ(message_of(folder.path()), "opened");
}

// transformers switches off what training left in the file.
TEST(BadTokenizers, AreNotThoseThatWereSavedWithTruncationAndPadding) {
  const TemporaryFolder folder;
  json saved = good();
  saved["truncation"] = {
      {"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}};
  saved["padding"] = {{"strategy", {{"Fixed", 8}}}, {"direction", "Right"}, {"pad_id", 4}};
  folder.write("tokenizer.json", saved.dump());
  EXPECT_EQ(Tokenizer::open(folder.path()).encode("abcab", {}), (std::vector<TokenId>{3, 2, 3}));
}

TEST(BadTokenizers, AreFilesThatAreNoJson) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& bytes, const std::string& message) {
    folder.write("tokenizer.json", bytes);
    const std::string found = message_of(folder.path());
    EXPECT_NE(found.find(message), std::string::npos) << found;
    EXPECT_EQ(found.find('\n'), std::string::npos);
  };
  expect("", "expected JSON, found nothing");
  expect("{\"model\": {\"vocab\": {\"a\": 0", "not valid JSON: it ends too early");
  expect("{\"version\": \"1.0\"} and more", "not valid JSON: line 1, column 20");
  expect("{\"version\": \"\xff\"}", "not valid JSON: line 1, column");
  expect("{\"version\": \"\\ud800\"}", "not valid JSON: line 1, column");
  expect("{\"version\": \"1.0\", \"version\": \"1.0\"}", "'version' is given twice");
  expect(R"({"model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "a": 1}}})",
         "'model.vocab.a' is given twice");
  const std::string deep(100'000, '[');
  expect(deep, "nested deeper than 64 levels");
  std::string sequences;
  for (int i = 0; i < 100'000; ++i) sequences += R"({"type":"Sequence","normalizers":[)";
  expect("{\"normalizer\":" + sequences, "nested deeper than 64 levels");
}

TEST(BadTokenizers, AreFoldersAndFilesThatAreMissing) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of(folder.path()),
            folder.path().string() +
                ": expected a folder with a tokenizer.json or a tokenizer.model, found neither");
  EXPECT_NE(message_of(folder.path() / "none").find("cannot be opened"), std::string::npos);
  std::filesystem::create_directory(folder.path() / "tokenizer.json");
  EXPECT_EQ(message_of(folder.path()),
            (folder.path() / "tokenizer.json").string() + ": expected a file, found a folder");
}

TEST(BadTokenizers, AreNotReadWhenTheyAreTooLarge) {
  const TemporaryFolder folder;
  const auto file = folder.write("tokenizer.json", "{}");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 30);  // sparse: no disk is used
  EXPECT_EQ(message_of(file),
            file.string() + ": expected at most 134217728 bytes, found 1073741824");
}

// Changes, adds or removes one byte: the file is rejected with an Error or is a valid tokenizer.
TEST(BadTokenizers, NeverCrashWhereverOneByteIsChanged) {
  std::mt19937 random(20261120);
  const TemporaryFolder folder;
  int opened = 0;
  int refused = 0;
  for (const std::string& name : kTokenizers) {
    const std::filesystem::path good = tokenizer_file(tokenizers_folder() / name).value();
    std::ifstream stream(good, std::ios::binary);
    const std::string original{std::istreambuf_iterator<char>(stream), {}};
    for (int n = 0; n < 40; ++n) {
      std::string spoilt = original;
      // Half of the changes are in the first part of the file, which has the components.
      const std::size_t reach =
          n % 2 == 0 ? std::min<std::size_t>(1500, spoilt.size()) : spoilt.size();
      const std::size_t at = random() % reach;
      switch (random() % 4) {
        case 0:
          spoilt[at] = static_cast<char>(random());
          break;
        case 1:
          spoilt.erase(at, 1 + random() % 8);
          break;
        case 2:
          spoilt.insert(at, 1, "\"[]{},:0-"[random() % 9]);
          break;
        case 3:
          spoilt.insert(at, spoilt.substr(random() % reach, random() % 60));
          break;
      }
      const auto file = folder.write(good.filename().string(), spoilt);
      try {
        const Tokenizer tokenizer = Tokenizer::open(file);
        ++opened;
        const auto ids = tokenizer.encode("Hello, <s> wor\xc3\xa9 123\n  <|im_end|>word!", {});
        tokenizer.decode(ids);
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
  }
  EXPECT_GT(opened, 20);  // otherwise the changes test only the JSON parser
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace stagecraft
