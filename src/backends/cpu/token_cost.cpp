#include "backends/cpu/token_cost.h"

#include <algorithm>
#include <array>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/packed_kv_cache.h"
#include "backends/cpu/packed_weights.h"
#include "backends/large_model.h"
#include "model/plan_weights.h"

namespace stagecraft {

TokenCost token_cost(const Plan& plan, const Checkpoint& checkpoint) {
  const std::vector<const StoredTensor*> stored = find_weights(plan, checkpoint);
  const bool large = is_large(checkpoint);
  TokenCost cost;
  std::array<double, kActivationTypes> elements = {};  // by ActivationType
  bool selected = false;
  for (const FusedStep& step : fuse(plan).steps) {
    std::vector<FusedMatrix> matrices = matrices_of(step);
    if (const auto* experts = std::get_if<FusedExperts>(&step)) {
      matrices.resize(3 * experts->n_chosen);  // gate, up and down of each
    }
    for (const auto& [id, scored_only] : matrices) {
      const Weight& weight = plan.weight(id);
      const StoredTensor part = stored_weight(weight, *stored[static_cast<std::size_t>(id)]);
      const PanelMatrix m{packed_layout(weight, part, large), part.shape[0], part.shape[1]};
      const double n = static_cast<double>(m.outputs) * static_cast<double>(m.inputs);
      if (!selected && !scored_only) cost.operations += 2.0 * n;
      cost.bytes += static_cast<double>(m.panel_count() * panel_bytes(m.layout, m.inputs));
      elements[static_cast<std::size_t>(kernels().matmul(m.layout).activation_type)] += n;
    }
    selected = selected || std::holds_alternative<FusedSelect>(step);
  }
  const auto most = std::ranges::max_element(elements);
  cost.rows = static_cast<ActivationType>(most - elements.begin());
  return cost;
}

double attended_bytes(const Plan& plan, KvType type, std::size_t positions) {
  double bytes = 0.0;
  for (const FusedStep& step : fuse(plan).steps) {
    const auto* const attention = std::get_if<FusedAttention>(&step);
    if (attention == nullptr) continue;
    const CacheShape& shape = plan.cache(attention->step.cache);
    const std::size_t window = attention->step.window;
    const std::size_t read = window == 0 ? positions : std::min(window, positions);
    bytes += packed_kv_cache_bytes({&shape, 1}, read, kv_layout(type));
  }
  return bytes;
}

}  // namespace stagecraft
