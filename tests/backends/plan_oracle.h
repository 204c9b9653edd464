#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "backends/textbook/plan_walker.h"

namespace stagecraft {

// A weight of this name is the identity matrix.
inline constexpr std::string_view kIdentity = "identity";

// Computes any plan in double precision, with one formula per step. All backends are compared with
// it. It is slow, and computes one text from its beginning.
struct OracleResult {
  std::vector<double> logits;  // [tokens, vocab_size]
  // Over all products: the largest sum of |terms|, and the largest number of terms. Rounding errors
  // of f32 grow with both.
  double largest_sum = 0.0;
  std::size_t most_terms = 1;
  // How much a product can change if numbers halfway between two bytes, or two f16, are rounded the
  // other way. A backend may do so, because its numbers differ a little.
  double doubt = 0.0;
};

// Rounds a row before it is multiplied with a weight, as a backend does that rounds activations.
// doubt: how far off each number may be because it is halfway between two values. May be empty.
using RoundRow =
    std::function<void(WeightId weight, std::span<double> row, std::span<double> doubt)>;

// Rounds like Q8_0 (block: 32) or Q8_K (256): the neighbouring numbers of a block become bytes that
// share a scale; the largest is 127. doubt: for a number halfway between two bytes, the distance of
// these bytes.
void round_to_bytes(std::span<double> row, std::span<double> doubt, std::size_t block);

// How keys and values are rounded. BF16Rows: to bf16; queries and probabilities are rounded to
// bf16, too. Q8: as on the CPU, to bytes; the scales of keys are f16, and queries are rounded to
// bytes, too. Q8_0: as on a GPU; all scales are f16.
enum class CacheNumbers { Exact, F16, BF16, BF16Rows, Q8, Q8_0 };

OracleResult run_oracle(const Plan& plan, const PlanWeights& weights,
                        std::span<const TokenId> tokens, const RoundRow& round = {},
                        CacheNumbers cache = CacheNumbers::Exact);

// The largest error, divided by the error that rounding to f32 may cause: up to 1 is right.
double relative_error(std::span<const float> got, const OracleResult& expected);

}  // namespace stagecraft
