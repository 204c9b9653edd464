#include "model/plan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/overloaded.h"

namespace stagecraft {
namespace {

// "q_proj" for "model.layers.3.self_attn.q_proj.weight", "down_proj" for "mlp.experts.down_proj"
std::string short_name(const std::string& weight) {
  const std::size_t end = weight.rfind('.');
  const std::size_t begin = end == std::string::npos ? end : weight.rfind('.', end - 1);
  if (end == std::string::npos) return weight;
  if (!weight.ends_with(".weight") && !weight.ends_with(".bias")) return weight.substr(end + 1);
  return weight.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1));
}

class PlanText {
 public:
  explicit PlanText(const Plan& plan) : plan_(plan) {}

  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < plan_.steps.size();) {
      const int layer = plan_.steps[i].layer;
      if (layer == kNone) {
        out += indented(lines(i, end_of_layer(i)), 0);
        i = end_of_layer(i);
      } else {
        i = add_layers(i, out);
      }
    }
    return out;
  }

 private:
  struct Line {
    std::string left, right;
  };

  std::size_t end_of_layer(std::size_t i) const {
    const int layer = plan_.steps[i].layer;
    while (i < plan_.steps.size() && plan_.steps[i].layer == layer) ++i;
    return i;
  }

  // Adds all layers from step i on; equal layers are printed once.
  std::size_t add_layers(std::size_t i, std::string& out) const {
    std::vector<std::pair<std::string, std::vector<int>>> kinds;
    while (i < plan_.steps.size() && plan_.steps[i].layer != kNone) {
      const std::size_t end = end_of_layer(i);
      const std::string text = indented(lines(i, end), 2);
      auto kind = std::ranges::find(kinds, text, [](const auto& known) { return known.first; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {text, {}});
      kind->second.push_back(plan_.steps[i].layer);
      i = end;
    }
    for (const auto& [text, layers] : kinds) out += layers_text(layers) + "\n" + text;
    return i;
  }

  // "layer 3", "layers 0 to 4", "layers 0, 2, 4"
  static std::string layers_text(const std::vector<int>& layers) {
    if (layers.size() == 1) return fmt::format("layer {}", layers[0]);
    const bool whole = layers.back() - layers.front() + 1 == static_cast<int>(layers.size());
    if (whole) return fmt::format("layers {} to {}", layers.front(), layers.back());
    return fmt::format("layers {}", fmt::join(layers, ", "));
  }

  static std::string indented(const std::vector<Line>& lines, std::size_t indent) {
    std::string out;
    for (const auto& [left, right] : lines) {
      out += fmt::format("{:{}}{:<8} {}\n", "", indent, left, right);
    }
    return out;
  }

  // Linears of the same input share a line, and so do buffers that are rotated in the same way.
  std::vector<Line> lines(std::size_t begin, std::size_t end) const {
    std::vector<Line> lines;
    while (begin < end) {
      std::size_t last = begin + 1;
      while (last < end && shares_line(plan_.steps[begin], plan_.steps[last])) ++last;
      lines.push_back(line(begin, last));
      begin = last;
    }
    return lines;
  }

  static bool shares_line(const Step& a, const Step& b) {
    const auto* linear = std::get_if<LinearStep>(&a.kind);
    const auto* next_linear = std::get_if<LinearStep>(&b.kind);
    if (linear != nullptr && next_linear != nullptr) return linear->in == next_linear->in;
    const auto* rope = std::get_if<RopeStep>(&a.kind);
    const auto* next_rope = std::get_if<RopeStep>(&b.kind);
    return rope != nullptr && next_rope != nullptr && rope->frequencies == next_rope->frequencies &&
           rope->head_dim == next_rope->head_dim && rope->pairs == next_rope->pairs &&
           rope->first_column == next_rope->first_column;
  }

  Line line(std::size_t begin, std::size_t end) const {
    return std::visit(
        Overloaded{
            [&](const EmbedStep& s) {
              const std::string scale = s.scale == 1.0f ? "" : fmt::format("{:g} * ", s.scale);
              std::vector<std::string> terms;
              if (s.table != kNone) terms.push_back(scale + weight(s.table) + "[token]");
              if (s.positions != kNone) terms.push_back(weight(s.positions) + "[position]");
              if (terms.empty()) terms.emplace_back("rows given by the caller");
              return equals(s.out, fmt::format("{}", fmt::join(terms, " + ")));
            },
            [&](const NormStep& s) {
              const bool groups = s.group != plan_.buffer(s.in).width;
              const bool heads = plan_.steps[begin].layer != kNone;
              const std::string each =
                  heads ? ", each head" : fmt::format(", groups of {}", s.group);
              return equals(
                  s.out,
                  fmt::format("{}({}{}{}{})",
                              s.kind == NormStep::Kind::Rms ? "rms_norm" : "layer_norm",
                              buffer(s.in), groups ? each : "", norm_weight(s), bias(s.bias)));
            },
            [&](const LinearStep& s) {
              std::vector<std::string> outs, weights;
              for (std::size_t i = begin; i < end; ++i) {
                const auto& one = std::get<LinearStep>(plan_.steps[i].kind);
                outs.push_back(buffer(one.out));
                weights.push_back(weight(one.weight) + bias(one.bias));
              }
              return Line{fmt::format("{}", fmt::join(outs, ", ")),
                          fmt::format("= linear({}; {})", buffer(s.in), fmt::join(weights, ", "))};
            },
            [&](const ActivateStep& s) {
              const std::string up =
                  s.up == kNone ? "" : " * " + columns_of_up(s, plan_.steps[begin].layer);
              if (s.function == ActivateStep::Function::Identity) {
                return equals(s.out, buffer(s.gate) + up);
              }
              return equals(s.out,
                            fmt::format("{}({}){}", function(s.function), buffer(s.gate), up));
            },
            [&](const RouteStep& s) { return equals(s.x, route(s)); },
            [&](const ExpertsStep& s) {
              const ExpertsStep::Expert& first = s.experts.front();
              const std::string limit =
                  s.limit == 0.0f
                      ? ""
                      : fmt::format(" of {:g} * g, g up to {:g}, 1 + u", s.alpha, s.limit);
              return equals(s.out,
                            fmt::format("experts({}, {}; {} of {}: {}{}, {}{}, {}{}; {}{})",
                                        buffer(s.in), buffer(s.shares), most_chosen(plan_, s),
                                        s.experts.size(), weight(first.gate), bias(first.gate_bias),
                                        weight(first.up), bias(first.up_bias), weight(first.down),
                                        bias(first.down_bias), function(s.function), limit));
            },
            [&](const AddStep& s) {
              return Line{buffer(s.x), "+= " + scaled(s.scale, s.in)};
            },
            [&](const MapStep& s) {
              const std::string by = s.by == kNone ? "" : weight(s.by) + " * ";
              const std::string x = factor(s.scale) + by + buffer(s.x);
              if (s.clip != 0.0f) {
                return equals(s.x, fmt::format("clip({}; {:g} to {:g})", x, -s.clip, s.clip));
              }
              return equals(s.x, s.soft_cap == 0.0f
                                     ? x
                                     : fmt::format("{0:g} * tanh({1} / {0:g})", s.soft_cap, x));
            },
            [&](const RopeStep& s) {
              std::vector<std::string> names;
              for (std::size_t i = begin; i < end; ++i) {
                names.push_back(buffer(std::get<RopeStep>(plan_.steps[i].kind).x));
              }
              const std::string joined = fmt::format("{}", fmt::join(names, ", "));
              const Frequencies& table = plan_.frequencies[static_cast<std::size_t>(s.frequencies)];
              const std::string part =
                  rotated_text(2 * table.values.size(), s.head_dim, s.first_column);
              const bool halves = s.pairs == RopeStep::Pairs::Halves;
              const bool answer = table.positions == Positions::Answer;
              return Line{joined, fmt::format("= rope({}; {}{}{}{})", joined, table.name, part,
                                              halves ? "" : ", pairs of neighbours",
                                              answer ? ", positions in the answer" : "")};
            },
            [&](const StoreStep& s) {
              return Line{"cache", fmt::format("+= {}, {}", buffer(s.k), buffer(s.v))};
            },
            [&](const AttentionStep& s) {
              return equals(s.out, attention(s, plan_.steps[begin].layer));
            },
            [&](const ShortConvStep& s) {
              return equals(s.out, fmt::format("short_conv({}, state; {}{}, {} taps)", buffer(s.in),
                                               weight(s.taps), bias(s.bias),
                                               plan_.weight(s.taps).shape.back()));
            },
            [&](const DeltaStep& s) {
              const StateShape& state = plan_.state(s.state);
              return equals(
                  s.out,
                  fmt::format("gated_delta({}, {}, {}, state; {} heads, {} key heads{}, {} x {})",
                              buffer(s.in), buffer(s.beta), buffer(s.decay), state.rows / s.key_dim,
                              s.n_key_heads, s.in_turn ? " in turn" : "", s.key_dim, state.width));
            },
            [&](const HeadsLinearStep& s) {
              const std::size_t width = plan_.buffer(s.in).width / s.weights.size();
              const std::size_t inputs = plan_.weight(s.weights[0]).shape[1];
              const std::string columns =
                  inputs == width ? ""
                                  : fmt::format("[{}:{}]", s.first_column, s.first_column + inputs);
              return equals(s.out, fmt::format("linear({}{}, each of {} heads; {})", buffer(s.in),
                                               columns, s.weights.size(), weight(s.weights[0])));
            },
            [&](const JoinStep& s) {
              const std::string heads =
                  s.n_heads == 1 ? "" : fmt::format(", each of {} heads", s.n_heads);
              return equals(s.out, fmt::format("[{}, {}]{}", buffer(s.a), buffer(s.b), heads));
            },
            [&](const SelectStep& s) {
              return equals(s.x, fmt::format("rows of {} that need logits", buffer(s.x)));
            },
        },
        plan_.steps[begin].kind);
  }

  // The layer that stores keys and values in a cache.
  int layer_of(CacheId cache) const {
    const auto store = std::ranges::find_if(plan_.steps, [&](const Step& step) {
      const auto* found = std::get_if<StoreStep>(&step.kind);
      return found != nullptr && found->cache == cache;
    });
    return store == plan_.steps.end() ? kNone : store->layer;
  }

  std::string attention(const AttentionStep& s, int layer) const {
    const CacheShape& cache = plan_.cache(s.cache);
    const int owner = layer_of(s.cache);
    std::string text =
        fmt::format("attention({}, cache{}; {} heads", buffer(s.q),
                    owner == layer ? "" : fmt::format(" of layer {}", owner), s.n_heads);
    if (cache.n_kv_heads != s.n_heads) text += fmt::format(", {} kv heads", cache.n_kv_heads);
    text += fmt::format(" of {}, scale {:.4g}", cache.head_dim, s.scale);
    if (s.soft_cap != 0.0f) text += fmt::format(", soft cap {:g}", s.soft_cap);
    if (s.window != 0) text += fmt::format(", window {}", s.window);
    if (s.sinks != kNone) text += ", sinks";
    if (plan_.prompt) text += ", no causal mask within the prompt";
    if (!s.slopes.empty()) {
      const auto [least, most] = std::ranges::minmax(s.slopes);
      text += fmt::format(", ALiBi slopes {:.4g} to {:.4g}", most, least);
    }
    return text + ")";
  }

  // "softmax(r); the 2 largest / their sum", "2.5 * sigmoid(r); the 8 largest with bias of 4 of 8
  // groups / their sum"
  std::string route(const RouteStep& s) const {
    const bool softmax = s.score == RouteStep::Score::Softmax;
    const std::size_t n = plan_.buffer(s.x).width;
    const std::string groups =
        s.groups.n == 1 ? "" : fmt::format(" of {} of {} groups", s.groups.n_chosen, s.groups.n);
    return fmt::format("{}{}({}){}{}{}{}", s.scale == 1.0f ? "" : fmt::format("{:g} * ", s.scale),
                       softmax ? "softmax" : "sigmoid", buffer(s.x),
                       s.n_chosen == n ? "" : fmt::format("; the {} largest", s.n_chosen),
                       s.bias == kNone ? "" : " with " + weight(s.bias), groups,
                       s.normed ? " / their sum" : "");
  }

  static const char* function(ActivateStep::Function function) {
    constexpr const char* kNames[kActivationFunctions] = {"silu", "gelu_tanh", "gelu",
                                                          "relu", "sigmoid",   "identity"};
    return kNames[static_cast<std::size_t>(function)];
  }

  Line equals(BufferId out, const std::string& right) const { return {buffer(out), "= " + right}; }
  const std::string& buffer(BufferId id) const { return plan_.buffer(id).name; }
  // "0.22 * o"
  std::string scaled(float scale, BufferId id) const { return factor(scale) + buffer(id); }
  static std::string factor(float scale) {
    return scale == 1.0f ? "" : fmt::format("{:g} * ", scale);
  }
  // "u"; if u is wider than out: "c[8:12]", or "c[this layer's 4]" if each layer has its own
  // columns
  std::string columns_of_up(const ActivateStep& s, int layer) const {
    const std::size_t width = plan_.buffer(s.out).width;
    if (plan_.buffer(s.up).width == width) return buffer(s.up);
    if (layer != kNone && s.first_column == static_cast<std::size_t>(layer) * width) {
      return fmt::format("{}[this layer's {}]", buffer(s.up), width);
    }
    return fmt::format("{}[{}:{}]", buffer(s.up), s.first_column, s.first_column + width);
  }
  // "q_proj"; "qkv_proj[96:128]": rows of a larger tensor; "[0:8 of each 24]": rows that alternate
  // with rows of other weights; "c_fc^T": stored transposed
  std::string weight(WeightId id) const {
    const Weight& one = plan_.weight(id);
    const std::string text = short_name(one.name) + (one.transposed ? "^T" : "");
    if (one.of_inputs != 0) {
      return text + fmt::format("[{}:{}]", one.first_input, one.first_input + one.shape[1]);
    }
    if (one.of_rows == 0) return text;
    if (one.row_block != 0) {
      return text + fmt::format("[{}:{} of each {}]", one.first_row, one.first_row + one.row_block,
                                one.row_stride);
    }
    return text + fmt::format("[{}:{}]", one.first_row, one.first_row + one.shape.front());
  }
  static const char* bias(WeightId id) { return id == kNone ? "" : " + bias"; }
  // "; norm + 1", "; q_norm[each head]"
  std::string norm_weight(const NormStep& s) const {
    if (s.weight == kNone) return "";
    const Weight& one = plan_.weight(s.weight);
    return "; " + weight(s.weight) + (one.shape.front() == s.group ? "" : "[each head]") +
           (one.plus == 0.0f ? "" : fmt::format(" + {:g}", one.plus));
  }

  const Plan& plan_;
};

}  // namespace

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

