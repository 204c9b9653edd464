#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "checkpoint/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const std::array<float, 6> weights = {1, 2, 3, 4, 5, 6};
  const std::array<std::uint16_t, 2> halves = {0x3c00, 0xbc00};
  const std::vector<StoredTensor> tensors = {
      {"weights", DType::F32, {2, 3}, std::as_bytes(std::span(weights))},
      {"halves", DType::F16, {2}, std::as_bytes(std::span(halves))},
      {"nothing", DType::F32, {0, 3}, {}},
  };
  write_safetensors(folder.file("file.safetensors"), tensors, {{"order", "[\"weights\"]"}});

  const SafetensorsFile file(folder.file("file.safetensors"));
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ((std::filesystem::file_size(folder.file("file.safetensors")) - 28) % 8, 0u)
      << "28 bytes of data do not begin 8-byte aligned";
  EXPECT_EQ(file.metadata().at("order"), "[\"weights\"]");
  for (const StoredTensor& expected : tensors) {
    const StoredTensor* found = file.find(expected.name);
    ASSERT_NE(found, nullptr) << expected.name;
    EXPECT_EQ(found->dtype, expected.dtype);
    EXPECT_EQ(found->shape, expected.shape);
    ASSERT_EQ(found->bytes.size(), expected.bytes.size());
    if (!expected.bytes.empty()) {
      EXPECT_EQ(std::memcmp(found->bytes.data(), expected.bytes.data(), expected.bytes.size()), 0);
    }
  }
  EXPECT_EQ(file.find("missing"), nullptr);
}

TEST(Safetensors, LeavesNoHalfWrittenFileWhereItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_safetensors(folder.file("no/such/folder.safetensors"), {}, {}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace stagecraft
