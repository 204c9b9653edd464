#include "formats/gguf/file.h"

#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_source.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

const std::string kGgufFiles = TEST_DATA "/gguf/";

// reference/make_gguf.py wrote the file with the gguf package.
TEST(Gguf, ReadsTheMetadataThatThePackageWrote) {
  const GgufFile file(kGgufFiles + "whole.gguf");
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.text("general.architecture"), "llama");
  EXPECT_EQ(metadata.size("llama.embedding_length", 1, 100), 32u);
  EXPECT_EQ(metadata.number("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(metadata.flag_or("tokenizer.ggml.add_bos_token", true), false);
  const auto tokens = metadata.texts("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), 62u);
  EXPECT_EQ(tokens[1], "<|im_start|>");
  EXPECT_EQ(metadata.integers("tokenizer.ggml.token_type").at(1), 3);
  EXPECT_FALSE(metadata.has("llama.no_such_key"));
  EXPECT_EQ(metadata.text_or("llama.no_such_key", "else"), "else");
}

TEST(Gguf, TurnsShapesRoundAndKeepsBlocksAsTheyAre) {
  const GgufFile file(kGgufFiles + "whole.gguf");
  const StoredTensor* down = file.find("blk.0.ffn_down.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (std::vector<std::size_t>{32, 64}));
  EXPECT_EQ(down->dtype, DType::Q4_0);
  EXPECT_EQ(down->bytes.size(), 32u * 2 * 18);
  EXPECT_EQ(element_count(*down), 32u * 64);
  EXPECT_EQ(file.find("model.embed_tokens.weight"), nullptr);
}

TEST(Gguf, ReadsVersion2) {
  const TemporaryFolder folder;
  std::string bytes = read_file(kGgufFiles + "llama-gqa2.gguf");
  bytes[4] = 2;  // a little-endian file of version 2 differs from version 3 only in this byte
  write_file(folder.file("model.gguf"), bytes);
  const GgufFile file(folder.file("model.gguf"));
  EXPECT_EQ(file.tensors().size(), 21u);
}

TEST(Gguf, IsKnownByItsNameOrItsFirstBytes) {
  const TemporaryFolder folder;
  write_file(folder.file("blob"), read_file(kGgufFiles + "whole.gguf"));
  write_file(folder.file("page.gguf"), "<html>");
  write_file(folder.file("model.safetensors"), "{}");
  EXPECT_TRUE(is_gguf(folder.file("blob")));
  EXPECT_TRUE(is_gguf(folder.file("page.gguf")));
  EXPECT_TRUE(is_gguf(folder.file("missing.gguf")));
  EXPECT_FALSE(is_gguf(folder.file("model.safetensors")));
  EXPECT_FALSE(is_gguf(folder.file("missing")));
  EXPECT_FALSE(is_gguf(folder.path()));
}

// Names, shapes, order of rows and bytes are equal, so a model need not know about GGUF.
TEST(Gguf, GivesTheTensorsOfTheFolderThatItWasMadeFrom) {
  for (const std::string name :
       {"llama-gqa2",          "llama-attention-bias", "llama-f16",           "llama-bf16",
        "qwen2-window-off",    "qwen3-qk-norm",        "llama-rope-llama3",   "cohere-tied",
        "cohere2-pattern",     "ernie4_5-tied",        "glm4-post-norms",     "granite-multipliers",
        "lfm2-conv-last",      "mixtral-2-of-5",       "olmo2-gqa2",          "olmo3-yarn",
        "olmo-clip",           "glm-half-rotary",      "olmoe-mha",           "phi3-mha",
        "qwen2-moe-shared",    "qwen3-moe-3-of-7",     "smollm3-four-layers", "stablelm-biases",
        "starcoder2-no-window"}) {
    const Checkpoint expected = Checkpoint::open(TEST_DATA "/models/" + name);
    const Checkpoint found = Checkpoint::open(kGgufFiles + name + ".gguf");
    EXPECT_EQ(found.tensors().size(), expected.tensors().size()) << name;
    for (const StoredTensor* tensor : expected.tensors()) {
      const StoredTensor* other = found.find(tensor->name);
      ASSERT_NE(other, nullptr) << name << ": " << tensor->name;
      EXPECT_EQ(other->shape, tensor->shape) << name << ": " << tensor->name;
      EXPECT_EQ(other->dtype, tensor->dtype) << name << ": " << tensor->name;
      EXPECT_TRUE(std::ranges::equal(other->bytes, tensor->bytes)) << name << ": " << tensor->name;
    }
  }
}

// The sum was rounded when the file was written: to half a unit in the last place of a number below
// 4.
TEST(Gguf, TakesTheOneBackThatGemmaFilesAddToNorms) {
  for (const std::string name : {"gemma-tied", "gemma2-head-scale", "gemma3-six-layers"}) {
    const Checkpoint expected = Checkpoint::open(TEST_DATA "/models/" + name);
    const Checkpoint found = Checkpoint::open(kGgufFiles + name + ".gguf");
    EXPECT_EQ(found.tensors().size(), expected.tensors().size()) << name;
    for (const StoredTensor* tensor : expected.tensors()) {
      const StoredTensor* other = found.find(tensor->name);
      ASSERT_NE(other, nullptr) << name << ": " << tensor->name;
      ASSERT_EQ(other->shape, tensor->shape) << name << ": " << tensor->name;
      std::vector<float> copy, other_copy;
      const auto values = elements(*tensor, copy), others = elements(*other, other_copy);
      const bool norm = tensor->name.ends_with("norm.weight");
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(others[i], values[i], norm ? 0x1p-23f : 0.0f) << name << ": " << tensor->name;
      }
    }
  }
}

TEST(Gguf, GivesExpertsAsViewsOfTheFile) {
  EXPECT_EQ(Checkpoint::open(kGgufFiles + "qwen3-moe-3-of-7.gguf").copied_bytes(), 0u);
}

std::string refusal(const std::filesystem::path& path) {
  return error_of([&] { Checkpoint::open(path); });
}

TEST(Gguf, InAFolderIsNamedInTheError) {
  const TemporaryFolder folder;
  write_file(folder.file("small.gguf"), "GGUF");
  EXPECT_EQ(
      refusal(folder.path()),
      folder.path().string() +
          ": expected model.safetensors; to use the GGUF file in this folder, give its path: " +
          folder.file("small.gguf"));
}

TEST(Gguf, IsAFileWhereItIsMissing) {
  EXPECT_EQ(refusal("no/such.gguf"), "no/such.gguf: no such file");
}

}  // namespace
}  // namespace stagecraft
