#include "backends/cpu/fused_plan.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "base/overloaded.h"

namespace stagecraft {
namespace {

// Whether a variant of steps has this kind.
template <class Variant, class Kind>
constexpr bool kHasKind = false;
template <class Kind, class... Kinds>
constexpr bool kHasKind<std::variant<Kinds...>, Kind> = (std::is_same_v<Kind, Kinds> || ...);

template <class Kind, class... Kinds>
concept OneOf = (std::is_same_v<Kind, Kinds> || ...);

// The buffers that a step reads or writes.
std::vector<BufferId> buffers_of(const FusedStep& step) {
  using Buffers = std::vector<BufferId>;
  return std::visit(Overloaded{[](const FusedLinears& s) {
                                 Buffers buffers = {s.input.in};
                                 for (const FusedLinear& linear : s.linears)
                                   buffers.push_back(linear.out);
                                 return buffers;
                               },
                               [](const FusedGate& s) {
                                 return Buffers{s.input.in, s.out};
                               },
                               [](const FusedExperts& s) {
                                 return Buffers{s.step.in, s.step.routing_weights, s.step.out};
                               },
                               [](const FusedAttention& s) {
                                 Buffers buffers = {s.step.q, s.step.out};
                                 if (s.k != kNone) buffers.insert(buffers.end(), {s.k, s.v});
                                 return buffers;
                               },
                               [](const FusedAdd& s) {
                                 return Buffers{s.x, s.in};
                               },
                               [](const FusedNorm& s) {
                                 return Buffers{s.in, s.out};
                               },
                               [](const FusedSelect& s) { return s.buffers; },
                               [](const auto& s) {  // a step of the plan, unchanged
                                 Buffers buffers = buffers_read(s);
                                 buffers.push_back(buffer_written(s));
                                 return buffers;
                               }},
                    step);
}

class Fuser {
 public:
  explicit Fuser(const Plan& plan) : plan_(plan) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (writes_state(plan.steps[i].kind) || at<AttentionStep>(i) != nullptr) last_state_ = i;
    }
    has_state_ = last_state_ != 0;  // step 0 is an EmbedStep
  }

  FusedPlan run() {
    for (std::size_t i = 0; i < plan_.steps.size();) i = fuse_at(i);
    mark_stored();
    return std::move(fused_);
  }

 private:
  template <class Kind>
  const Kind* at(std::size_t i) const {
    return i < plan_.steps.size() ? std::get_if<Kind>(&plan_.steps[i].kind) : nullptr;
  }

  // Fuses as many steps as possible from step i on. Returns the index of the first step after them.
  // The longest fusions are tried first. A DeltaStep overwrites its inputs (packed_states.cpp), so
  // nobody else may read them.
  std::size_t fuse_at(std::size_t i) {
    if (at<LinearStep>(i) != nullptr) return linears(i, {at<LinearStep>(i)->in});
    if (const auto end = norm_and_linears(i)) return *end;
    if (const auto end = norm_and_add(i)) return *end;
    if (const auto end = attention(i)) return *end;
    if (const auto* norm = at<NormStep>(i)) {
      fused_.steps.push_back(
          FusedNorm{norm->out, norm->in, row_norm(*norm), is_only_scored(i, norm->out)});
      return i + 1;
    }
    if (const auto* add = at<AddStep>(i)) {
      fused_.steps.push_back(FusedAdd{add->x, add->in, add->scale});
      return i + 1;
    }
    if (at<ExpertsStep>(i) != nullptr) return experts(i);
    if ((at<DeltaStep>(i) == nullptr || owns_inputs(i)) && takes_over(i)) {
      if (has_state_ && i == last_state_) select(i);
      return i + 1;
    }
    if (at<SelectStep>(i) != nullptr) {
      if (!has_state_) select(i);  // else select() was called after the last state
      return i + 1;
    }
    const Step& step = plan_.steps[i];
    throw Error(
        "cpu backend: {}: step '{}' (layer {}) is not supported; the textbook backend runs it",
        plan_.model_type, step.name, step.layer);
  }

