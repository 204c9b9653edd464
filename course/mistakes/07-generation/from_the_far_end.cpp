// Right: u measured from the least likely end.
#include "generation/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stagecraft {
namespace {

bool likelier(const TokenProbability& a, const TokenProbability& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

double sum_of(std::span<const TokenProbability> shares) {
  double sum = 0.0;
  for (const TokenProbability& share : shares) sum += share.probability;
  return sum;
}

}  // namespace

TokenId sample(std::span<const float> logits, const SamplerOptions& options, float u,
               std::span<TokenProbability> scratch) {
  float largest = -INFINITY;
  TokenId best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY) throw Error("sample: found {}", logits[i]);
    if (logits[i] > largest) {
      largest = logits[i];
      best = static_cast<TokenId>(i);
    }
  }
  if (largest == -INFINITY) throw Error("sample: found {} alone", largest);
  if (options.temperature == 0.0f) return best;
  if (options.top_p == 0.0f) return best;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    scratch[i] = {static_cast<TokenId>(i), std::exp((logits[i] - largest) / options.temperature)};
  }
  std::sort(scratch.begin(), scratch.end(), likelier);
  auto kept = scratch;
  if (options.top_k != 0) kept = kept.first(std::min(options.top_k, kept.size()));
  if (options.top_p < 1.0f) {
    const double enough = static_cast<double>(options.top_p) * sum_of(kept);
    double reached = 0.0;
    std::size_t n = 0;
    while (n < kept.size() && reached < enough) reached += kept[n++].probability;
    kept = kept.first(n);
  }
  const double all = sum_of(kept);
  const double target = static_cast<double>(u) * all;
  double begin = all;
  for (std::size_t rank = kept.size(); rank-- > 1;) {
    begin -= kept[rank].probability;
    if (target >= begin) return kept[rank].token;
  }
  return kept.front().token;
}

}  // namespace stagecraft
