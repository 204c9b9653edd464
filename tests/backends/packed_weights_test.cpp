#include "backends/cpu/packed_weights.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backends/engine.h"
#include "checkpoint/model_source.h"
#include "tests/support/error_of.h"

namespace {

std::atomic<std::size_t> refused_size{0};  // `new` of exactly this many bytes fails; 0: none fails

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return size == refused_size ? nullptr : std::malloc(size != 0 ? size : 1);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Not inline: GCC would see that `free` gets memory of `new`, and warn.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace stagecraft {
namespace {

// Tensors that the files of a model store in another order or form are copied when the model is
// opened. Packed weights no longer need these copies.

struct Copied {
  const char* model;
  std::size_t tables;  // bytes that are kept: a token reads one of their rows
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

// GPT-2 stores its matrices transposed. A thread copies up to 32 rows at a time to transpose them:
// here all 29 rows of a matrix of the MLP.
TEST(PackedWeights, MemoryThatAThreadCannotGetIsAnErrorOfTheEngine) {
  const std::string model = TEST_DATA "/models/gpt2-scale-by-layer";
  for (const std::size_t n_threads : {1, 2, 3}) {
    refused_size = 29 * 18 * sizeof(float);
    const std::string error = error_of([&] { Engine::open(model, {.n_threads = n_threads}); });
    refused_size = 0;
    EXPECT_EQ(error, model + "/model.safetensors: the weights need more memory than is available");
    EXPECT_EQ(error_of([&] { Engine::open(model, {.n_threads = n_threads}); }), "");
  }
}

}  // namespace
}  // namespace stagecraft
