// The options of an engine.
#include "backends/engine.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

TEST(EngineOptions, TheLayersOfTheCourseKeepKeysAndValuesAsF32) {
  const ModelSource model(kModels + "llama-attention-bias");
  for (const BackendKind kind : {BackendKind::Walker, BackendKind::Textbook}) {
    EXPECT_EQ(Engine::open(model, {kind, 1}).options().kv_type, KvType::F32);
    EXPECT_EQ(Engine::open(model, {kind, 1, KvType::F32}).options().kv_type, KvType::F32);
    EXPECT_EQ(error_of([&] {
                Engine::open(model, {kind, 1, KvType::Q8_0});
              }),
              "kv_type: expected f32 (the only type of the layers of the course), found q8_0");
  }
}

TEST(EngineOptions, GpuLayersNeedAGpu) {
  const ModelSource model(kModels + "llama-attention-bias");
  for (const BackendKind kind : {BackendKind::Walker, BackendKind::Textbook, BackendKind::Cpu}) {
    EXPECT_EQ(
        error_of([&] { Engine::open(model, {.backend = kind, .n_threads = 1, .gpu_layers = 1}); }),
        "GPU layers: expected the backend for CUDA, found another backend");
  }
}

}  // namespace
}  // namespace stagecraft
