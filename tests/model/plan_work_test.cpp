#include "model/plan_work.h"

#include <gtest/gtest.h>

#include "checkpoint/model_source.h"
#include "model/description.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

TEST(PlanWork, CountsTheChosenExpertsAlone) {
  const Plan plan = describe_model(ModelSource(kModels + "mixtral-2-of-5")).plan;
  std::size_t n_experts_steps = 0;
  for (const Step& step : plan.steps) {
    const auto* experts = std::get_if<ExpertsStep>(&step.kind);
    if (experts == nullptr) continue;
    ++n_experts_steps;
    const Work work = work_per_token(plan, step.kind, 10);
    const double numbers = 2.0 * 3.0 * static_cast<double>(plan.buffer(experts->in).width) *
                           static_cast<double>(expert_width(plan, *experts));
    EXPECT_DOUBLE_EQ(work.numbers_read, numbers);
    EXPECT_DOUBLE_EQ(work.operations, 2.0 * numbers);
  }
  EXPECT_GT(n_experts_steps, 0u);
}

TEST(PlanWork, OfAttentionGrowsUpToTheWindow) {
  const Plan plan = describe_model(ModelSource(kModels + "mixtral-window4")).plan;
  for (const Step& step : plan.steps) {
    const auto* attention = std::get_if<AttentionStep>(&step.kind);
    if (attention == nullptr) continue;
    const auto operations = [&](std::size_t kv_len) {
      return work_per_token(plan, step.kind, kv_len).operations;
    };
    const auto q_dim =
        static_cast<double>(attention->n_heads * plan.cache(attention->cache).head_dim);
    EXPECT_DOUBLE_EQ(operations(1), 4.0 * q_dim);
    EXPECT_DOUBLE_EQ(operations(3), 12.0 * q_dim);
    EXPECT_DOUBLE_EQ(operations(4), operations(100));
  }
}

}  // namespace
}  // namespace stagecraft
