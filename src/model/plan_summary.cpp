#include "model/plan_summary.h"

#include <algorithm>
#include <ranges>

#include <fmt/ranges.h>

#include "base/number.h"
#include "checkpoint/checkpoint.h"
#include "model/named_tensors.h"
#include "model/plan_text.h"

namespace stagecraft {
namespace {

// All steps of one kind, in order.
template <class Kind>
std::vector<const Kind*> steps_of(const Plan& plan) {
  std::vector<const Kind*> found;
  for (const Step& step : plan.steps) {
    if (const auto* kind = std::get_if<Kind>(&step.kind)) found.push_back(kind);
  }
  return found;
}

// True if the first linear layer that writes this buffer has a bias.
bool has_bias(const Plan& plan, BufferId out) {
  const auto linears = steps_of<LinearStep>(plan);
  const auto found = std::ranges::find(linears, out, &LinearStep::out);
  return found != linears.end() && (*found)->bias != kNone;
}

// "4 heads of 6, 2 for keys and values"; each kind of attention is listed once.
std::string heads_text(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const AttentionStep* step : steps_of<AttentionStep>(plan)) {
    const CacheShape& cache = plan.cache(step->cache);
    std::string text = fmt::format("{} heads of {}", step->n_heads, cache.head_dim);
    if (cache.n_kv_heads != step->n_heads) {
      text += fmt::format(", {} for keys and values", cache.n_kv_heads);
    }
    if (std::ranges::find(kinds, text) == kinds.end()) kinds.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(kinds, "; "));
}

std::string attention_text(const Plan& plan) {
  const auto steps = steps_of<AttentionStep>(plan);
  if (steps.empty()) return "none";
  const AttentionStep& step = *steps.front();
  std::string text = heads_text(plan);
  const auto norms = steps_of<NormStep>(plan);
  if (std::ranges::find(norms, step.q, &NormStep::in) != norms.end()) text += ", norm on q and k";
  const auto linears = steps_of<LinearStep>(plan);
  const auto projection = std::ranges::find(linears, step.out, &LinearStep::in);
  const bool all = projection != linears.end() && (*projection)->bias != kNone;
  if (has_bias(plan, step.q)) text += all ? ", biases" : ", biases on q, k and v";
  if (step.soft_cap != 0.0f) text += fmt::format(", soft cap {}", step.soft_cap);
  if (steps.size() < plan.n_layers) {
    text += fmt::format(", in {} of {} layers", steps.size(), plan.n_layers);
  }
  if (plan.caches.size() < steps.size()) {
    text += fmt::format(", keys and values of {} of {} layers", plan.caches.size(), steps.size());
  }
  return text;
}

// "short convolution of 3 rows in 10 layers". A state has the same size for every length of text.
std::string state_text(const Plan& plan) {
  const auto convs = steps_of<ShortConvStep>(plan);
  std::string text =
      fmt::format("short convolution of {} rows", plan.weight(convs.front()->taps).shape.back());
  if (const auto deltas = steps_of<DeltaStep>(plan); !deltas.empty()) {
    const StateShape& state = plan.state(deltas.front()->state);
    const std::size_t n = state.rows / deltas.front()->key_dim;
    text += fmt::format(", {} of {} x {}", counted(n, "matrix", "matrices"),
                        deltas.front()->key_dim, state.width);
  }
  return text + " in " + counted(convs.size(), "layer");
}

std::string window_text(const Plan& plan) {
  const auto steps = steps_of<AttentionStep>(plan);
  std::size_t window = 0;
  std::size_t layers = 0;
  for (const AttentionStep* step : steps) {
    if (step->window == 0) continue;
    window = step->window;
    ++layers;
  }
  if (layers == 0) return "none";
  if (layers == steps.size()) return fmt::format("{} tokens", grouped(window));
  return fmt::format("{} tokens, on {} of {} layers", grouped(window), layers, steps.size());
}

std::string positions_text(const Plan& plan) {
  std::vector<std::string> names;
  for (const Frequencies& table : plan.frequencies) {
    if (std::ranges::find(names, table.name) == names.end()) names.push_back(table.name);
  }
  const auto attends = steps_of<AttentionStep>(plan);
  if (!attends.empty() && !attends.front()->slopes.empty()) return "ALiBi";
  if (names.empty()) return fmt::format("learned, {} rows", grouped(plan.max_positions));
  const auto steps = steps_of<RopeStep>(plan);
  if (steps.empty()) return "none";
  return fmt::format(
      "RoPE, {}{}", fmt::join(names, "; "),
      rotated_text(2 * plan.frequencies.front().values.size(), steps.front()->head_dim));
}

// True if the embedding table is also the table of the head: the model is tied, and its file does
// not have a second table that differs.
bool is_tied(const Plan& plan, const Checkpoint& checkpoint) {
  const Weight& embedding = plan.weight(steps_of<EmbedStep>(plan).front()->table);
  if (embedding.or_name.empty()) return false;
  const StoredTensor* table = checkpoint.find(embedding.name);
  const StoredTensor* head = checkpoint.find(embedding.or_name);
  return table == nullptr || head == nullptr ||
         (table->dtype == head->dtype && std::ranges::equal(table->bytes, head->bytes));
}

// The parameters that were trained. Old files also contain RoPE frequencies, and a model with tied
// embeddings may store its table twice.
std::size_t parameter_count(const Checkpoint& checkpoint, const Plan& plan, bool tied) {
  std::size_t count = 0;
  for (const StoredTensor* tensor : checkpoint.tensors()) {
    if (!is_not_needed(tensor->name, plan.unused)) count += element_count(*tensor);
  }
  const Weight& embedding = plan.weight(steps_of<EmbedStep>(plan).front()->table);
  const StoredTensor* head = checkpoint.find(embedding.or_name);
  const bool is_twice = checkpoint.find(embedding.name) != nullptr && head != nullptr;
  if (is_twice && tied) count -= element_count(*head);
  return count;
}

// The parameters of the experts that a token does not use.
std::size_t unused_parameters(const Plan& plan) {
  std::size_t count = 0;
  for (const ExpertsStep* step : steps_of<ExpertsStep>(plan)) {
    const std::size_t unchosen = step->experts.size() - most_chosen(plan, *step);
    const std::size_t numbers = 2 * plan.buffer(step->in).width + plan.buffer(step->out).width;
    count += unchosen * expert_width(plan, *step) * numbers;
  }
  return count;
}

// "60, 4 per token, feed-forward 1408; 1, feed-forward 5632"
std::string experts_text(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const ExpertsStep* step : steps_of<ExpertsStep>(plan)) {
    const std::size_t n = step->experts.size(), chosen = most_chosen(plan, *step);
    std::string text = fmt::format("{}{}, feed-forward {}", n,
                                   chosen == n ? "" : fmt::format(", {} per token", chosen),
                                   expert_width(plan, *step));
    if (std::ranges::find(kinds, text) == kinds.end()) kinds.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(kinds, "; "));
}

