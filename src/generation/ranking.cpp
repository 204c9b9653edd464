#include "generation/ranking.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

bool comes_before(const RankedToken& a, const RankedToken& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
}

}  // namespace

std::vector<RankedToken> top_tokens(std::span<const float> values, std::size_t count) {
  std::vector<RankedToken> all(values.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {static_cast<TokenId>(i), values[i]};
  }
  count = std::min(count, all.size());
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(all.begin(), end, all.end(), comes_before);
  all.erase(end, all.end());
  return all;
}

std::size_t rank_of(std::span<const float> values, TokenId token) {
  const RankedToken own{token, values[static_cast<std::size_t>(token)]};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    rank += comes_before({static_cast<TokenId>(i), values[i]}, own) ? 1 : 0;
  }
  return rank;
}

double log_sum_exp(std::span<const float> values) {
  const auto largest = static_cast<double>(*std::ranges::max_element(values));
  double sum = 0.0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - largest);
  return std::log(sum) + largest;
}

}  // namespace stagecraft
