// A llama2.c file gives the same results as the model from which it was made
// (reference/make_formats.py).
#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/safetensors.h"
#include "formats/llama2c/file.h"
#include "inspection/trace.h"
#include "model/config_file.h"
#include "tests/support/engines.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

Engine file(const std::string& name) { return textbook_engine(TEST_DATA "/formats/" + name); }

TEST(Llama2cModel, GivesTheLogitsOfItsFolderBitForBit) {
  const std::pair<std::string, std::string> pairs[] = {
      {"llama2c-v0.bin", "llama-gqa2"},
      {"llama2c-v0-tied.bin", "llama-tied-embed-only"},
      {"llama2c-v1.bin", "llama-gqa2"},
  };
  for (const auto& [bin, folder] : pairs) {
    EXPECT_TRUE(
        same_bits(logits_of(file(bin)), logits_of(textbook_engine(TEST_DATA "/models/" + folder))))
        << bin;
  }
}

TEST(Llama2cModel, OfInt8HoldsEachTimesTheScaleOfItsGroup) {
  const Checkpoint found = Checkpoint::open(TEST_DATA "/formats/llama2c-v2.bin");
  const SafetensorsFile expected(TEST_DATA "/formats/llama2c-v2.safetensors");
  EXPECT_EQ(found.tensors().size(), expected.tensors().size());
  for (const StoredTensor& tensor : expected.tensors()) {
    const StoredTensor* same = found.find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_EQ(same->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << tensor.name;
  }
  EXPECT_NO_THROW(logits_of(file("llama2c-v2.bin")));
}

TEST(Llama2cModel, HasTheConfigOfItsHeaderAndOfRunC) {
  const Config config = read_config(TEST_DATA "/formats/llama2c-v0.bin");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.dim, 24u);
  EXPECT_EQ(config.ffn_dim, 37u);
  EXPECT_EQ(config.n_layers, 2u);
  EXPECT_EQ(config.n_heads, 4u);
  EXPECT_EQ(config.n_kv_heads, 2u);
  EXPECT_EQ(config.vocab_size, 65u);
  EXPECT_EQ(config.max_seq_len, 64u);
  EXPECT_EQ(config.norm_eps, 1e-5f);
  EXPECT_EQ(config.rope.theta, 10'000.0);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(config.eos_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_TRUE(read_config(TEST_DATA "/formats/llama2c-v0-tied.bin").tied_embeddings);
}

TEST(Llama2cModel, IsKnownByNameOrContents) {
  const TemporaryFolder folder;
  for (const std::string name : {"llama2c-v0.bin", "llama2c-v1.bin", "llama2c-v2.bin"}) {
    std::filesystem::copy_file(TEST_DATA "/formats/" + name, folder.file(name + "-blob"));
    EXPECT_TRUE(is_llama2c(folder.file(name + "-blob"))) << name;
  }
  EXPECT_TRUE(is_llama2c("missing.bin"));
  EXPECT_FALSE(is_llama2c("missing"));
  EXPECT_FALSE(is_llama2c("tokenizer.bin"));
  EXPECT_FALSE(is_llama2c(TEST_DATA "/formats/llama2c-v2.safetensors"));
  EXPECT_FALSE(is_llama2c(folder.path()));
}

}  // namespace
}  // namespace stagecraft
