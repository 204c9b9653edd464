// A GGUF file gives the same results as the folder from which it was made.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/gguf/config.h"
#include "formats/gguf/file.h"
#include "inspection/trace.h"
#include "inspection/trace_file.h"
#include "model/config_file.h"
#include "model/forward.h"
#include "tests/support/engines.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

Engine gguf(const std::string& name) {
  return textbook_engine(TEST_DATA "/gguf/" + name + ".gguf");
}
Engine folder(const std::string& name) { return textbook_engine(TEST_DATA "/models/" + name); }

TEST(GgufModel, GivesTheLogitsOfItsFolderBitForBit) {
  for (const std::string name : {"llama-gqa2",
                                 "llama-attention-bias",
                                 "llama-f16",
                                 "llama-bf16",
                                 "llama-rope-linear",
                                 "llama-tied-lm-head-only",
                                 "qwen2-window-off",
                                 "qwen2-rope-yarn",
                                 "qwen3-qk-norm",
                                 "cohere-tied",
                                 "cohere2-pattern",
                                 "ernie4_5-tied",
                                 "glm4-post-norms",
                                 "granite-multipliers",
                                 "lfm2-conv-last",
                                 "mixtral-2-of-5",
                                 "olmo2-gqa2",
                                 "olmo3-yarn",
                                 "gpt-oss-usual-limit",
                                 "olmoe-mha",
                                 "phi3-mha",
                                 "qwen2-moe-shared",
                                 "qwen3-moe-3-of-7",
                                 "smollm3-four-layers",
                                 "stablelm-biases",
                                 "starcoder2-no-window",
                                 "gpt2-tied",
                                 "gpt-neox-parallel",
                                 "gpt-neox-sequential",
                                 "bloom-4-heads",
                                 "falcon-one-key-head",
                                 "falcon-two-norms",
                                 "olmo-clip",
                                 "chatglm2-usual-heads",
                                 "glm-half-rotary",
                                 "deepseek-v2-greedy",
                                 "deepseek-v2-groups",
                                 "deepseek-v3-groups",
                                 "gemma4-keys-as-values",
                                 "gemma4-shared-caches",
                                 "gemma4-2-of-5-experts",
                                 "phi-gqa2"}) {
    EXPECT_TRUE(same_bits(logits_of(gguf(name)), logits_of(folder(name)))) << name;
  }
}

// The file contains norm weights with 1 added, and -exp(x) for the decay x of Qwen3.5: both were
// rounded once more. The tolerance is the one that was measured for the logits of a model in f32
// (reference/tolerance.py).
TEST(GgufModel, OfRoundedWeightsGivesTheLogitsOfPyTorch) {
  for (const std::string name :
       {"gemma-tied", "gemma2-head-scale", "gemma3-six-layers", "qwen3_5-long-keys"}) {
    const TraceFile oracle(TEST_DATA "/models/" + name + "/trace.safetensors");
    Engine engine = gguf(name);
    const std::vector<TokenId> ids = ids_of(oracle);
    const auto activations = trace(engine, ids, std::vector<std::size_t>{ids.size()});
    ASSERT_EQ(activations.back().name, oracle.order().back());
    const auto tolerances = nlohmann::json::parse(oracle.metadata().at("tolerance"));
    const double allowed = tolerances.at(oracle.order().back()).get<double>();
    const Comparison result = compare_tensors(oracle.tensor(oracle.order().back()),
                                              activations.back().stored(), {0.0, allowed});
    EXPECT_EQ(result.differing, 0u) << name << ": off by " << result.worst.size();
  }
}

// llama.cpp fixes these values: each sixth layer is global, and local layers have their own RoPE.
TEST(GgufModel, ReadsWhatGemmaFilesLeaveUnsaid) {
  const GgufFile file(TEST_DATA "/gguf/gemma3-six-layers.gguf");
  const auto config = nlohmann::json::parse(gguf_config_json(file));
  EXPECT_EQ(config["layer_types"].dump(),
            R"(["sliding_attention","sliding_attention","sliding_attention",)"
            R"("sliding_attention","sliding_attention","full_attention"])");
  EXPECT_EQ(config["sliding_window"], 4);
  EXPECT_EQ(config["rope_theta"], 1e6);
  EXPECT_EQ(config["rope_local_base_freq"], 1e4);
  EXPECT_EQ(config["query_pre_attn_scalar"], 6);
}

// The file contains the llama3 scaling of RoPE as factors, rounded to f32.
TEST(GgufModel, TakesTheFactorsOfRope) {
  CourseModel file(TEST_DATA "/gguf/llama-rope-llama3.gguf");
  EXPECT_EQ(file.model.config.rope.factors.size(), file.model.config.head_dim / 2);
  const std::vector<float> expected = logits_of(folder("llama-rope-llama3"));
  const std::vector<float> logits = logits_of(gguf("llama-rope-llama3"));
  ASSERT_EQ(logits.size(), expected.size());
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 2e-5f);

  file.model.config.rope.factors.clear();
  KvCache cache(file.model.config, kEightIds.size());
  Workspace workspace(file.model.config, kEightIds.size(), kEightIds.size(), 1);
  Matrix<float> all(kEightIds.size(), file.model.config.vocab_size);
  forward(file.model, kEightIds, cache, workspace, all.view());
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
