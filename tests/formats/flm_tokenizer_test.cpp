// Encoding by the longest match, compared with reference/make_formats.py.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/flm/tokenizer.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

const std::string kFolder = TEST_DATA "/formats/";

TEST(FlmTokenizer, TakesTheLongestTokenAndGivesTheTextBack) {
  std::ifstream lines(kFolder + "flm.jsonl");
  std::size_t n_cases = 0;
  const Tokenizer story = Tokenizer::open(kFolder + "story.flm");
  const Tokenizer gpt2 = Tokenizer::open(kFolder + "gpt2.flm");
  for (std::string line; std::getline(lines, line); ++n_cases) {
    const auto json = nlohmann::json::parse(line);
    const std::string text = json["text"];
    for (const bool special : {true, false}) {
      const Tokenizer::EncodeOptions options = {.parse_special = special};
      EXPECT_EQ(story.encode(text, options), json["story"].get<std::vector<TokenId>>()) << text;
      EXPECT_EQ(gpt2.encode(text, options), json["gpt2"].get<std::vector<TokenId>>()) << text;
    }
    if (text.find("▁") == std::string::npos) {  // it would be decoded as a space
      EXPECT_EQ(story.decode(story.encode(text, {})), text);
    }
    EXPECT_EQ(gpt2.decode(gpt2.encode(text, {})), text);
  }
  EXPECT_GE(n_cases, 150u);
}

TEST(FlmTokenizer, KnowsControlTokensByTheirSpellingAndByThePairs) {
  const Tokenizer story = Tokenizer::open(kFolder + "story.flm");
  EXPECT_TRUE(story.is_special(0) && story.is_special(1) && story.is_special(2));
  EXPECT_FALSE(story.is_special(300));
  EXPECT_EQ(story.encode("</s>", {}), (std::vector<TokenId>{2}));
  const auto typed = story.encode("</s>", {.parse_special = false});
  EXPECT_EQ(std::ranges::count(typed, 2), 0);
  EXPECT_EQ(story.decode(typed), "</s>");
  const auto spelt = story.encode("<0x41>", {});  // six characters, not a byte
  EXPECT_EQ(std::ranges::count(spelt, 3 + 0x41), 0);
  EXPECT_EQ(story.decode(spelt), "<0x41>");
  EXPECT_EQ(story.encode("a", {.add_special = true}).front(), 1);

  const Tokenizer gpt2 = Tokenizer::open(kFolder + "gpt2.flm");
  EXPECT_TRUE(gpt2.is_special(480));  // <|endoftext|>
  EXPECT_TRUE(gpt2.is_special(472));  // pad_token_id
  EXPECT_EQ(gpt2.encode("a", {.add_special = true}).size(), 1u);
}

TEST(FlmTokenizer, SpellsItsChatInJinja) {
  EXPECT_EQ(flm_chat_template(FlmFile(kFolder + "story.flm")),
            R"({% if messages and messages[0]['role'] == 'system' %}{{ messages[0]['content'] }})"
            R"({% else %}{{ '<s>Be \'brief\'.\n' }}{% endif %}{% for message in messages %})"
            R"({% if message['role'] == 'user' %}{{ 'USER: ' + message['content'] + '\nBOT: ' }})"
            R"({% elif message['role'] == 'assistant' %}{{ message['content'] + '</s>\n' }})"
            R"({% endif %}{% endfor %})");
  EXPECT_EQ(flm_chat_template(FlmFile(kFolder + "gpt2.flm")), "");
}

}  // namespace
}  // namespace stagecraft
