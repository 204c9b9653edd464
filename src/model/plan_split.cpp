#include "model/plan_split.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "model/plan_writer.h"

namespace stagecraft {
namespace {

// The first step of the last n layers. Steps without a layer come before the first layer or after
// the last one.
std::size_t first_step(const Plan& plan, std::size_t n) {
  const auto layer = static_cast<int>(plan.n_layers - n);
  return static_cast<std::size_t>(std::ranges::find(plan.steps, layer, &Step::layer) -
                                  plan.steps.begin());
}

// The caches and states that some steps use.
struct Kept {
  std::vector<bool> caches, states;

  Kept(const Plan& plan, std::span<const Step> steps)
      : caches(plan.caches.size()), states(plan.states.size()) {
    for (const Step& step : steps) {
      use(caches, cache_of(step.kind));
      use(states, state_of(step.kind));
    }
  }
  static void use(std::vector<bool>& used, int id) {
    if (id != kNone) used[static_cast<std::size_t>(id)] = true;
  }
};

bool have_common(const std::vector<bool>& a, const std::vector<bool>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] && b[i]) return true;
  }
  return false;
}

// The buffers that steps before `step` write and later steps read.
std::vector<BufferId> passed_on(const Plan& plan, std::size_t step) {
  std::vector<BufferId> buffers;
  for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
    const auto buffer = static_cast<BufferId>(id);
    if (is_read_after(plan, step - 1, buffer)) buffers.push_back(buffer);
  }
  return buffers;
}

// Whether all steps of layers before the last n come before `step`, and all steps of the last n
// after it.
bool is_between_layers(const Plan& plan, std::size_t step, std::size_t n) {
  const auto layer = static_cast<int>(plan.n_layers - n);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const int one = plan.steps[i].layer;
    if (one != kNone && (one < layer) != (i < step)) return false;
  }
  return true;
}

// A plan with only these steps of `plan`, and no memory for caches and states that they do not use.
Plan with_steps(const Plan& plan, std::span<const Step> steps) {
  Plan part = plan;
  part.steps.assign(steps.begin(), steps.end());
  const Kept kept(plan, steps);
  for (std::size_t i = 0; i < part.caches.size(); ++i) {
    if (!kept.caches[i]) part.caches[i] = {};
  }
  for (std::size_t i = 0; i < part.states.size(); ++i) {
    if (!kept.states[i]) part.states[i] = {};
  }
  return part;
}

}  // namespace

bool can_split(const Plan& plan, std::size_t n) {
  if (n == 0 || n >= plan.n_layers) return false;
  const std::size_t step = first_step(plan, n);
  if (step == 0 || step == plan.steps.size() || !is_between_layers(plan, step, n)) return false;
  const std::span<const Step> steps(plan.steps);
  const Kept front(plan, steps.first(step)), back(plan, steps.subspan(step));
  return passed_on(plan, step).size() == 1 && !have_common(front.caches, back.caches) &&
         !have_common(front.states, back.states);
}

SplitPlan split_plan(const Plan& plan, std::size_t n) {
  if (!can_split(plan, n)) throw Error("plan: cannot be split before the last {} layers", n);
  const std::size_t step = first_step(plan, n);
  const BufferId x = passed_on(plan, step).front();
  const std::span<const Step> steps(plan.steps);

  SplitPlan parts{with_steps(plan, steps.first(step)), with_steps(plan, steps.subspan(step))};
  // A copy of x, because the caller owns the memory of logits: otherwise every step that writes x
  // would need to know that.
  PlanWriter front(parts.front);
  parts.front.logits = front.buffer("rows", plan.buffer(x).width);
  front.step("", ActivateStep{parts.front.logits, x, kNone, ActivateStep::Function::Identity});
  parts.back.steps.insert(parts.back.steps.begin(), Step{EmbedStep{x, kNone}});
  return parts;
}

}  // namespace stagecraft
