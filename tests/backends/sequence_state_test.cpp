#include "backends/sequence_state.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

class SequenceStateTest : public testing::Test {
 protected:
  SequenceStateTest() { plan_.states = {{2, 3}}; }

  // A state of which every number is `value`.
  SequenceState filled(float value) const {
    SequenceState state(plan_);
    std::fill_n(state.data(0), 6, value);
    return state;
  }
  static std::vector<float> numbers(SequenceState& state) {
    return {state.data(0), state.data(0) + 6};
  }
  static std::vector<float> all(float value) { return std::vector<float>(6, value); }

  Plan plan_;
};

TEST_F(SequenceStateTest, ThatIsCutIsThatBeforeTheFirstToken) {
  SequenceState state = filled(1.0f);
  EXPECT_EQ(state.truncate(5, 7), 5u);
  EXPECT_EQ(state.truncate(5, 5), 5u);
  EXPECT_EQ(numbers(state), all(1.0f));
  EXPECT_EQ(state.truncate(5, 3), 0u);
  EXPECT_EQ(numbers(state), all(0.0f));
}

TEST_F(SequenceStateTest, IsCopiedWholeOrIsThatBeforeTheFirstToken) {
  SequenceState from = filled(2.0f), to = filled(1.0f);
  to.copy(from, 5);
  EXPECT_EQ(numbers(to), all(2.0f));
  to.copy(from, 0);
  EXPECT_EQ(numbers(to), all(0.0f));
}

TEST_F(SequenceStateTest, IsKnownBeforeTheFirstAndAfterTheLastToken) {
  EXPECT_TRUE(knows_states(plan_, 5, 5) && knows_states(plan_, 5, 0));
  EXPECT_FALSE(knows_states(plan_, 5, 3));
  EXPECT_TRUE(knows_states(Plan(), 5, 3));
}

TEST_F(SequenceStateTest, OfNothingIsCutAnywhere) {
  SequenceState none{Plan()};
  EXPECT_EQ(none.truncate(5, 3), 3u);
}

}  // namespace
}  // namespace stagecraft
