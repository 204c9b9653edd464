#include "model/plan_split.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/model_source.h"
#include "model/description.h"
#include "model/plan_text.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

Plan plan_of(const std::string& name) { return describe_model(ModelSource(kModels + name)).plan; }

std::vector<std::size_t> possible(const Plan& plan) {
  std::vector<std::size_t> counts;
  for (std::size_t n = 0; n <= plan.n_layers + 1; ++n) {
    if (can_split(plan, n)) counts.push_back(n);
  }
  return counts;
}

TEST(PlanSplit, EachStepWeightCacheAndStateIsInOnePart) {
  for (const std::string& name : tiny_model_names()) {
    const Plan plan = plan_of(name);
    EXPECT_EQ(std::ranges::count(weights_of_steps(plan), false), 0) << name;
    EXPECT_EQ(row_input(plan), kNone) << name;
    for (const std::size_t n : possible(plan)) {
      const auto [front, back] = split_plan(plan, n);
      // The front has one more step, which copies its rows; the back has one more, which reads
      // rows.
      EXPECT_EQ(front.steps.size() + back.steps.size(), plan.steps.size() + 2) << name;
      EXPECT_EQ(row_input(front), kNone) << name;
      EXPECT_EQ(back.buffer(row_input(back)).width, front.buffer(front.logits).width) << name;
      const auto in_front = weights_of_steps(front), in_back = weights_of_steps(back);
      for (std::size_t id = 0; id < plan.weights.size(); ++id) {
        EXPECT_NE(in_front[id], in_back[id]) << name << ": " << plan.weights[id].name;
      }
      for (std::size_t id = 0; id < plan.caches.size(); ++id) {
        EXPECT_EQ(front.caches[id].width() + back.caches[id].width(), plan.caches[id].width());
        EXPECT_EQ(front.caches[id].width() * back.caches[id].width(), 0u) << name;
      }
      for (std::size_t id = 0; id < plan.states.size(); ++id) {
        EXPECT_EQ(front.states[id].rows + back.states[id].rows, plan.states[id].rows) << name;
        EXPECT_EQ(front.states[id].rows * back.states[id].rows, 0u) << name;
      }
      for (const Step& step : front.steps) EXPECT_LT(step.layer, int(plan.n_layers - n)) << name;
      for (const Step& step : back.steps) {
        EXPECT_TRUE(step.layer == kNone || step.layer >= int(plan.n_layers - n)) << name;
      }
    }
  }
}

TEST(PlanSplit, IsPossibleWhereOneBufferGoesOnAndNoCacheIsShared) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(possible(plan_of("lfm2-biases")), (Counts{1, 2}));
  EXPECT_EQ(possible(plan_of("gemma4-keys-as-values")), (Counts{1, 2, 3}));
  // A second buffer, with numbers per token and layer, would also have to pass from the front to
  // the back.
  EXPECT_EQ(possible(plan_of("gemma4-shared-caches")), Counts{});
  EXPECT_THROW(split_plan(plan_of("gemma4-shared-caches"), 2), Error);

  // Changes the plan so that the last layer reads the keys of the layer before it.
  Plan shared = plan_of("smollm3-four-layers");
  EXPECT_EQ(possible(shared), (Counts{1, 2, 3}));
  for (Step& step : shared.steps) {
    auto* attention = std::get_if<AttentionStep>(&step.kind);
    if (attention != nullptr && step.layer == 3) --attention->cache;
  }
  EXPECT_EQ(possible(shared), (Counts{2, 3}));
}

TEST(PlanSplit, ReadsLikeTheModel) {
  const auto [front, back] = split_plan(plan_of("llama-gqa2"), 1);
  const std::string first = plan_text(front), second = plan_text(back);
  EXPECT_TRUE(first.ends_with("\n  x        += o\nrows     = x\n")) << first;
  EXPECT_TRUE(second.starts_with("x        = rows given by the caller\nlayer 1\n")) << second;
}

}  // namespace
}  // namespace stagecraft
