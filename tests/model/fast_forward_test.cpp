// The fast layers against PyTorch and against themselves, with the kernels of every instruction set
// that this processor runs.
#include "model/fast_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/json.h"
#include "generation/trace_file.h"
#include "model/model.h"
#include "tests/support/random_model.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(TEST_DATA "/models")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<const char*> isa_names() {
  std::vector<const char*> names;
  for (const Kernels* table : runnable_kernels()) names.push_back(table->name);
  return names;
}

const Kernels& kernels_of(std::string_view isa) {
  for (const Kernels* table : runnable_kernels()) {
    if (table->name == isa) return *table;
  }
  throw Error("no kernels '{}'", isa);
}

// All logits of a text that is computed in passes of these lengths.
Matrix<float> logits_of(const Model& model, const Kernels& table, std::span<const TokenId> ids,
                        std::vector<std::size_t> passes, std::size_t n_threads,
                        Form cache_form = Form::F32) {
  PanelCache cache(model.config, ids.size(), cache_form);
  FastWorkspace workspace(model.config, table, ids.size(), n_threads);
  Matrix<float> logits(ids.size(), model.config.vocab_size);
  for (const std::size_t n : passes) {
    const std::size_t first = cache.length();
    const SequenceTokens one{&cache, ids.subspan(first, n), n};
    fast_forward(model.config, *model.packed, {&one, 1}, workspace,
                 logits.view().row_range(first, n));
  }
  return logits;
}

bool same_bits(const Matrix<float>& a, const Matrix<float>& b) {
  return std::memcmp(a.data(), b.data(), a.rows() * a.cols() * sizeof(float)) == 0;
}

using Case = std::tuple<std::string, const char*>;

class FastReference : public testing::TestWithParam<Case> {};

TEST_P(FastReference, LogitsAgreeWithPyTorchWhateverThePassesAndThreads) {
  const auto& [name, isa] = GetParam();
  const fs::path folder = fs::path(TEST_DATA "/models") / name;
  const Model model = Model::open(folder, Layers::Fast, 2);
  const TraceFile oracle(folder / "trace.safetensors");
  const StoredTensor& stored = oracle.tensor("ids");
  std::vector<std::int64_t> wide(stored.bytes.size() / sizeof(std::int64_t));
  std::memcpy(wide.data(), stored.bytes.data(), stored.bytes.size());
  const std::vector<TokenId> ids(wide.begin(), wide.end());
  const Json tolerances = parse_json(oracle.metadata().at("tolerance"), "tolerance");

  const Matrix<float> whole = logits_of(model, kernels_of(isa), ids, {ids.size()}, 1);
  const StoredTensor& expected = oracle.tensor("logits");
  const StoredTensor got{"logits", DType::F32, expected.shape,
                         std::as_bytes(std::span(whole.data(), whole.rows() * whole.cols()))};
  const Comparison result =
      compare_tensors(expected, got, {0.0, tolerances.at("logits").get<double>()});
  EXPECT_EQ(result.nan_a + result.nan_b, 0u);
  EXPECT_EQ(result.differing, 0u) << "off by " << result.worst.size();

  for (std::size_t first = 1; first < ids.size(); ++first) {
    EXPECT_TRUE(same_bits(
        whole, logits_of(model, kernels_of(isa), ids, {first, ids.size() - first}, 1 + first % 3)))
        << first;
  }
  EXPECT_TRUE(same_bits(
      whole, logits_of(model, kernels_of(isa), ids, std::vector<std::size_t>(ids.size(), 1), 2)));
}

INSTANTIATE_TEST_SUITE_P(EveryModel, FastReference,
                         testing::Combine(testing::ValuesIn(model_names()),
                                          testing::ValuesIn(isa_names())),
                         [](const auto& parameter) {
                           std::string name =
                               std::get<0>(parameter.param) + "_" + std::get<1>(parameter.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace stagecraft
