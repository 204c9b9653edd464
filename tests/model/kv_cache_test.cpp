#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/error_of.h"

namespace stagecraft {
namespace {

class KvCacheTest : public testing::Test {
 protected:
  // Appends rows of these numbers to layer 1, as keys; the values are their negatives.
  void append(const std::vector<float>& numbers, std::size_t width = 2) {
    const std::size_t rows = numbers.size() / width;
    std::vector<float> negative;
    for (const float number : numbers) negative.push_back(-number);
    cache_.append(1, {numbers.data(), rows, width}, {negative.data(), rows, width});
  }

  static constexpr std::array<std::size_t, 2> kWidths = {1, 2};
  KvCache cache_{kWidths, 3};
};

TEST_F(KvCacheTest, KeepsRowsInTheirOrderAndWritesAfterTheLastThatCounts) {
  append({1, 2, 3, 4});
  EXPECT_EQ(cache_.length(), 0u);  // the other layers have none yet
  cache_.advance(2);
  append({5, 6});
  EXPECT_EQ(cache_.keys(1, 3).row(1)[0], 3.0f);
  EXPECT_EQ(cache_.keys(1, 3).row(2)[1], 6.0f);
  EXPECT_EQ(cache_.values(1, 3).row(2)[0], -5.0f);
  cache_.truncate(1);
  append({7, 8});
  EXPECT_EQ(cache_.keys(1, 2).row(0)[1], 2.0f);
  EXPECT_EQ(cache_.keys(1, 2).row(1)[0], 7.0f);
}

TEST_F(KvCacheTest, IsNeverMadeLongerByACut) {
  append({1, 2, 3, 4});
  cache_.advance(2);
  cache_.truncate(3);
  EXPECT_EQ(cache_.length(), 2u);
}

TEST_F(KvCacheTest, RefusesMoreThanItsCapacityAndOtherWidths) {
  append({1, 2, 3, 4});
  cache_.advance(2);
  EXPECT_EQ(error_of([&] {
              append({1, 2, 3, 4});
            }),
            "kv cache: expected at most 1 more positions, found 2");
  EXPECT_EQ(error_of([&] {
              append({1, 2, 3}, 3);
            }),
            "kv cache: keys: expected [1, 2], found [1, 3]");
  EXPECT_EQ(cache_.length(), 2u);
}

}  // namespace
}  // namespace stagecraft
