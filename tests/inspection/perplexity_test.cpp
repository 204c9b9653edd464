#include "inspection/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/usable_memory.h"
#include "checkpoint/safetensors.h"
#include "generation/text_memory.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/random_model.h"

namespace stagecraft {
namespace {

const std::string kModel = TEST_DATA "/models/llama-gqa2";
// The error of a surprisal is at most twice that of the logits, which may be 1.8e-5 (the tolerance
// of the trace of this model). Measured: 2.7e-6.
constexpr double kAllowed = 2 * 1.8e-5;

template <class T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) throw Error("no tensor {}", name);
  std::vector<T> copy;
  const auto all = elements(*tensor, copy);
  return {all.begin(), all.end()};
}

std::vector<TokenId> test_ids() {
  const SafetensorsFile file(TEST_DATA "/perplexity/windows.safetensors");
  const auto ids = values<std::int64_t>(file, "ids");
  return {ids.begin(), ids.end()};
}

// The tensors are called nats.CONTEXT.STRIDE.
TEST(Perplexity, EachTokenCostsWhatItCostsInPyTorchWindowByWindow) {
  const SafetensorsFile file(TEST_DATA "/perplexity/windows.safetensors");
  const std::vector<TokenId> ids = test_ids();
  Engine model = textbook_engine(kModel);
  std::size_t compared = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    Windows windows;
    if (std::sscanf(tensor.name.c_str(), "nats.%zu.%zu", &windows.context, &windows.stride) != 2) {
      continue;
    }
    const auto expected = values<double>(file, tensor.name);
    const std::vector<double> got = surprisals(model, ids, windows);
    ASSERT_EQ(got.size(), expected.size()) << tensor.name;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], kAllowed) << tensor.name << ", token " << i + 1;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 5u);
}

TEST(Perplexity, TheBitsDependOnNoThreadsAndOnNoPasses) {
  const TemporaryFolder folder;
  write_random_model(folder.path());
  Engine model = textbook_engine(folder.path());
  std::vector<TokenId> ids(300);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 7919 % 515);
  const auto one = surprisals(model, ids, {200, 70});  // a window takes more than one pass
  model.use_threads(3);
  EXPECT_EQ(one, surprisals(model, ids, {200, 70}));
  // The first window does not depend on the stride.
  const auto other = surprisals(model, ids, {200, 199});
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 199, other.begin()));
  EXPECT_NE(one[250], other[250]);
}

TEST(Perplexity, CountsEachTokenOnceWhateverTheWindows) {
  Engine model = textbook_engine(kModel);
  const std::vector<TokenId> ids = test_ids();
  for (std::size_t n = 2; n <= 12; ++n) {
    for (std::size_t context = 2; context <= 9; ++context) {
      for (std::size_t stride = 1; stride < context; ++stride) {
        const std::span<const TokenId> text(ids.data(), n);
        EXPECT_EQ(surprisals(model, text, {context, stride}).size(), n - 1);
      }
    }
  }
}

TEST(Perplexity, SaysHowFarItIsAndStopsWhenAsked) {
  Engine model = textbook_engine(kModel);
  std::vector<std::size_t> seen;
  const auto all = surprisals(model, test_ids(), {8, 4}, [&](std::size_t scored) {
    seen.push_back(scored);
    return scored < 20;
  });
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), all.size());
  EXPECT_EQ(all.size(), 23u);  // 7, then 4 per window
}

TEST(Perplexity, RefusesWindowsAndTextsThatGiveNothing) {
  Engine model = textbook_engine(kModel);
  const std::vector<TokenId> ids = test_ids();
  EXPECT_THROW(surprisals(model, ids, {8, 0}), Error);
  EXPECT_THROW(surprisals(model, ids, {8, 8}), Error);
  EXPECT_THROW(surprisals(model, ids, {0, 0}), Error);
  EXPECT_THROW(surprisals(model, {ids.data(), 1}, {8, 4}), Error);
  EXPECT_THROW(surprisals(model, std::vector<TokenId>{1, 65, 2}, {8, 4}), Error);
  EXPECT_THROW(surprisals(model, std::vector<TokenId>{1, 65}, {8, 4}), Error);  // only scored
  EXPECT_THROW(surprisals(model, std::vector<TokenId>{1, -1}, {8, 4}), Error);
}

TEST(Perplexity, SaysThatAWindowDoesNotFitIntoMemory) {
  Engine model = textbook_engine(kModel);
  const double a_token = session_bytes(model.plan(), model.options(), 2000) -
                         session_bytes(model.plan(), model.options(), 1999);
  const double too_many = usable_memory() / a_token + 1;
  if (usable_memory() == 0.0 || too_many > 50e6) GTEST_SKIP() << "too much memory to exceed it";
  const std::vector<TokenId> ids(static_cast<std::size_t>(too_many), 1);
  const std::string error = error_of([&] { surprisals(model, ids, {ids.size(), 1}); });
  EXPECT_TRUE(error.starts_with("context: expected at most ")) << error;
  EXPECT_TRUE(error.ends_with(fmt::format(" GB of memory), found {}", ids.size()))) << error;
}

}  // namespace
}  // namespace stagecraft
