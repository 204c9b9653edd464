// Correct GGUF files that differ from those of tests/data/gguf.
#include <gtest/gtest.h>

#include <cstring>

#include "formats/gguf/file.h"
#include "tests/hostile/raw_gguf.h"
#include "tests/support/engines.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"
#include "text/chat_format.h"

namespace stagecraft {
namespace {

const std::string kFolder = TEST_DATA "/gguf/";

// llama.cpp's scripts omit these keys. The model must be the same without them.
TEST(UnusualGguf, IsTheSameWithoutWhatLlamaCppsScriptsLeaveOut) {
  const TemporaryFolder folder;
  const struct {
    const char *name, *key;
  } rows[] = {{"gpt2-tied", "gpt2.attention.head_count_kv"},
              {"gpt2-tied", "gpt2.rope.freq_base"},
              {"gpt-neox-parallel", "gptneox.attention.head_count_kv"},
              {"gpt-neox-parallel", "gptneox.rope.freq_base"},
              {"bloom-4-heads", "bloom.rope.freq_base"}};
  for (const auto& [name, key] : rows) {
    RawGguf raw = RawGguf::read(kFolder + name + ".gguf");
    const std::size_t n = raw.pairs.size();
    raw.erase(key);
    ASSERT_EQ(raw.pairs.size(), n - 1) << key;
    write_file(folder.file("less.gguf"), raw.bytes());
    EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("less.gguf"))),
                          logits_of(textbook_engine(kFolder + name + ".gguf"))))
        << key;
  }
}

TEST(UnusualGguf, MaySayASizeForEachLayer) {
  const TemporaryFolder folder;
  RawGguf raw = RawGguf::read(kFolder + "whole-f32.gguf");
  const GgufFile before(kFolder + "whole-f32.gguf");
  const std::size_t n_layers = before.metadata().size("llama.block_count", 1, 100);
  for (const std::string key : {"llama.attention.head_count", "llama.attention.head_count_kv",
                                "llama.feed_forward_length"}) {
    const auto size = static_cast<std::int32_t>(before.metadata().size(key, 1, 100'000));
    raw.set(key, i32_array(std::vector<std::int32_t>(n_layers, size)));
  }
  write_file(folder.file("layers.gguf"), raw.bytes());
  EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("layers.gguf"))),
                        logits_of(textbook_engine(kFolder + "whole-f32.gguf"))));
}

TEST(UnusualGguf, MaySayThatItsAttentionIsCausal) {
  const TemporaryFolder folder;
  RawGguf raw = RawGguf::read(kFolder + "whole-f32.gguf");
  raw.set("llama.attention.causal", boolean(1));
  write_file(folder.file("causal.gguf"), raw.bytes());
  EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("causal.gguf"))),
                        logits_of(textbook_engine(kFolder + "whole-f32.gguf"))));
}

// Before llama.cpp computed with latents, a file had one matrix for the keys and values of all
// heads, and the sizes of the original model.
TEST(UnusualGguf, ReadsDeepSeeksMatricesAsTheyWereTrained) {
  const TemporaryFolder folder;
  constexpr std::size_t kHeads = 4, kPlain = 6, kValue = 3, kLatent = 10;
  RawGguf raw = RawGguf::read(kFolder + "deepseek-v2-greedy.gguf");
  for (const char* layer : {"blk.0.", "blk.1.", "blk.2."}) {
    const std::vector<float> keys = raw.floats(layer + std::string("attn_k_b.weight"));
    const std::vector<float> values = raw.floats(layer + std::string("attn_v_b.weight"));
    std::vector<float> both;
    for (std::size_t head = 0; head < kHeads; ++head) {
      for (std::size_t row = 0; row < kPlain; ++row) {
        for (std::size_t column = 0; column < kLatent; ++column) {
          both.push_back(keys[(head * kLatent + column) * kPlain + row]);
        }
      }
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(head * kValue * kLatent);
      both.insert(both.end(), first, first + static_cast<std::ptrdiff_t>(kValue * kLatent));
    }
    // Overwrites both matrices, whose data are adjacent.
    RawGguf::Tensor& place = raw.tensor(layer + std::string("attn_k_b.weight"));
    std::memcpy(raw.data.data() + place.offset, both.data(), both.size() * sizeof(float));
    place.name = layer + std::string("attn_kv_b.weight");
    place.sizes = {kLatent, kHeads * (kPlain + kValue)};
    std::erase_if(raw.tensors, [&](const RawGguf::Tensor& tensor) {
      return tensor.name == layer + std::string("attn_v_b.weight");
    });
  }
  raw.set("deepseek2.attention.head_count_kv", u32(kHeads));
  raw.set("deepseek2.attention.key_length", u32(kPlain + 4));
  raw.set("deepseek2.attention.value_length", u32(kValue));
  raw.erase("deepseek2.attention.key_length_mla");
  raw.erase("deepseek2.attention.value_length_mla");
  write_file(folder.file("older.gguf"), raw.bytes());
  EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("older.gguf"))),
                        logits_of(textbook_engine(kFolder + "deepseek-v2-greedy.gguf"))));
}

