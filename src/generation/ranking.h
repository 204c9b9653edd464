#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.h"

namespace stagecraft {

// The order of tokens by a value each, such as a logit or a probability: the largest value first;
// of equal values, the lower id first. No value may be NaN: NaN cannot be ordered.

struct RankedToken {
  TokenId token = 0;
  float value = 0.0f;
};

// The first `count` tokens; all, if there are fewer.
std::vector<RankedToken> top_tokens(std::span<const float> values, std::size_t count);

// The number of tokens that come before this one: 0 for the first. 0 <= token < values.size().
std::size_t rank_of(std::span<const float> values, TokenId token);

// ln(sum(exp(values))) of at least one value, computed in f64. A logit minus this number is the
// logarithm of its softmax.
double log_sum_exp(std::span<const float> values);

}  // namespace stagecraft
