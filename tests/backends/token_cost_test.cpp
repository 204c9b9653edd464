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

}  // namespace
}  // namespace stagecraft
