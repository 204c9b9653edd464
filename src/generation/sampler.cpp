// This gives away stage 7: it is our answer to stages/07-generation/sampler.cpp.
#include "generation/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

TokenId likeliest(std::span<const float> logits) {
  // max_element returns the first of equal elements: the lower id.
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

bool likelier(const TokenProbability& a, const TokenProbability& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

// exp((logit - max) / temperature) for each token: probabilities that do not sum to 1 yet.
void fill_unnormalized(std::span<const float> logits, float temperature, float max,
                       std::span<TokenProbability> candidates) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {static_cast<TokenId>(i), std::exp((logits[i] - max) / temperature)};
  }
}

double sum_of(std::span<const TokenProbability> candidates) {
  double sum = 0.0;
  for (const TokenProbability& candidate : candidates) sum += candidate.probability;
  return sum;
}

// The probabilities in order, the likeliest first. Only the part that is used is sorted: if a
// vocabulary has 150,000 tokens and a few candidates matter, sorting all would take longer than the
// model.
class Ranking {
 public:
  explicit Ranking(std::span<TokenProbability> candidates) : candidates_(candidates) {}

  const TokenProbability& operator[](std::size_t rank) {
    sort_first(rank + 1);
    return candidates_[rank];
  }

  void sort_first(std::size_t count) {
    while (sorted_ < count) sort_more();
  }

 private:
  void sort_more() {
    const std::size_t count =
        std::min(candidates_.size() - sorted_, std::max<std::size_t>(64, sorted_));
    const auto rest = candidates_.subspan(sorted_);
    const auto end = rest.begin() + static_cast<std::ptrdiff_t>(count);
    if (count < rest.size()) std::nth_element(rest.begin(), end, rest.end(), likelier);
    std::sort(rest.begin(), end, likelier);
    sorted_ += count;
  }

  std::span<TokenProbability> candidates_;
  std::size_t sorted_ = 0;
};

// The number of tokens, the likeliest first, whose probabilities reach p times `sum`, the sum of
// the first `n`.
std::size_t count_top_p(Ranking& ranking, std::size_t n, double sum, float p) {
  const double enough = static_cast<double>(p) * sum;
  double reached = 0.0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    reached += ranking[rank].probability;
    if (reached >= enough) return rank + 1;
  }
  return n;
}

}  // namespace

TokenId sample(std::span<const float> logits, const SamplerOptions& options, float u,
               std::span<TokenProbability> scratch) {
  check_size("sample", "scratch", logits.size(), scratch.size());
  if (logits.empty()) throw Error("sample: expected at least one logit, found none");
  // As check_logits, which an answer to stage 7 may not call (stages/own_work.json).
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY) {
      throw Error(
          "the model computed the logit {} for token {}: the weights are broken, or the code that "
          "computes with them",
          logits[i], i);
    }
  }
  const TokenId best = likeliest(logits);
  const float max = logits[static_cast<std::size_t>(best)];
  if (std::isinf(max)) throw Error("the model gives every token the probability 0");
  if (options.temperature == 0.0f) return best;

  fill_unnormalized(logits, options.temperature, max, scratch);
  Ranking ranking(scratch);
  std::size_t kept = scratch.size();
  if (options.top_k != 0 && options.top_k < kept) {
    kept = options.top_k;
    ranking.sort_first(kept);  // the first `kept` of scratch are then the likeliest
  }
  if (options.top_p < 1.0f) {
    kept = count_top_p(ranking, kept, sum_of(scratch.first(kept)), options.top_p);
  }

  const double target = static_cast<double>(u) * sum_of(scratch.first(kept));
  double sum = 0.0;
  for (std::size_t rank = 0; rank < kept; ++rank) {
    sum += ranking[rank].probability;
    if (target < sum) return ranking[rank].token;
  }
  return ranking[kept - 1].token;
}

}  // namespace stagecraft