void PlanWriter::step(std::string name, StepKind kind) {
  plan_.steps.push_back({std::move(kind), layer_, std::move(name)});
}

void PlanWriter::linear(std::string step_name, BufferId out, BufferId in, const std::string& name,
                        bool bias, Weight rows) {
  const std::size_t outputs = plan_.buffer(out).width;
  rows.name = name + ".weight";
  rows.shape = {outputs, plan_.buffer(in).width};
  LinearStep linear{out, in, weight(rows)};
  if (bias) {
    rows.name = name + ".bias";
    rows.shape = {outputs};
    rows.transposed = false;
    linear.bias = weight(std::move(rows));
  }
  step(std::move(step_name), linear);
}

void PlanWriter::norm(std::string step_name, BufferId out, BufferId in, Weight norm_weight,
                      float eps) {
  const std::size_t group = norm_weight.shape[0];
  step(std::move(step_name), NormStep{out, in, weight(std::move(norm_weight)), group, eps});
}

std::string rotated_text(std::size_t columns, std::size_t head_dim, std::size_t first) {
  if (columns == head_dim) return "";
  return fmt::format(", {} of {} columns of each head{}", columns, head_dim,
                     first == 0 ? "" : fmt::format(" from column {}", first));
}

std::string plan_text(const Plan& plan) { return PlanText(plan).text(); }

