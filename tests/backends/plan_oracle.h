#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/textbook/plan_walker.h"

namespace stagecraft {

// Any plan in double precision, a formula per step: what all backends are compared with. Slow, and
// for one text from its beginning.
struct OracleResult {
  std::vector<double> logits;  // [tokens, vocab_size]
  // The largest sum of |terms| that any product had, and the most terms: rounding errors of f32
  // grow with both.
  double largest_sum = 0.0;
  std::size_t most_terms = 1;
  // What the largest product would change by if all numbers that lie between two bytes, or two f16,
  // were rounded the other way: a backend's, which are a little off, may be.
  double doubt = 0.0;
};

// Changes a row before it is multiplied with a weight, as a backend that rounds activations does,
// and writes how far a number may be off that lies between two others; may be empty.
using RoundRow =
    std::function<void(WeightId weight, std::span<double> row, std::span<double> doubt)>;

// Rounds as Q8_0 does: 32 neighbours become bytes that share a scale, the largest is 127. doubt: of
// a number halfway between two bytes, the step from one to the next.
void round_to_bytes(std::span<double> row, std::span<double> doubt);

// How keys and values are kept. BF16Rows: in bf16, and queries and the shares of values are rounded
// to it, too. Q8: as the CPU does, in bytes; the scales of keys are f16, and queries are rounded
// too before they meet keys. Q8_0: as a GPU does; all scales are f16.
enum class CacheNumbers { Exact, F16, BF16, BF16Rows, Q8, Q8_0 };

OracleResult run_oracle(const Plan& plan, const PlanWeights& weights,
                        std::span<const TokenId> tokens, const RoundRow& round = {},
                        CacheNumbers cache = CacheNumbers::Exact);

// The error in units of what rounding to f32 may make of it: up to 1 is right.
double relative_error(std::span<const float> got, const OracleResult& expected);

}  // namespace stagecraft
