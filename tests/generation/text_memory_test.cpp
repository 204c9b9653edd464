#include "generation/text_memory.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(DefaultContext, IsThatOfTheModelUpTo4096) {
  Plan plan;
  for (const auto& [of_model, expected] :
       {std::pair{9u, 9u}, {4096u, 4096u}, {4097u, 4096u}, {131'072u, 4096u}}) {
    plan.max_seq_len = of_model;
    EXPECT_EQ(default_context(plan), expected);
  }
}

}  // namespace
}  // namespace stagecraft