std::vector<BufferId> buffers_read(const StepKind& kind) {
  using Ids = std::vector<BufferId>;
  return std::visit(Overloaded{
                        [](const EmbedStep&) { return Ids{}; },
                        [](const NormStep& s) { return Ids{s.in}; },
                        [](const LinearStep& s) { return Ids{s.in}; },
                        [](const ActivateStep& s) {
                          return s.up == kNone ? Ids{s.gate} : Ids{s.gate, s.up};
                        },
                        [](const RouteStep& s) { return Ids{s.x}; },
                        [](const ExpertsStep& s) {
                          return Ids{s.in, s.shares};
                        },
                        [](const AddStep& s) {
                          return Ids{s.x, s.in};
                        },
                        [](const MapStep& s) { return Ids{s.x}; },
                        [](const RopeStep& s) { return Ids{s.x}; },
                        [](const StoreStep& s) {
                          return Ids{s.k, s.v};
                        },
                        [](const AttentionStep& s) { return Ids{s.q}; },
                        [](const ShortConvStep& s) { return Ids{s.in}; },
                        [](const DeltaStep& s) {
                          return Ids{s.in, s.beta, s.decay};
                        },
                        [](const HeadsLinearStep& s) { return Ids{s.in}; },
                        [](const JoinStep& s) {
                          return Ids{s.a, s.b};
                        },
                        [](const SelectStep& s) { return Ids{s.x}; },
                    },
                    kind);
}

