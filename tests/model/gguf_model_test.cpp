// A model in a GGUF file computes what it computes in the folder that the file was made from.
#include <gtest/gtest.h>

#include <cstring>

#include "generation/trace.h"
#include "model/config_file.h"
#include "model/forward.h"
#include "model/gguf_config.h"
#include "tests/support/engines.h"

namespace stagecraft {
namespace {

const std::vector<TokenId> kIds = {1, 7, 40, 61, 3, 3, 12, 55};

std::vector<float> logits_of(Engine engine) {
  const std::vector<std::size_t> passes = {kIds.size()};
  const auto activations = trace(engine, kIds, passes);
  const Matrix<float>& logits = activations.back().values;
  return {logits.data(), logits.data() + logits.rows() * logits.cols()};
}

Engine gguf(const std::string& name) {
  return textbook_engine(TEST_DATA "/gguf/" + name + ".gguf");
}
Engine folder(const std::string& name) { return textbook_engine(TEST_DATA "/models/" + name); }

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(GgufModel, GivesTheLogitsOfItsFolderBitForBit) {
  for (const std::string name :
       {"llama-gqa2", "llama-attention-bias", "llama-f16", "llama-bf16", "llama-rope-linear",
        "llama-tied-lm-head-only", "qwen2-window-off", "qwen3-qk-norm"}) {
    EXPECT_TRUE(same_bits(logits_of(gguf(name)), logits_of(folder(name)))) << name;
  }
}

// llama3's slowing down of RoPE comes as factors that were rounded to f32.
TEST(GgufModel, TakesTheFactorsOfRope) {
  CourseModel file(TEST_DATA "/gguf/llama-rope-llama3.gguf");
  EXPECT_EQ(file.model.config.rope.factors.size(), file.model.config.head_dim / 2);
  const std::vector<float> expected = logits_of(folder("llama-rope-llama3"));
  const std::vector<float> logits = logits_of(gguf("llama-rope-llama3"));
  ASSERT_EQ(logits.size(), expected.size());
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 2e-5f);

  file.model.config.rope.factors.clear();
  KvCache cache(file.model.config, kIds.size());
  Workspace workspace(file.model.config, kIds.size(), kIds.size(), 1);
  Matrix<float> all(kIds.size(), file.model.config.vocab_size);
  forward(file.model, kIds, cache, workspace, all.view());
  const std::span<const float> others(all.data(), all.rows() * all.cols());
  float largest = 0.0f;
  for (std::size_t i = 0; i < others.size(); ++i) {
    largest = std::max(largest, std::abs(others[i] - expected[i]));
  }
  EXPECT_GT(largest, 1e-3f) << "the factors change nothing here";
}

TEST(GgufModel, OfQuantisedWeightsGivesTheLogitsOfTheDequantised) {
  EXPECT_TRUE(same_bits(logits_of(gguf("whole")), logits_of(gguf("whole-f32"))));
}

TEST(GgufModel, ReadsItsConfigFromTheMetadata) {
  const Config config = read_config(TEST_DATA "/gguf/whole.gguf");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.vocab_size, 62u);
  EXPECT_EQ(config.dim, 32u);
  EXPECT_EQ(config.ffn_dim, 64u);
  EXPECT_EQ(config.n_layers, 1u);
  EXPECT_EQ(config.n_heads, 4u);
  EXPECT_EQ(config.n_kv_heads, 2u);
  EXPECT_EQ(config.head_dim, 8u);
  EXPECT_EQ(config.max_seq_len, 128u);
  EXPECT_EQ(config.norm_eps, 1e-5f);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.eos_ids, (std::vector<TokenId>{2, 0}));
}

}  // namespace
}  // namespace stagecraft
