#include "model/plan_work.h"

#include <algorithm>

namespace stagecraft {
namespace {

double count(std::size_t n) { return static_cast<double>(n); }

// The number of weight elements that the step uses for one token.
double weights_for_one(const Plan& plan, const StepKind& kind) {
  double numbers = 0.0;
  for (const WeightId id : weights_read(kind)) numbers += count(plan.weight(id).elements());
  if (const auto* experts = std::get_if<ExpertsStep>(&kind)) {
    numbers *= count(most_chosen(plan, *experts)) / count(experts->experts.size());
  }
  return numbers;
}

Work of_attention(const Plan& plan, const AttentionStep& step, std::size_t kv_len) {
  const CacheShape& cache = plan.cache(step.cache);
  const double seen = count(step.window == 0 ? kv_len : std::min(step.window, kv_len));
  // q . k, and probability * v.
  return {2.0 * 2.0 * seen * count(step.n_heads * cache.head_dim),
          2.0 * seen * count(cache.width())};
}

// Each token scales the state of all heads, reads it with k, corrects it, and reads it with q.
Work of_delta(const Plan& plan, const DeltaStep& step) {
  const StateShape& state = plan.state(step.state);
  const double numbers = count(state.rows * state.width);
  return {7.0 * numbers, numbers};
}

}  // namespace

Work work_per_token(const Plan& plan, const StepKind& kind, std::size_t kv_len) {
  if (const auto* embed = std::get_if<EmbedStep>(&kind)) {  // one row of each table
    return {0.0, count(weights_read(kind).size() * plan.buffer(embed->out).width)};
  }
  if (std::holds_alternative<NormStep>(kind)) return {0.0, weights_for_one(plan, kind)};
  Work work;
  if (const auto* attention = std::get_if<AttentionStep>(&kind)) {
    work = of_attention(plan, *attention, kv_len);
  }
  if (const auto* delta = std::get_if<DeltaStep>(&kind)) work = of_delta(plan, *delta);
  const double weights = weights_for_one(plan, kind);
  return {work.operations + 2.0 * weights, work.numbers_read + weights};
}

}  // namespace stagecraft
