// Compares with the tokenizers library, on fixtures that it wrote.
#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/text/fixtures.h"
#include "tests/text/pieces_of.h"
#include "text/pipeline/decoder.h"
#include "text/pipeline/normalizer.h"
#include "text/pipeline/pre_tokenizer.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

using nlohmann::json;

class Library : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<TokenizerCase> cases_ = read_cases(GetParam());
  const Tokenizer tokenizer_ = Tokenizer::open(tokenizers_folder() / GetParam());
};

INSTANTIATE_TEST_SUITE_P(Every, Library, testing::ValuesIn(kTokenizers),
                         [](const auto& instance) { return instance.param; });

TEST_P(Library, HasManyCases) { EXPECT_GE(cases_.size(), 200u); }

TEST_P(Library, MakesTheSameIds) {
  for (const TokenizerCase& c : cases_) EXPECT_EQ(tokenizer_.encode(c.text, {}), c.ids) << c.text;
}

TEST_P(Library, MakesTheSameIdsOfPlainText) {
  for (const TokenizerCase& c : cases_) {
    EXPECT_EQ(tokenizer_.encode(c.text, {.parse_special = false}), c.plain) << c.text;
  }
}

TEST_P(Library, PutsTheSameTokensAroundAText) {
  for (const TokenizerCase& c : cases_) {
    std::vector<TokenId> expected = c.before;
    expected.insert(expected.end(), c.ids.begin(), c.ids.end());
    expected.insert(expected.end(), c.after.begin(), c.after.end());
    EXPECT_EQ(tokenizer_.encode(c.text, {.add_special = true}), expected) << c.text;
  }
}

TEST_P(Library, DecodesTheSameText) {
  for (const TokenizerCase& c : cases_) {
    EXPECT_EQ(utf8_with_replacements(tokenizer_.decode(c.ids)), c.decoded) << c.text;
  }
}

// Pushes ids one at a time; they need not form a sensible text.
std::string stream(const Tokenizer& tokenizer, std::span<const TokenId> context,
                   std::span<const TokenId> ids) {
  StreamDecoder decoder(tokenizer, context);
  std::string text;
  for (const TokenId id : ids) {
    const std::string part = decoder.push(id);
    EXPECT_EQ(utf8_error_offset(part), std::string::npos) << "half a character";
    text += part;
  }
  return text + decoder.finish();
}

TEST_P(Library, StreamsWhatItDecodes) {
  for (const TokenizerCase& c : cases_) EXPECT_EQ(stream(tokenizer_, {}, c.ids), c.decoded);

  std::mt19937 random(7);
  std::uniform_int_distribution<TokenId> any(0, static_cast<TokenId>(tokenizer_.vocab_size()) - 1);
  for (int n = 0; n < 200; ++n) {
    std::vector<TokenId> ids(static_cast<std::size_t>(n % 17));
    for (TokenId& id : ids) id = any(random);
    EXPECT_EQ(stream(tokenizer_, {}, ids), utf8_with_replacements(tokenizer_.decode(ids)));
  }
}

TEST_P(Library, StreamsTheRestOfATextAfterItsContext) {
  for (const TokenizerCase& c : cases_) {
    for (std::size_t cut = 0; cut <= c.ids.size(); cut += 1 + c.ids.size() / 5) {
      const std::span<const TokenId> ids = c.ids;
      // The text of the context is a stream without finish().
      StreamDecoder before(tokenizer_);
      std::string shown;
      for (const TokenId id : ids.first(cut)) shown += before.push(id);
      EXPECT_EQ(shown + stream(tokenizer_, ids.first(cut), ids.subspan(cut)), c.decoded) << c.text;
    }
  }
}

std::string decoded(const Decoder& decoder, const std::vector<std::string>& tokens) {
  Decoding decoding(decoder);
  for (const std::string& token : tokens) decoding.push(token);
  decoding.finish();
  return utf8_with_replacements(decoding.take());
}

json outcome(const std::string& kind, const JsonNode& config, const json& input) {
  if (kind == "pre_tokenizer") return pieces_of(*PreTokenizer::read(config), input);
  if (kind == "decoder") return decoded(Decoder(config), input);
  std::string text = input;
  bool at_start = true;
  const auto normalizer = Normalizer::read(config);
  if (!text.empty()) normalizer->apply(text, at_start, GrowthLimit("text", text.size()));
  return text;
}

TEST(Library, MakesTheSameOfTextsWithEachComponentAlone) {
  const auto lines = read_json_lines(tokenizers_folder() / "components.jsonl");
  EXPECT_GE(lines.size(), 90u);
  for (const json& line : lines) {
    const Json document(line.dump(), "component");
    for (const json& c : line.at("cases")) {
      EXPECT_EQ(outcome(line.at("kind"), document.root().at("config"), c.at(0)), c.at(1))
          << line.at("config") << " of " << c.at(0);
    }
  }
}

}  // namespace
}  // namespace stagecraft