  // Takes over step i unchanged if fused plans have its kind. Returns whether they have.
  bool takes_over(std::size_t i) {
    return std::visit(
        [this](const auto& step) {
          constexpr bool has = kHasKind<FusedStep, std::decay_t<decltype(step)>>;
          if constexpr (has) fused_.steps.push_back(step);
          return has;
        },
        plan_.steps[i].kind);
  }

  std::optional<std::size_t> norm_and_linears(std::size_t i) {
    const auto* norm = at<NormStep>(i);
    if (norm == nullptr || norm->group != plan_.buffer(norm->in).width) return std::nullopt;
    const auto* linear = at<LinearStep>(i + 1);
    if (linear == nullptr || linear->in != norm->out) return std::nullopt;
    const std::size_t last = end_of_group(i + 1) - 1;
    if (is_read_after(plan_, last, norm->out)) return std::nullopt;
    return linears(i + 1, {norm->in, row_norm(*norm)});
  }

  static RowNorm row_norm(const NormStep& norm) {
    return {norm.kind, norm.weight, norm.bias, norm.eps, norm.group};
  }

  // The end of the group that begins with linear i: linears of the same input, at most kMaxLinears.
  std::size_t end_of_group(std::size_t i) const {
    const BufferId in = at<LinearStep>(i)->in;
    const std::size_t end = i + FusedLinears::kMaxLinears;
    while (i != end && at<LinearStep>(i) != nullptr && at<LinearStep>(i)->in == in) ++i;
    return i;
  }

  std::size_t linears(std::size_t begin, const LinearInput& input) {
    const std::size_t end = end_of_group(begin);
    if (const auto after = gate(begin, end, input)) return *after;
    const bool activated = is_activated(end);
    FusedLinears group{input, {}};
    for (std::size_t i = begin; i < end; ++i) {
      const LinearStep& linear = *at<LinearStep>(i);
      group.linears.push_back({linear.weight, linear.bias, linear.out});
      group.linears.back().scored_only = is_only_scored(i, linear.out);
    }
    if (activated) {
      group.linears.back().activation = at<ActivateStep>(end)->function;
      fused_.steps.push_back(std::move(group));
      return end + 1;
    }
    FusedLinear& last = group.linears.back();
    const AddStep* add = sum_after(plan_, end, last.out);
    const bool sum = add != nullptr && group.linears.size() == 1 && add->x != input.in;
    if (sum) {
      last.out = add->x;
      last.add = true;
    }
    fused_.steps.push_back(std::move(group));
    return sum ? end + 1 : end;
  }

  // Whether step i is an activation function without `up`, in place, on the output of the linear
  // before it.
  bool is_activated(std::size_t i) const {
    const auto* activate = at<ActivateStep>(i);
    return activate != nullptr && activate->up == kNone && activate->out == activate->gate &&
           at<LinearStep>(i - 1)->out == activate->gate;
  }

  // Whether linears [begin, end) are gate and up, and only the activation after them reads their
  // results.
  bool gate_matches(std::size_t begin, std::size_t end) const {
    const auto* activate = at<ActivateStep>(end);
    if (activate == nullptr || end - begin != 2) return false;
    const LinearStep& gate = *at<LinearStep>(begin);
    const LinearStep& up = *at<LinearStep>(begin + 1);
    return gate.out == activate->gate && up.out == activate->up && gate.out != up.out &&
           activate->out == gate.out &&
           plan_.buffer(up.out).width == plan_.buffer(gate.out).width &&
           !is_read_after(plan_, end, up.out);
  }

  std::optional<std::size_t> gate(std::size_t begin, std::size_t end, const LinearInput& input) {
    if (!gate_matches(begin, end)) return std::nullopt;
    const ActivateStep* const activate = at<ActivateStep>(end);
    const LinearStep& gate = *at<LinearStep>(begin);
    const LinearStep& up = *at<LinearStep>(begin + 1);
    fused_.steps.push_back(FusedGate{input,
                                     {gate.weight, gate.bias, gate.out},
                                     {up.weight, up.bias, up.out},
                                     activate->out,
                                     activate->function,
                                     only_readers(end + 1, activate->out)});
    return end + 1;
  }

