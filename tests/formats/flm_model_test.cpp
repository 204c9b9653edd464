// A .flm file gives the same results as the model from which it was made
// (reference/make_formats.py).
#include <gtest/gtest.h>

#include <cstring>

#include "convert/convert.h"
#include "formats/flm/config.h"
#include "inspection/trace.h"
#include "tests/support/engines.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

TEST(FlmModel, GivesTheLogitsOfItsFolderBitForBit) {
  EXPECT_TRUE(same_bits(logits_of(textbook_engine(TEST_DATA "/formats/llama-gqa2.flm")),
                        logits_of(textbook_engine(TEST_DATA "/models/llama-gqa2"))));
}

// ChatGLM and ChatGLM2, as the converter of FastLLM writes them, and as ours does.
TEST(FlmModel, OfChatGlmGivesTheLogitsOfItsFolderBitForBit) {
  const std::pair<const char*, const char*> models[] = {{"chatglm", "chatglm-gmask"},
                                                        {"chatglm2", "chatglm2-two-key-heads"}};
  const TemporaryFolder scratch;
  for (const auto& [file, name] : models) {
    const std::filesystem::path folder = std::filesystem::path(TEST_DATA "/models") / name;
    const std::vector<TokenId> ids = ids_of(TraceFile(folder / "trace.safetensors"));
    const std::vector<std::size_t> passes = {ids.size()};
    const auto logits = [&](const std::filesystem::path& model) {
      Engine engine = textbook_engine(model);
      return std::move(trace(engine, ids, passes).back().values);
    };
    const Matrix<float> expected = logits(folder);
    const std::filesystem::path ours = scratch.path() / (std::string(file) + ".flm");
    convert_to_flm({.model = folder, .out = ours, .with_tokenizer = false});
    const std::filesystem::path theirs = TEST_DATA "/formats/" + std::string(file) + ".flm";
    for (const std::filesystem::path& flm : {theirs, ours}) {
      const Matrix<float> found = logits(flm);
      ASSERT_EQ(found.rows() * found.cols(), expected.rows() * expected.cols()) << flm;
      EXPECT_EQ(
          std::memcmp(found.data(), expected.data(), found.rows() * found.cols() * sizeof(float)),
          0)
          << flm;
    }
  }
}

TEST(FlmModel, HasHalfPrecisionAndTheConfigThatPythonPrinted) {
  const CourseModel file(TEST_DATA "/formats/story.flm");
  EXPECT_EQ(file.checkpoint.find("model.embed_tokens.weight")->dtype, DType::F16);
  EXPECT_EQ(file.checkpoint.find("model.norm.weight")->dtype, DType::F32);
  const Config& config = file.model.config;
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.dim, 16u);
  EXPECT_EQ(config.n_kv_heads, 2u);
  EXPECT_EQ(config.head_dim, 4u);  // "None"
  EXPECT_EQ(config.vocab_size, 700u);
  EXPECT_EQ(config.norm_eps, 1e-6f);
  EXPECT_EQ(config.rope.theta, 5000.0);
  EXPECT_EQ(config.rope.type, RopeConfig::Type::Linear);
  EXPECT_EQ(config.rope.factor, 2.0);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.eos_ids, (std::vector<TokenId>{2}));
}

}  // namespace
}  // namespace stagecraft
