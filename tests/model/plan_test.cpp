#include "model/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/plan_text.h"
#include "model/plan_writer.h"

namespace stagecraft {
namespace {

// y = linear(x), x += scale * y; then z = linear(y or x), which is the result.
class PlanOfASum : public testing::Test {
 protected:
  PlanOfASum() {
    PlanWriter w(plan_);
    x_ = w.buffer("x", 4);
    y_ = w.buffer("y", 4);
    z_ = w.buffer("z", 4);
    plan_.logits = z_;
  }
  void write(float scale, BufferId read_last) {
    PlanWriter w(plan_);
    plan_.steps.clear();
    w.step("y", LinearStep{y_, x_, 0});
    AddStep add{x_, y_};
    add.scale = scale;
    w.step("x", add);
    w.step("z", LinearStep{z_, read_last, 0});
  }

  Plan plan_;
  BufferId x_ = kNone, y_ = kNone, z_ = kNone;
};

TEST_F(PlanOfASum, MayAddAResultAtOnceWhereNobodyReadsItLater) {
  write(1.0f, x_);
  EXPECT_EQ(sum_after(plan_, 1, y_), std::get_if<AddStep>(&plan_.steps[1].kind));
  EXPECT_EQ(sum_after(plan_, 0, y_), nullptr);  // no sum
  EXPECT_EQ(sum_after(plan_, 3, y_), nullptr);  // no step
  EXPECT_EQ(sum_after(plan_, 1, x_), nullptr);  // another result
  write(1.0f, y_);
  EXPECT_EQ(sum_after(plan_, 1, y_), nullptr);
  write(0.5f, x_);
  EXPECT_EQ(sum_after(plan_, 1, y_), nullptr);
}

TEST_F(PlanOfASum, IsReadUntilItIsWrittenAgainAndAtTheEndIfItIsTheResult) {
  write(1.0f, x_);
  EXPECT_TRUE(is_read_after(plan_, 0, x_));  // a sum reads what it adds to
  EXPECT_TRUE(is_read_after(plan_, 0, y_));
  EXPECT_FALSE(is_read_after(plan_, 1, y_));
  EXPECT_FALSE(is_read_after(plan_, 2, x_));
  EXPECT_TRUE(is_read_after(plan_, 2, z_));   // by the caller
  EXPECT_FALSE(is_read_after(plan_, 0, z_));  // it is written first
}

TEST(PlanText, ShowsTheFirstLinesInWhichTwoPlansDiffer) {
  const auto differ = [](const char* expected, const char* found) {
    const LineDifference lines = first_difference(expected, found);
    return lines.expected + " | " + lines.found;
  };
  EXPECT_EQ(differ("a\nb\n", "a\nc\n"), "b | c");
  EXPECT_EQ(differ("a\n", "a\nb\n"), "the end | b");
  EXPECT_EQ(differ("a\nb\n", "a\n"), "b | the end");
}

TEST(PlanWriter, ABiasHasNoColumns) {
  Plan plan;
  PlanWriter w(plan);
  const BufferId in = w.buffer("in", 3), out = w.buffer("out", 2);
  const Storage columns{.first_input = 4, .of_inputs = 7};
  w.linear("y", out, in, "y_proj", true, columns);
  EXPECT_EQ(plan.weight(0).stored.of_inputs, 7u);
  EXPECT_EQ(plan.weight(1).name, "y_proj.bias");
  EXPECT_EQ(plan.weight(1).stored.first_input, 0u);
  EXPECT_EQ(plan.weight(1).stored.of_inputs, 0u);
}

TEST(PlanWriter, RefusesARoutingThatNoBackendCanCompute) {
  Plan plan;
  PlanWriter w(plan);
  const BufferId x = w.buffer("x", 4);
  EXPECT_NO_THROW(w.step("x", RouteStep{.x = x, .n_chosen = 4}));
  EXPECT_THROW(w.step("x", RouteStep{.x = x, .n_chosen = 5}), Error);
  EXPECT_THROW(w.step("x", RouteStep{.x = x, .n_chosen = 1, .groups = {.n = 3}}), Error);
}

}  // namespace
}  // namespace stagecraft