// The width of x, and the widths inside the feed-forward blocks. The activation of a feed-forward
// block is the last in its layer whose `up` is a whole buffer: Gemma 4's per-layer inputs are
// columns of a wider buffer.
std::string widths_text(const Plan& plan) {
  std::string text = fmt::format("{}", plan.buffer(steps_of<SelectStep>(plan).front()->x).width);
  std::vector<std::size_t> widths;
  std::string name;
  BufferId gate = kNone;
  for (const Step& step : plan.steps | std::views::reverse) {
    const auto* activation = std::get_if<ActivateStep>(&step.kind);
    if (activation == nullptr || (gate != kNone && step.name != name)) continue;
    const std::size_t width = plan.buffer(activation->gate).width;
    const bool whole = activation->up == kNone || plan.buffer(activation->up).width == width;
    if (!whole) continue;
    gate = activation->gate;
    name = step.name;
    if (std::ranges::find(widths, width) == widths.end()) widths.insert(widths.begin(), width);
  }
  if (widths.empty()) return text;  // every layer has experts
  return text + fmt::format(", feed-forward {}{}", fmt::join(widths, " and "),
                            has_bias(plan, gate) ? ", biases" : "");
}

}  // namespace

std::vector<SummaryLine> plan_summary(const Plan& plan, const Checkpoint& checkpoint) {
  const bool tied = is_tied(plan, checkpoint);  // may compare two large tables
  const std::size_t parameters = parameter_count(checkpoint, plan, tied);
  const std::size_t unused = unused_parameters(plan);
  std::vector<SummaryLine> lines = {
      {"architecture", plan.model_type + ", " + counted(plan.n_layers, "layer")},
      {"parameters",
       grouped(parameters) +
           (unused == 0 ? "" : fmt::format(", {} for each token", grouped(parameters - unused)))}};
  const auto add = [&](std::string_view what, std::string value) {
    lines.push_back({what, std::move(value)});
  };
  if (!checkpoint.composed_text().empty()) add("stored as", checkpoint.composed_text());
  add("width", widths_text(plan));
  if (!steps_of<ExpertsStep>(plan).empty()) add("experts", experts_text(plan));
  add("attention", attention_text(plan));
  if (!plan.states.empty()) add("state", state_text(plan));
  add("window", window_text(plan));
  add("positions", positions_text(plan));
  add("context", fmt::format("{} tokens", grouped(plan.max_seq_len)));
  add("vocabulary", fmt::format("{} rows, {}", grouped(plan.vocab_size),
                                tied ? "tied to the output head" : "with an output head"));
  add("end tokens",
      plan.eos_ids.empty() ? "none" : fmt::format("{}", fmt::join(plan.eos_ids, ", ")));
  return lines;
}

}  // namespace stagecraft
