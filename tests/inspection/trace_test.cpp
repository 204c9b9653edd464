#include "inspection/trace.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/safetensors_writer.h"
#include "inspection/trace_file.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

using Passes = std::vector<std::size_t>;

std::vector<Activation> trace_tiny(const std::string& name, std::vector<TokenId> ids,
                                   const Passes& passes) {
  Engine engine = walker_engine(kModels + name);
  return trace(engine, ids, passes);
}

TEST(Trace, GivesEveryActivationItsShape) {
  const auto activations = trace_tiny("qwen3-qk-norm", {1, 2, 3}, {3});
  const auto shape = [&](std::string_view name) {
    for (const Activation& a : activations) {
      if (a.name == name) return a.shape;
    }
    return std::vector<std::size_t>();
  };
  // 24 wide, 4 heads of 8 over 2 key heads, 37 inside the feed-forward block, 65 tokens.
  EXPECT_EQ(shape("embedding"), (std::vector<std::size_t>{3, 24}));
  EXPECT_EQ(shape("layers.0.q"), (std::vector<std::size_t>{3, 32}));
  EXPECT_EQ(shape("layers.0.k_norm"), (std::vector<std::size_t>{3, 16}));
  EXPECT_EQ(shape("layers.1.attn_probs"), (std::vector<std::size_t>{4, 3, 3}));
  EXPECT_EQ(shape("layers.1.swiglu"), (std::vector<std::size_t>{3, 37}));
  EXPECT_EQ(shape("logits"), (std::vector<std::size_t>{3, 65}));
}

TEST(Trace, FillsTheProbabilitiesOfKeysThatDidNotExistYetWithZeros) {
  const auto activations = trace_tiny("llama-gqa2", {1, 2, 3, 4}, {1, 1, 2});
  for (const Activation& a : activations) {
    if (!a.name.ends_with("attn_probs")) continue;
    for (std::size_t head = 0; head < 4; ++head) {
      for (std::size_t query = 0; query < 4; ++query) {
        const auto row = a.values.view().row(head * 4 + query);
        float sum = 0.0f;
        for (std::size_t key = 0; key <= query; ++key) sum += row[key];
        EXPECT_NEAR(sum, 1.0f, 1e-6f);
        for (std::size_t key = query + 1; key < 4; ++key) EXPECT_EQ(row[key], 0.0f);
      }
    }
  }
}

TEST(Trace, RefusesPassesThatDoNotAddUp) {
  EXPECT_THROW(trace_tiny("llama-mha", {1, 2, 3}, {2}), Error);
  EXPECT_THROW(trace_tiny("llama-mha", {1, 2, 3}, {2, 2}), Error);
  EXPECT_THROW(trace_tiny("llama-mha", {1, 2, 3}, {3, 0}), Error);
}

TEST(Trace, RefusesATextWhoseAttentionDoesNotFitIntoTheMemory) {
  const std::vector<TokenId> ids(std::size_t{1} << 20, 1);
  const std::string error = error_of([&] { trace_tiny("llama-mha", ids, {ids.size()}); });
  EXPECT_TRUE(error.starts_with("text: expected one that needs at most ")) << error;
}

TEST(Trace, RefusesIdsOutsideTheVocabulary) {
  EXPECT_THROW(trace_tiny("llama-mha", {1, 65}, {2}), Error);
  EXPECT_THROW(trace_tiny("llama-mha", {-1}, {1}), Error);
}

TEST(Trace, IsReadBackFromItsFileBitForBit) {
  const auto activations = trace_tiny("llama-mha", {1, 2, 3}, {3});
  const TemporaryFolder folder;
  write_trace(folder.file("t.safetensors"), activations);
  const TraceFile file(folder.file("t.safetensors"));
  ASSERT_EQ(file.order().size(), activations.size());
  for (std::size_t i = 0; i < activations.size(); ++i) {
    EXPECT_EQ(file.order()[i], activations[i].name);
    const StoredTensor stored = activations[i].stored();
    EXPECT_EQ(file.tensor(stored.name).shape, stored.shape);
    EXPECT_EQ(compare_tensors(file.tensor(stored.name), stored, {0.0, 0.0}).differing, 0u);
  }
}

TEST(TraceFile, RefusesAnOrderThatIsNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.safetensors");
  for (const char* order : {"", "{}", "[]", "[1]", "[\"a\", \"a\"]", "[\"a\""}) {
    write_safetensors(path, {}, {{"order", order}});
    EXPECT_THROW(TraceFile{path}, Error) << order;
  }
}

TEST(PlaceInTrace, SaysWhatEachIndexMeans) {
  const std::vector<std::size_t> probabilities = {4, 7, 7};
  EXPECT_EQ(place_in_trace("layers.1.attn_probs", probabilities, (3 * 7 + 6) * 7 + 2, 6),
            "layer 1, head 3, query 6, key 2");
  const std::vector<std::size_t> q = {7, 24};
  EXPECT_EQ(place_in_trace("layers.0.q_rope", q, 2 * 24 + 13, 6),
            "layer 0, head 2, position 2, index 1 of the head");
  EXPECT_EQ(place_in_trace("layers.0.q_rope", q, 2 * 24 + 13, 0), "layer 0, position 2, index 13");
  EXPECT_EQ(place_in_trace("layers.12.down", q, 3 * 24 + 5, 6), "layer 12, position 3, index 5");
  EXPECT_EQ(place_in_trace("logits", q, 24, 6), "position 1, token 0");
  EXPECT_EQ(place_in_trace("final_norm", q, 23, 6), "position 0, index 23");
}

TEST(PlaceInTrace, FallsBackToTheIndexOfATensorItDoesNotKnow) {
  const std::vector<std::size_t> shape = {2, 3, 4, 5};
  EXPECT_EQ(place_in_trace("layers.x.q", shape, 119, 0), "index [1, 2, 3, 4]");
  const std::vector<std::size_t> vector = {9};
  EXPECT_EQ(place_in_trace("layers.0", vector, 8, 0), "index [8]");
}

}  // namespace
}  // namespace stagecraft