// A scale of 0 means no scale, as in llama.cpp.
TEST(UnusualGguf, TakesAScaleOfZeroForNone) {
  const TemporaryFolder folder;
  RawGguf raw = RawGguf::read(kFolder + "deepseek-v3-groups.gguf");
  const auto logits_with = [&](float scale) {
    raw.set("deepseek2.expert_weights_scale", f32(scale));
    write_file(folder.file("scaled.gguf"), raw.bytes());
    return logits_of(textbook_engine(folder.file("scaled.gguf")));
  };
  EXPECT_TRUE(same_bits(logits_with(0.0f), logits_with(1.0f)));
  EXPECT_FALSE(same_bits(logits_with(2.5f), logits_with(1.0f)));
}

// As in llama.cpp: "none" never scales, and a factor without a type is that of "linear".
TEST(UnusualGguf, StretchesRopeAsItsTypeSays) {
  const TemporaryFolder folder;
  const RawGguf linear = RawGguf::read(kFolder + "llama-rope-linear.gguf");
  const auto logits_with = [&](const auto& change) {
    RawGguf raw = linear;
    change(raw);
    write_file(folder.file("rope.gguf"), raw.bytes());
    return logits_of(textbook_engine(folder.file("rope.gguf")));
  };
  const auto scaled = logits_with([](RawGguf&) {});
  const auto plain = logits_with([](RawGguf& raw) {
    raw.erase("llama.rope.scaling.type");
    raw.erase("llama.rope.scaling.factor");
  });
  ASSERT_FALSE(same_bits(scaled, plain));
  EXPECT_TRUE(same_bits(plain, logits_with([](RawGguf& raw) {
                          raw.set("llama.rope.scaling.type", text_value("none"));
                        })));
  EXPECT_TRUE(
      same_bits(scaled, logits_with([](RawGguf& raw) { raw.erase("llama.rope.scaling.type"); })));
  for (RawGguf::Pair pair : linear.pairs) {
    if (pair.key != "llama.rope.scaling.factor") continue;
    EXPECT_TRUE(same_bits(scaled, logits_with([&](RawGguf& raw) {  // as in older files
                            raw.erase("llama.rope.scaling.type");
                            raw.erase("llama.rope.scaling.factor");
                            raw.set("llama.rope.scale_linear", pair.value);
                          })));
  }
}

// 4294967295 stands for "none" in some files.
TEST(UnusualGguf, ChatsWithoutATokenThatIsOutsideOfTheVocabulary) {
  const TemporaryFolder folder;
  RawGguf raw = RawGguf::read(kFolder + "whole.gguf");
  raw.set("tokenizer.ggml.padding_token_id", u32(UINT32_MAX));
  raw.set("tokenizer.chat_template", text_value("{{ pad_token is defined }}"));
  const auto path = folder.file("padding.gguf");
  write_file(path, raw.bytes());
  const Tokenizer tokenizer = Tokenizer::open(path);
  EXPECT_EQ(ChatFormat::open(path, tokenizer).text({{{"user", "Hi!"}}}).bytes(), "False");
}

TEST(UnusualGguf, OpensWhereTheIdsOfTokensMeanNone) {
  const TemporaryFolder folder;
  const auto without = [&](const char* name) {
    RawGguf raw = RawGguf::read(kFolder + name);
    for (const char* key : {"eos", "eot", "eom", "unknown"}) {
      raw.set(fmt::format("tokenizer.ggml.{}_token_id", key), u32(UINT32_MAX));
    }
    write_file(folder.file(name), raw.bytes());
    return folder.file(name);
  };
  EXPECT_EQ(describe_model(without("whole.gguf")).plan.eos_ids, std::vector<TokenId>{});
  EXPECT_GT(Tokenizer::open(without("tokenizer-llama2.gguf")).encode("a", {}).size(), 0u);
}

// A last layer that predicts a second token is not used.
TEST(UnusualGguf, LeavesOutLayersThatPredictFurtherTokens) {
  const TemporaryFolder folder;
  RawGguf raw = RawGguf::read(kFolder + "qwen3_5-long-keys.gguf");
  raw.set("qwen35.block_count", u32(5));
  raw.set("qwen35.nextn_predict_layers", u32(1));
  const std::vector<float> norm(20, 1.0f);
  for (const char* name : {"blk.4.attn_norm.weight", "blk.4.nextn.hnorm.weight"}) {
    raw.add(name, {norm.size()}, norm);
  }
  write_file(folder.file("more.gguf"), raw.bytes());
  EXPECT_TRUE(same_bits(logits_of(textbook_engine(folder.file("more.gguf"))),
                        logits_of(textbook_engine(kFolder + "qwen3_5-long-keys.gguf"))));
}

}  // namespace
}  // namespace stagecraft
