#include "model/plan_writer.h"

#include <utility>

namespace stagecraft {

BufferId PlanWriter::buffer(std::string name, std::size_t width) {
  plan_.buffers.push_back({std::move(name), width});
  return static_cast<BufferId>(plan_.buffers.size() - 1);
}

WeightId PlanWriter::weight(Weight weight) {
  plan_.weights.push_back(std::move(weight));
  return static_cast<WeightId>(plan_.weights.size() - 1);
}

CacheId PlanWriter::cache(CacheShape shape) {
  plan_.caches.push_back(shape);
  return static_cast<CacheId>(plan_.caches.size() - 1);
}

StateId PlanWriter::state(StateShape shape) {
  plan_.states.push_back(shape);
  return static_cast<StateId>(plan_.states.size() - 1);
}

FrequenciesId PlanWriter::frequencies(Frequencies table) {
  plan_.frequencies.push_back(std::move(table));
  return static_cast<FrequenciesId>(plan_.frequencies.size() - 1);
}

// Backends cannot report a wrong routing: their threads wait for each other.
void PlanWriter::step(std::string name, StepKind kind) {
  if (const auto* r = std::get_if<RouteStep>(&kind)) {
    check_routing(plan_.buffer(r->x).width, {r->n_chosen, r->normed, {}, r->scale, r->groups});
  }
  plan_.steps.push_back({std::move(kind), layer_, std::move(name)});
}

void PlanWriter::linear(std::string step_name, BufferId out, BufferId in, const std::string& name,
                        bool bias, const Storage& stored) {
  const std::size_t outputs = plan_.buffer(out).width, inputs = plan_.buffer(in).width;
  LinearStep linear{
      out, in, weight({.name = name + ".weight", .shape = {outputs, inputs}, .stored = stored})};
  if (bias) {
    Storage without_columns = stored;
    without_columns.transposed = false;
    without_columns.first_input = without_columns.of_inputs = 0;
    linear.bias = weight({.name = name + ".bias", .shape = {outputs}, .stored = without_columns});
  }
  step(std::move(step_name), linear);
}

void PlanWriter::norm(std::string step_name, BufferId out, BufferId in, Weight norm_weight,
                      float eps) {
  const std::size_t group = norm_weight.shape[0];
  step(std::move(step_name), NormStep{out, in, weight(std::move(norm_weight)), group, eps});
}

}  // namespace stagecraft