  // The weights of the linears from step i on, if only they read this buffer.
  std::vector<WeightId> only_readers(std::size_t i, BufferId buffer) const {
    const auto* first = at<LinearStep>(i);
    if (first == nullptr || first->in != buffer) return {};
    const std::size_t end = end_of_group(i);
    if (gate_matches(i, end) || is_read_after(plan_, end - 1, buffer)) return {};
    std::vector<WeightId> weights;
    for (; i < end; ++i) weights.push_back(at<LinearStep>(i)->weight);
    return weights;
  }

  // Fuses the experts at step i with the AddStep behind them, if it can. Returns the index of the
  // next step.
  std::size_t experts(std::size_t i) {
    const ExpertsStep& step = *at<ExpertsStep>(i);
    FusedExperts fused{step, most_chosen(plan_, step), expert_width(plan_, step)};
    const AddStep* add = sum_after(plan_, i + 1, step.out);
    fused.add = add != nullptr && add->x != step.in && add->x != step.routing_weights;
    if (fused.add) fused.step.out = add->x;
    fused_.steps.push_back(std::move(fused));
    return fused.add ? i + 2 : i + 1;
  }

  std::optional<std::size_t> norm_and_add(std::size_t i) {
    const auto* norm = at<NormStep>(i);
    const auto* add = at<AddStep>(i + 1);
    if (norm == nullptr || add == nullptr || norm->group != plan_.buffer(norm->in).width ||
        add->in != norm->out || is_read_after(plan_, i + 1, norm->out)) {
      return std::nullopt;
    }
    fused_.steps.push_back(FusedAdd{add->x, norm->in, add->scale, row_norm(*norm)});
    return i + 2;
  }

  // The norms and ropes of the heads of one buffer.
  struct Rotated {
    BufferId buffer;
    HeadRotation rotation;
    std::size_t head_dim = 0;  // as its ropes give it
    std::size_t columns = 0;   // of a head that the ropes rotate
  };

  // Collects the norms and ropes of single heads from step i on, and moves i behind them. Nullopt
  // if they are not the steps of a rotation.
  std::optional<std::vector<Rotated>> rotations(std::size_t& i) const {
    std::vector<Rotated> rotated;
    const auto rotated_of = [&](BufferId buffer) -> Rotated& {
      const auto found = std::ranges::find(rotated, buffer, &Rotated::buffer);
      return found != rotated.end() ? *found : rotated.emplace_back(Rotated{buffer, {}});
    };
    for (;; ++i) {
      if (const auto* norm = at<NormStep>(i)) {
        HeadRotation& rotation = rotated_of(norm->in).rotation;
        const bool first = rotation.norm.group == 0 && rotation.ropes.empty();
        if (norm->out != norm->in || !first) return std::nullopt;
        rotation.norm = row_norm(*norm);
      } else if (const auto* rope = at<RopeStep>(i)) {
        Rotated& one = rotated_of(rope->x);
        HeadRotation& rotation = one.rotation;
        const bool alike = rotation.pairs == rope->pairs && one.head_dim == rope->head_dim;
        if (rope->first_column != one.columns) return std::nullopt;
        if (!rotation.ropes.empty() && !alike) return std::nullopt;
        rotation.ropes.push_back(rope->frequencies);
        rotation.pairs = rope->pairs;
        one.head_dim = rope->head_dim;
        one.columns += 2 * plan_.table(rope->frequencies).values.size();
      } else {
        return rotated;
      }
    }
  }

  // Fuses norms and rope of single heads, then store and attention.
  std::optional<std::size_t> attention(std::size_t i) {
    const auto rotated = rotations(i);
    if (!rotated) return std::nullopt;
    const auto* store = at<StoreStep>(i);
    if (store != nullptr) ++i;
    const auto* step = at<AttentionStep>(i);
    if (step == nullptr || (store != nullptr && store->cache != step->cache)) return std::nullopt;
    const BufferId k = store == nullptr ? kNone : store->k, v = store == nullptr ? kNone : store->v;
    FusedAttention fused{*step, n_attentions_, k, v, {}, {}, i == last_state_};
    for (const auto& [buffer, rotation, head_dim, columns] : *rotated) {
      if (buffer != step->q && buffer != k) return std::nullopt;
      const std::size_t size = plan_.cache(step->cache).head_dim;
      if (rotation.norm.group != 0 && rotation.norm.group != size) return std::nullopt;
      if (!rotation.ropes.empty() && head_dim != size) return std::nullopt;
      (buffer == step->q ? fused.q_rotation : fused.k_rotation) = rotation;
    }
    for (const BufferId buffer : {step->q, k, v}) {
      if (is_read_after(plan_, i, buffer)) return std::nullopt;  // rotated rows are not stored
    }
    fused_.steps.push_back(fused);
    ++n_attentions_;
    if (fused.scored_only) select(i);
    return i + 1;
  }

