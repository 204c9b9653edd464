#include "checkpoint/convert_tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"

namespace stagecraft {
namespace {

// Enough for more than one piece (see convert_tensor.cpp) for each of three threads. The last piece
// is not full.
constexpr std::size_t kRows = 500, kColumns = 1024;

std::vector<float> numbers() {
  std::vector<float> numbers(kRows * kColumns);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 8191) / 64;
  return numbers;
}

StoredTensor tensor_of(const std::vector<float>& numbers) {
  return {.name = "w",
          .dtype = DType::F32,
          .shape = {kRows, kColumns},
          .bytes = std::as_bytes(std::span(numbers))};
}

std::vector<std::byte> converted(const StoredTensor& tensor, DType dtype, std::size_t n_threads) {
  std::vector<std::byte> bytes;
  ThreadPool threads(n_threads);
  convert_tensor(
      tensor, dtype, "file",
      [&](std::span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      },
      &threads);
  return bytes;
}

TEST(ConvertTensor, GivesTheSameBytesForAnyNumberOfThreads) {
  const std::vector<float> values = numbers();
  for (const DType dtype : {DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
    const auto one = converted(tensor_of(values), dtype, 1);
    EXPECT_EQ(one.size(), bytes_as(tensor_of(values), dtype));
    for (const std::size_t n_threads : {2, 3, 64}) {
      EXPECT_EQ(one, converted(tensor_of(values), dtype, n_threads)) << dtype_name(dtype);
    }
  }
}

TEST(ConvertTensor, NamesTheFirstElementThatDoesNotFitForAnyNumberOfThreads) {
  std::vector<float> values = numbers();
  values[70'000] = 1e6f;   // in the second piece
  values[140'000] = 1e7f;  // in the third
  for (const std::size_t n_threads : {1, 3}) {
    try {
      converted(tensor_of(values), DType::F16, n_threads);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "file: tensor 'w': element 70000: expected a number that "
                   "F16 can hold, found 1000000");
    }
  }
}

}  // namespace
}  // namespace stagecraft