BufferId buffer_written(const StepKind& kind) {
  return std::visit(Overloaded{
                        [](const EmbedStep& s) { return s.out; },
                        [](const NormStep& s) { return s.out; },
                        [](const LinearStep& s) { return s.out; },
                        [](const ActivateStep& s) { return s.out; },
                        [](const RouteStep& s) { return s.x; },
                        [](const ExpertsStep& s) { return s.out; },
                        [](const AddStep& s) { return s.x; },
                        [](const MapStep& s) { return s.x; },
                        [](const RopeStep& s) { return s.x; },
                        [](const StoreStep&) { return kNone; },
                        [](const AttentionStep& s) { return s.out; },
                        [](const ShortConvStep& s) { return s.out; },
                        [](const DeltaStep& s) { return s.out; },
                        [](const HeadsLinearStep& s) { return s.out; },
                        [](const JoinStep& s) { return s.out; },
                        [](const SelectStep& s) { return s.x; },
                    },
                    kind);
}

std::vector<WeightId> weights_read(const StepKind& kind) {
  using Ids = std::vector<WeightId>;
  Ids ids = std::visit(Overloaded{
                           [](const EmbedStep& s) {
                             return Ids{s.table, s.positions};
                           },
                           [](const NormStep& s) {
                             return Ids{s.weight, s.bias};
                           },
                           [](const LinearStep& s) {
                             return Ids{s.weight, s.bias};
                           },
                           [](const RouteStep& s) { return Ids{s.bias}; },
                           [](const MapStep& s) { return Ids{s.by}; },
                           [](const ExpertsStep& s) {
                             Ids all;
                             for (const ExpertsStep::Expert& one : s.experts) {
                               all.insert(all.end(), {one.gate, one.up, one.down, one.gate_bias,
                                                      one.up_bias, one.down_bias});
                             }
                             return all;
                           },
                           [](const AttentionStep& s) { return Ids{s.sinks}; },
                           [](const ShortConvStep& s) {
                             return Ids{s.taps, s.bias};
                           },
                           [](const DeltaStep& s) {
                             return Ids{s.rate, s.shift};
                           },
                           [](const HeadsLinearStep& s) { return s.weights; },
                           [](const auto&) { return Ids{}; },
                       },
                       kind);
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

BufferId brought_rows(const Plan& plan) {
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
  const std::size_t room = context_limit(plan, capacity) - length;
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
  return std::holds_alternative<StoreStep>(kind) || std::holds_alternative<ShortConvStep>(kind) ||
         std::holds_alternative<DeltaStep>(kind);
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
    if (route != nullptr && route->x == step.shares) most = std::max(most, route->n_chosen);
  }
  return most == 0 ? step.experts.size() : most;
}

std::size_t weight_elements(const Plan& plan, bool matrices) {
  std::size_t count = 0;
  for (const Weight& weight : plan.weights) {
    if (weight.is_matrix() == matrices) count += weight.elements();
  }
  return count;
}

}  // namespace stagecraft
