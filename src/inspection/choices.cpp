#include "inspection/choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "generation/broken_model.h"
#include "operators/check.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

// exp((logit - max) / temperature), as sample() computes it. With temperature 0, the term of the
// first of the largest logits is 1, all others are 0.
std::vector<float> unnormalized(std::span<const float> logits, float temperature) {
  std::vector<float> terms(logits.size(), 0.0f);
  const auto best = std::ranges::max_element(logits);
  if (temperature == 0.0f) {
    terms[static_cast<std::size_t>(best - logits.begin())] = 1.0f;
    return terms;
  }
  std::ranges::transform(logits, terms.begin(),
                         [&](float logit) { return std::exp((logit - *best) / temperature); });
  return terms;
}

// The tokens in the order of sample(): the most likely first; if two are equal, the lower id first.
// Tokens with probability 0, which sample() never chooses, follow in the order of their logits.
std::vector<TokenId> ranking(std::span<const float> terms, std::span<const float> logits) {
  std::vector<TokenId> ids(terms.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::sort(ids, [&](TokenId a, TokenId b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    if (terms[i] != terms[j]) return terms[i] > terms[j];
    return terms[i] == 0.0f && logits[i] != logits[j] ? logits[i] > logits[j] : a < b;
  });
  return ids;
}

}  // namespace

Choices choices(std::span<const float> logits, std::span<const float> changed,
                const SamplerOptions& options, std::size_t count, TokenId asked) {
  check_size("choices", "changed", logits.size(), changed.size());
  check_logits(changed);
  std::vector<float> model(logits.size());
  softmax(logits, model);
  const std::vector<float> terms = unnormalized(changed, options.temperature);
  const std::vector<TokenId> ids = ranking(terms, changed);
  const auto term = [&](std::size_t rank) {
    return static_cast<double>(terms[static_cast<std::size_t>(ids[rank])]);
  };
  const auto sum_of = [&](std::size_t n) {
    double sum = 0.0;
    for (std::size_t rank = 0; rank < n; ++rank) sum += term(rank);
    return sum;
  };

  Choices result;
  result.kept_top_k = ids.size();
  if (options.top_k != 0) result.kept_top_k = std::min(options.top_k, ids.size());
  if (options.temperature == 0.0f) result.kept_top_k = 1;
  const double top_k_sum = sum_of(result.kept_top_k);
  result.kept_top_p = result.kept_top_k;
  if (options.top_p < 1.0f) {
    const double enough = static_cast<double>(options.top_p) * top_k_sum;
    double reached = 0.0;
    for (std::size_t rank = 0; rank < result.kept_top_k; ++rank) {
      reached += term(rank);
      if (reached < enough) continue;
      result.kept_top_p = rank + 1;
      break;
    }
  }
  const double whole = sum_of(ids.size()), top_p_sum = sum_of(result.kept_top_p);

  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    if (rank >= count && ids[rank] != asked) continue;
    const auto at = static_cast<std::size_t>(ids[rank]);
    const auto of = [&](double sum, std::size_t kept) {
      return rank < kept ? static_cast<float>(term(rank) / sum) : 0.0f;
    };
    result.top.push_back({ids[rank], rank, logits[at], model[at], of(whole, ids.size()),
                          of(top_k_sum, result.kept_top_k), of(top_p_sum, result.kept_top_p)});
  }
  return result;
}

}  // namespace stagecraft
