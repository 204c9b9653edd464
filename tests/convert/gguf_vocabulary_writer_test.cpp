// A tokenizer.json that was written as keys of a GGUF file gives the same ids.
#include "convert/gguf_vocabulary_writer.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/fixtures.h"

namespace stagecraft {
namespace {

constexpr std::size_t kRows = 1000;  // more than the tokens of any of them

Tokenizer by_way_of_gguf(const std::string& json) {
  GgufWriter writer;
  Json description(json, "x.json");
  Tokenizer tokenizer = Tokenizer::read(description);
  add_gguf_vocabulary(writer, {std::move(description), std::move(tokenizer), "x.json", "", {}},
                      kRows, {});
  const TemporaryFolder folder;
  write_file(folder.file("x.gguf"), writer.header_without_tensors());
  return Tokenizer::open(folder.file("x.gguf"));
}

std::string json_of(const std::string& name) {
  return read_file(TEST_DATA "/tokenizers/" + name + "/tokenizer.json");
}

std::string gguf_refusal(const std::string& json) {
  return error_of([&] { by_way_of_gguf(json); });
}

TEST(GgufVocabulary, MakesTheSameIds) {
  for (const std::string name : {"gpt2", "llama2", "llama3", "qwen2", "smollm"}) {
    const Tokenizer tokenizer = by_way_of_gguf(json_of(name));
    for (const TokenizerCase& c : read_cases(name)) {
      EXPECT_EQ(tokenizer.encode(c.text, {}), c.ids) << name << ": " << c.text;
      EXPECT_EQ(tokenizer.encode(c.text, {.parse_special = false}), c.plain) << name;
      std::vector<TokenId> framed = c.before;
      framed.insert(framed.end(), c.ids.begin(), c.ids.end());
      framed.insert(framed.end(), c.after.begin(), c.after.end());
      EXPECT_EQ(tokenizer.encode(c.text, {.add_special = true}), framed) << name;
    }
  }
}

TEST(GgufVocabulary, NamesWhatGgufHasNoWordsFor) {
  EXPECT_EQ(gguf_refusal(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},)"
                         R"("pre_tokenizer":{"type":"Digits","individual_digits":true}})"),
            "x.json: its tokenizer cannot be expressed in GGUF, which has no name for the "
            "normalizer null with the pre_tokenizer Digits");
  EXPECT_EQ(gguf_refusal(R"({"model":{"type":"BPE","vocab":{"a":0,"b":2000},"merges":[]}})"),
            "x.json: model.vocab.b: expected an id below 1000 (the number of rows of the "
            "embedding), found 2000");
  for (const std::string flag : {"lstrip", "rstrip", "single_word"}) {
    EXPECT_EQ(gguf_refusal(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"added_tokens":)"
                           R"([{"id":1,"content":"<x>","special":true,")" +
                           flag + R"(":true}]})"),
              "x.json: added_tokens[0]: expected '" + flag +
                  "' to be false (GGUF cannot express it), found true");
  }
  EXPECT_EQ(gguf_refusal(R"({"model":{"type":"BPE","vocab":{"a":0,"<s>":1,"<t>":2},"merges":[]},)"
                         R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
                         R"("post_processor":{"type":"TemplateProcessing","pair":[],"single":[)"
                         R"({"SpecialToken":{"id":"<s>","type_id":0}},)"
                         R"({"SpecialToken":{"id":"<t>","type_id":0}},)"
                         R"({"Sequence":{"id":"A","type_id":0}}],"special_tokens":)"
                         R"({"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]},)"
                         R"("<t>":{"id":"<t>","ids":[2],"tokens":["<t>"]}}}})"),
            "x.json: post_processor: expected at most one token before a text and one after it "
            "(GGUF cannot express more), found 2 and 0");
  // By the scores, "ab▁" can be made from "ab" and "▁", but no merge does that.
  const std::string message =
      gguf_refusal(R"({"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},)"
                   R"("model":{"type":"BPE","unk_token":null,"vocab":)"
                   R"({"a":0,"b":1,"▁":2,"ab":3,"b▁":4,"ab▁":5},"merges":["a b","b ▁","a b▁"]}})");
  EXPECT_TRUE(message.starts_with("x.json: its tokenizer cannot be expressed in GGUF: '"));
  EXPECT_TRUE(
      message.ends_with("would become other tokens (--without-tokenizer writes only the weights)"))
      << message;
}

}  // namespace
}  // namespace stagecraft
