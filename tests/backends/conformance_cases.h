#pragma once

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/engine.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"
#include "operators/kernels/kernels.h"
#include "tensor/matrix.h"
#include "tests/backends/plan_oracle.h"

namespace stagecraft {

// One kind of step in the smallest plan that shows its result: the input is rows of an embedding,
// the output goes through an identity matrix to the logits.
struct ConformanceCase {
  std::string step;   // "linear"
  std::string shape;  // "33 -> 96, bias", for people
  Plan plan;
  std::vector<TokenId> tokens;
};

// The names of all kinds of steps that make_case knows.
const std::vector<std::string>& conformance_steps();
// Whether the step keeps keys and values, whose number format matters.
bool has_cache(const std::string& step);
// Whether the step has a weight whose number format matters.
bool has_typed_weight(const std::string& step);

// A number format of a cache, and how it rounds keys and values. name: in the table that is
// printed.
struct CacheFormat {
  DType name;
  KvType type;
  WeightLayout layout;  // of the CPU backend
  CacheNumbers on_cpu;
  std::optional<CacheNumbers> on_gpu;  // empty: no GPU has it
};
// Null if no cache has this format.
const CacheFormat* cache_format(DType name);

// A case of random shape and its checkpoint, written to `file`, with the step's weights in `dtype`.
// Four successive indices have every feature: with and without bias, small and large.
ConformanceCase make_case(const std::string& step, DType dtype, std::size_t index,
                          std::mt19937& random, const std::filesystem::path& file);

// All logits of the case on a backend. The text is cut into random passes, and there may be gaps
// between the rows of logits. If a pass writes into a gap, the last logit of the row is NaN.
using Logits = std::vector<float>;
using RunPass = std::function<void(std::span<const TokenId> tokens, MatrixView<float> logits)>;
Logits in_cuts(const ConformanceCase& one, std::mt19937& random, const RunPass& pass);

}  // namespace stagecraft
