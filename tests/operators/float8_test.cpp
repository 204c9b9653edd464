// Every byte must give the same float as with PyTorch (reference/make_formats.py).
#include "operators/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {
namespace {

TEST(Float8, GivesTheNumbersOfPyTorchForEveryByte) {
  const SafetensorsFile file(TEST_DATA "/formats/float8.safetensors");
  const StoredTensor* tensor = file.find("F8_E4M3");
  ASSERT_NE(tensor, nullptr);
  std::vector<float> copy, found(256);
  const auto expected = elements(*tensor, copy);
  ASSERT_EQ(expected.size(), 256u);
  std::vector<std::byte> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  f8_e4m3_to_f32(bytes, found);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << i;
    } else {
      EXPECT_EQ(std::memcmp(&found[i], &expected[i], sizeof(float)), 0)
          << i << ": expected " << expected[i] << ", found " << found[i];
    }
  }
}

TEST(Float8, RefusesAnotherSize) {
  std::vector<std::byte> bytes(3);
  std::vector<float> out(2);
  EXPECT_THROW(f8_e4m3_to_f32(bytes, out), Error);
}

}  // namespace
}  // namespace stagecraft
