#include "backends/cpu/token_cost.h"

#include <gtest/gtest.h>

#include "backends/cpu/packed_weights.h"
#include "checkpoint/model_source.h"
#include "model/description.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

TEST(TokenCost, BytesAreThoseOfThePackedWeights) {
  for (const std::string& name : tiny_model_names()) {
    const ModelSource model(kModels + name);
    const Checkpoint checkpoint = Checkpoint::open(model);
    const Plan plan = describe_model(model).plan;
    EXPECT_EQ(token_cost(plan, checkpoint).bytes,
              static_cast<double>(packed_bytes(plan, checkpoint).per_token))
        << name;
  }
}

// The first layer, and of the last one only keys and values.
TEST(TokenCost, OperationsAreThoseOfEachTokenOfAPrompt) {
  const ModelSource model(kModels + "llama-gqa2");
  const TokenCost cost = token_cost(describe_model(model).plan, Checkpoint::open(model));
  constexpr double kDim = 24, kKv = 12, kFfn = 37;
  const double keys_and_values = 2 * kDim * kKv;
  EXPECT_EQ(cost.operations,
            2 * (2 * kDim * kDim + keys_and_values + 3 * kDim * kFfn + keys_and_values));
  EXPECT_EQ(cost.rows, ActivationType::F32);
}

// Two layers of two heads, 6 numbers per key and value. 64 positions are stored together. A panel
// has 32 numbers per input: 2 panels of 6 keys' inputs, and 1 of 64 positions for values.
TEST(TokenCost, ATokenReadsTheKeysAndValuesOfItsText) {
  const Plan plan = describe_model(ModelSource(kModels + "llama-gqa2")).plan;
  const double chunk = 2 * 2 * 32 * (2 * 6 + 64);
  EXPECT_EQ(attended_bytes(plan, KvType::F16, 64), 2 * chunk);
  EXPECT_EQ(attended_bytes(plan, KvType::F32, 65), 4 * 2 * chunk);
}

TEST(TokenCost, ALayerReadsNoMoreThanItsWindow) {
  Plan plan = describe_model(ModelSource(kModels + "llama-gqa2")).plan;
  const double all = attended_bytes(plan, KvType::F16, 640);
  for (Step& step : plan.steps) {
    if (auto* attention = std::get_if<AttentionStep>(&step.kind)) attention->window = 64;
  }
  EXPECT_EQ(attended_bytes(plan, KvType::F16, 640), all / 10);
}

}  // namespace
}  // namespace stagecraft
