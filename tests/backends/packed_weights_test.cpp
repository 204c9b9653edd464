// What a model's files store in another order or form is copied when it is opened. Packed weights
// need the copies no longer.
#include "backends/cpu/packed_weights.h"

#include <gtest/gtest.h>

#include "backends/engine.h"
#include "checkpoint/model_source.h"

namespace stagecraft {
namespace {

struct Copied {
  const char* model;
  std::size_t tables;  // bytes that stay: a token reads a row of them
};
void PrintTo(const Copied& copied, std::ostream* out) { *out << copied.model; }

class CopiedTensors : public testing::TestWithParam<Copied> {};

TEST_P(CopiedTensors, AreGivenBackOnceTheyArePacked) {
  const ModelSource model = std::string(TEST_DATA "/") + GetParam().model;
  EXPECT_GT(Checkpoint::open(model).copied_bytes(), GetParam().tables);
  for (const std::size_t n_threads : {1, 2}) {
    const Engine engine = Engine::open(model, {.n_threads = n_threads});
    EXPECT_EQ(engine.checkpoint().copied_bytes(), GetParam().tables) << n_threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(PackedWeights, CopiedTensors,
                         testing::Values(Copied{"gguf/llama-gqa2.gguf", 0},    // rows of q and k
                                         Copied{"gguf/gemma-tied.gguf", 0},    // norms
                                         Copied{"formats/llama2c-v0.bin", 0},  // rows of q and k
                                         Copied{"formats/llama2c-v2.bin",
                                                65 * 24 * 4},  // all, the embedding too
                                         Copied{"formats/quantized/gptq", 0},  // matrices in parts
                                         Copied{"formats/quantized/fp8-blocks", 0}));

}  // namespace
}  // namespace stagecraft