  // After the step that writes the last state, buffers are read only for scored rows.
  void select(std::size_t step) {
    FusedSelect select;
    for (std::size_t id = 0; id < plan_.buffers.size(); ++id) {
      const auto buffer = static_cast<BufferId>(id);
      if (buffer != plan_.logits && is_read_after(plan_, step, buffer)) {
        select.buffers.push_back(buffer);
      }
    }
    fused_.steps.push_back(std::move(select));
  }

  // Whether only scored rows of this result are needed: it is written before the last step that
  // keeps a state, and is read only after that step, or as its queries.
  bool is_only_scored(std::size_t step, BufferId out) const {
    if (!has_state_ || step > last_state_) return false;
    const auto* attention = at<AttentionStep>(last_state_);
    const bool queries = attention != nullptr && attention->q == out;
    for (std::size_t i = step + 1; i < last_state_; ++i) {
      if (queries ? at<AttentionStep>(i) != nullptr : reads(i, out)) return false;
    }
    return queries || (!reads(last_state_, out) && is_read_after(plan_, last_state_, out));
  }

  // Whether no other step needs the inputs of this step. If so, it may be computed in place.
  bool owns_inputs(std::size_t step) const {
    return std::ranges::none_of(buffers_read(plan_.steps[step].kind), [&](BufferId buffer) {
      return is_read_after(plan_, step, buffer);
    });
  }

  bool reads(std::size_t step, BufferId buffer) const {
    const std::vector<BufferId> read = buffers_read(plan_.steps[step].kind);
    return std::ranges::find(read, buffer) != read.end();
  }

  void mark_stored() {
    fused_.stored.assign(plan_.buffers.size(), false);
    for (const FusedStep& step : fused_.steps) {
      for (const BufferId id : buffers_of(step)) fused_.stored[static_cast<std::size_t>(id)] = true;
    }
    // The logits are in the caller's memory.
    fused_.stored[static_cast<std::size_t>(plan_.logits)] = false;
  }

  const Plan& plan_;
  FusedPlan fused_;
  std::size_t last_state_ = 0;  // the last step that writes a state or attends
  bool has_state_ = false;
  std::size_t n_attentions_ = 0;  // fused so far
};

}  // namespace

FusedPlan fuse(const Plan& plan) { return Fuser(plan).run(); }

std::vector<FusedMatrix> matrices_of(const FusedStep& step) {
  using Matrices = std::vector<FusedMatrix>;
  return std::visit(
      Overloaded{
          [](const FusedLinears& s) {
            Matrices matrices;
            for (const FusedLinear& linear : s.linears) {
              matrices.push_back({linear.weight, linear.scored_only});
            }
            return matrices;
          },
          [](const FusedGate& s) {
            return Matrices{{s.gate.weight}, {s.up.weight}};
          },
          [](const FusedExperts& s) {
            Matrices matrices;
            for (const ExpertsStep::Expert& one : s.step.experts) {
              for (const WeightId id : {one.gate, one.up, one.down}) matrices.push_back({id});
            }
            return matrices;
          },
          [](const HeadsLinearStep& s) {
            Matrices matrices;
            for (const WeightId id : s.weights) matrices.push_back({id});
            return matrices;
          },
          // All others have vectors only. (The taps of a ShortConvStep are not packed.)
          [](const OneOf<EmbedStep, FusedAttention, FusedAdd, FusedNorm, FusedSelect, ActivateStep,
                         MapStep, RouteStep, ShortConvStep, DeltaStep, JoinStep> auto&) {
            return Matrices{};
          }},
      step);
}

}  // namespace stagecraft
