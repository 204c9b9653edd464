#include "model/plan.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {

Ids ExpertsStep::parameters() const {
  Ids ids;
  for (const Expert& one : experts) {
    ids.insert(ids.end(), {one.gate, one.up, one.down, one.gate_bias, one.up_bias, one.down_bias});
  }
  return ids;
}

std::vector<BufferId> buffers_read(const StepKind& kind) {
  Ids ids = std::visit([](const auto& step) { return step.inputs(); }, kind);
  std::erase(ids, kNone);
  return ids;
}

BufferId buffer_written(const StepKind& kind) {
  return std::visit([](const auto& step) { return step.output(); }, kind);
}

std::vector<WeightId> weights_read(const StepKind& kind) {
  Ids ids = std::visit([](const auto& step) { return step.parameters(); }, kind);
  std::erase(ids, kNone);
  return ids;
}

std::vector<bool> weights_of_steps(const Plan& plan) {
  std::vector<bool> read(plan.weights.size());
  for (const Step& step : plan.steps) {
    for (const WeightId id : weights_read(step.kind)) read[static_cast<std::size_t>(id)] = true;
  }
  return read;
}

BufferId row_input(const Plan& plan) {
  const auto* embed = std::get_if<EmbedStep>(&plan.steps.front().kind);
  const bool reads_tables = embed == nullptr || embed->table != kNone || embed->positions != kNone;
  return reads_tables ? kNone : embed->out;
}

BufferId residual_stream(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (const auto* select = std::get_if<SelectStep>(&step.kind)) return select->x;
  }
  return kNone;
}

bool is_read_after(const Plan& plan, std::size_t step, BufferId buffer) {
  for (std::size_t i = step + 1; i < plan.steps.size(); ++i) {
    const std::vector<BufferId> read = buffers_read(plan.steps[i].kind);
    if (std::ranges::find(read, buffer) != read.end()) return true;
    if (buffer_written(plan.steps[i].kind) == buffer) return false;
  }
  return buffer == plan.logits;
}

const AddStep* sum_after(const Plan& plan, std::size_t step, BufferId result) {
  if (step >= plan.steps.size()) return nullptr;
  const auto* add = std::get_if<AddStep>(&plan.steps[step].kind);
  if (add == nullptr || add->in != result || add->x == result || add->scale != 1.0f) return nullptr;
  return is_read_after(plan, step, result) ? nullptr : add;
}

std::size_t context_limit(const Plan& plan, std::size_t capacity) {
  return plan.max_positions == 0 ? capacity : std::min(capacity, plan.max_positions);
}

void check_next_tokens(const Plan& plan, std::span<const TokenId> tokens, std::size_t length,
                       std::size_t capacity) {
  const std::size_t limit = context_limit(plan, capacity);
  const std::size_t room = limit - std::min(limit, length);
  if (tokens.size() > room) {
    throw Error("forward: expected at most {} more tokens in the context, found {}", room,
                tokens.size());
  }
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= plan.vocab_size) {
      throw Error("forward: token id: expected 0 to {}, found {}", plan.vocab_size - 1, token);
    }
  }
}

bool writes_state(const StepKind& kind) {
  return std::holds_alternative<StoreStep>(kind) || state_of(kind) != kNone;
}

CacheId cache_of(const StepKind& kind) {
  return std::visit(
      [](const auto& step) {
        if constexpr (requires { step.cache; }) return step.cache;
        return kNone;
      },
      kind);
}

StateId state_of(const StepKind& kind) {
  return std::visit(
      [](const auto& step) {
        if constexpr (requires { step.state; }) return step.state;
        return kNone;
      },
      kind);
}

std::size_t max_heads(const Plan& plan) {
  std::size_t heads = 0;
  for (const Step& step : plan.steps) {
    const auto* attention = std::get_if<AttentionStep>(&step.kind);
    if (attention != nullptr) heads = std::max(heads, attention->n_heads);
  }
  return heads;
}

const AttentionStep* attention_of(const Plan& plan, int layer) {
  for (const Step& step : plan.steps) {
    const auto* attention = std::get_if<AttentionStep>(&step.kind);
    if (attention != nullptr && step.layer == layer) return attention;
  }
  return nullptr;
}

std::size_t expert_width(const Plan& plan, const ExpertsStep& step) {
  return plan.weight(step.experts.front().gate).shape.front();
}

std::size_t most_chosen(const Plan& plan, const ExpertsStep& step) {
  std::size_t most = 0;
  for (const Step& one : plan.steps) {
    const auto* route = std::get_if<RouteStep>(&one.kind);
    if (route != nullptr && route->x == step.routing_weights)
      most = std::max(most, route->n_chosen);
  }
  return most == 0 ? step.experts.size() : most;
}

std::size_t matrix_elements(const Plan& plan) {
  std::size_t count = 0;
  for (const Weight& weight : plan.weights) {
    if (weight.is_matrix()) count += weight.elements();
  }
  return count;
}

}  // namespace stagecraft
