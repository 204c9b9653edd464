#include "model/plan_text.h"

#include <algorithm>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/activation_names.h"

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
    for (Steps rest = plan_.steps; !rest.empty();) {
      if (rest[0].layer == kNone) {
        out += indented(lines(take_layer(rest)), 0);
      } else {
        add_layers(rest, out);
      }
    }
    return out;
  }

 private:
  struct Line {
    std::string left, right;
  };

  using Steps = std::span<const Step>;

  // Removes the steps of one layer from the beginning of `rest`, and returns them.
  static Steps take_layer(Steps& rest) {
    const auto of_another = [&](const Step& step) { return step.layer != rest[0].layer; };
    const auto n = std::ranges::find_if(rest, of_another) - rest.begin();
    const Steps steps = rest.first(static_cast<std::size_t>(n));
    rest = rest.subspan(steps.size());
    return steps;
  }

  // Removes all layers from the beginning of `rest`, and adds them to `out`; equal layers are
  // printed once.
  void add_layers(Steps& rest, std::string& out) const {
    std::vector<std::pair<std::string, std::vector<int>>> kinds;
    while (!rest.empty() && rest[0].layer != kNone) {
      const Steps steps = take_layer(rest);
      const std::string text = indented(lines(steps), 2);
      auto kind = std::ranges::find(kinds, text, [](const auto& known) { return known.first; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {text, {}});
      kind->second.push_back(steps[0].layer);
    }
    for (const auto& [text, layers] : kinds) out += layers_text(layers) + "\n" + text;
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
  std::vector<Line> lines(Steps steps) const {
    std::vector<Line> lines;
    while (!steps.empty()) {
      std::size_t n = 1;
      while (n < steps.size() && shares_line(steps[0], steps[n])) ++n;
      lines.push_back(line(steps.first(n)));
      steps = steps.subspan(n);
    }
    return lines;
  }

  static bool shares_line(const Step& a, const Step& b) {
    const auto* linear = std::get_if<LinearStep>(&a.kind);
    const auto* next_linear = std::get_if<LinearStep>(&b.kind);
    if (linear != nullptr && next_linear != nullptr) return linear->in == next_linear->in;
    const auto* rope = std::get_if<RopeStep>(&a.kind);
    const auto* next_rope = std::get_if<RopeStep>(&b.kind);
    return rope != nullptr && next_rope != nullptr && rope->same_rotation(*next_rope);
  }

  // One line for these steps: several LinearSteps or RopeSteps, or one step of another kind.
  Line line(Steps steps) const {
    return std::visit([&](const auto& first) { return line_of(first, steps); }, steps[0].kind);
  }

  Line line_of(const EmbedStep& s, Steps) const {
    const std::string scale = factor(s.scale);
    std::vector<std::string> terms;
    if (s.table != kNone) terms.push_back(scale + weight(s.table) + "[token]");
    if (s.positions != kNone) terms.push_back(weight(s.positions) + "[position]");
    if (terms.empty()) terms.emplace_back("rows given by the caller");
    return equals(s.out, fmt::format("{}", fmt::join(terms, " + ")));
  }

  Line line_of(const NormStep& s, Steps steps) const {
    const bool groups = s.group != plan_.buffer(s.in).width;
    const bool heads = steps[0].layer != kNone;
    const std::string each = heads ? ", each head" : fmt::format(", groups of {}", s.group);
    return equals(
        s.out,
        fmt::format("{}({}{}{}{})", s.kind == NormStep::Kind::Rms ? "rms_norm" : "layer_norm",
                    buffer(s.in), groups ? each : "", norm_weight(s), bias(s.bias)));
  }

  Line line_of(const LinearStep& s, Steps steps) const {
    std::vector<std::string> outs, weights;
    for (const Step& step : steps) {
      const auto& one = std::get<LinearStep>(step.kind);
      outs.push_back(buffer(one.out));
      weights.push_back(weight(one.weight) + bias(one.bias));
    }
    return {fmt::format("{}", fmt::join(outs, ", ")),
            fmt::format("= linear({}; {})", buffer(s.in), fmt::join(weights, ", "))};
  }

  Line line_of(const ActivateStep& s, Steps steps) const {
    const std::string up = s.up == kNone ? "" : " * " + columns_of_up(s, steps[0].layer);
    if (s.function == ActivateStep::Function::Identity) {
      return equals(s.out, buffer(s.gate) + up);
    }
    return equals(s.out,
                  fmt::format("{}({}){}", names_of(s.function).function, buffer(s.gate), up));
  }

  // "softmax(r); the 2 largest / their sum", "2.5 * sigmoid(r); the 8 largest with bias of 4 of 8
  // groups / their sum"
  Line line_of(const RouteStep& s, Steps) const {
    const bool softmax = s.score == RouteStep::Score::Softmax;
    const std::size_t n = plan_.buffer(s.x).width;
    const std::string groups =
        s.groups.n == 1 ? "" : fmt::format(" of {} of {} groups", s.groups.n_chosen, s.groups.n);
    return equals(
        s.x,
        fmt::format("{}{}({}){}{}{}{}", factor(s.scale), softmax ? "softmax" : "sigmoid",
                    buffer(s.x), s.n_chosen == n ? "" : fmt::format("; the {} largest", s.n_chosen),
                    s.bias == kNone ? "" : " with " + weight(s.bias), groups,
                    s.normed ? " / their sum" : ""));
  }

  Line line_of(const ExpertsStep& s, Steps) const {
    const ExpertsStep::Expert& first = s.experts.front();
    const std::string limit =
        s.limit == 0.0f ? "" : fmt::format(" of {:g} * g, g up to {:g}, 1 + u", s.alpha, s.limit);
    return equals(s.out, fmt::format("experts({}, {}; {} of {}: {}{}, {}{}, {}{}; {}{})",
                                     buffer(s.in), buffer(s.routing_weights), most_chosen(plan_, s),
                                     s.experts.size(), weight(first.gate), bias(first.gate_bias),
                                     weight(first.up), bias(first.up_bias), weight(first.down),
                                     bias(first.down_bias), names_of(s.function).function, limit));
  }

  Line line_of(const AddStep& s, Steps) const {
    return {buffer(s.x), "+= " + scaled(s.scale, s.in)};
  }

  Line line_of(const MapStep& s, Steps) const {
    const std::string by = s.by == kNone ? "" : weight(s.by) + " * ";
    const std::string x = factor(s.scale) + by + buffer(s.x);
    if (s.clip != 0.0f) {
      return equals(s.x, fmt::format("clip({}; {:g} to {:g})", x, -s.clip, s.clip));
    }
    return equals(s.x,
                  s.soft_cap == 0.0f ? x : fmt::format("{0:g} * tanh({1} / {0:g})", s.soft_cap, x));
  }

  Line line_of(const RopeStep& s, Steps steps) const {
    std::vector<std::string> names;
    for (const Step& step : steps) {
      names.push_back(buffer(std::get<RopeStep>(step.kind).x));
    }
    const std::string joined = fmt::format("{}", fmt::join(names, ", "));
    const Frequencies& table = plan_.table(s.frequencies);
    const std::string part = rotated_text(2 * table.values.size(), s.head_dim, s.first_column);
    const bool halves = s.pairs == RopeStep::Pairs::Halves;
    const bool answer = table.positions == Positions::Answer;
    return {joined, fmt::format("= rope({}; {}{}{}{})", joined, table.name, part,
                                halves ? "" : ", pairs of neighbours",
                                answer ? ", positions in the answer" : "")};
  }

  Line line_of(const StoreStep& s, Steps) const {
    return {"cache", fmt::format("+= {}, {}", buffer(s.k), buffer(s.v))};
  }

  Line line_of(const AttentionStep& s, Steps steps) const {
    const CacheShape& cache = plan_.cache(s.cache);
    const int owner = layer_of(s.cache);
    std::string text =
        fmt::format("attention({}, cache{}; {} heads", buffer(s.q),
                    owner == steps[0].layer ? "" : fmt::format(" of layer {}", owner), s.n_heads);
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
    return equals(s.out, text + ")");
  }

  Line line_of(const ShortConvStep& s, Steps) const {
    return equals(s.out,
                  fmt::format("short_conv({}, state; {}{}, {} taps)", buffer(s.in), weight(s.taps),
                              bias(s.bias), plan_.weight(s.taps).shape.back()));
  }

  Line line_of(const DeltaStep& s, Steps) const {
    const StateShape& state = plan_.state(s.state);
    return equals(s.out,
                  fmt::format("gated_delta({}, {}, {}, state; {} heads, {} key heads{}, {} x {})",
                              buffer(s.in), buffer(s.beta), buffer(s.decay), state.rows / s.key_dim,
                              s.n_key_heads, s.in_turn ? " in turn" : "", s.key_dim, state.width));
  }

  Line line_of(const HeadsLinearStep& s, Steps) const {
    const std::size_t width = plan_.buffer(s.in).width / s.weights.size();
    const std::size_t inputs = plan_.weight(s.weights[0]).shape[1];
    const std::string columns =
        inputs == width ? "" : fmt::format("[{}:{}]", s.first_column, s.first_column + inputs);
    return equals(s.out, fmt::format("linear({}{}, each of {} heads; {})", buffer(s.in), columns,
                                     s.weights.size(), weight(s.weights[0])));
  }

  Line line_of(const JoinStep& s, Steps) const {
    const std::string heads = s.n_heads == 1 ? "" : fmt::format(", each of {} heads", s.n_heads);
    return equals(s.out, fmt::format("[{}, {}]{}", buffer(s.a), buffer(s.b), heads));
  }

  Line line_of(const SelectStep& s, Steps) const {
    return equals(s.x, fmt::format("rows of {} that need logits", buffer(s.x)));
  }

  // The layer that stores keys and values in a cache.
  int layer_of(CacheId cache) const {
    const auto store = std::ranges::find_if(plan_.steps, [&](const Step& step) {
      const auto* found = std::get_if<StoreStep>(&step.kind);
      return found != nullptr && found->cache == cache;
    });
    return store == plan_.steps.end() ? kNone : store->layer;
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
    const Storage& in = one.stored;
    const std::string text = short_name(one.name) + (in.transposed ? "^T" : "");
    if (in.of_inputs != 0) {
      return text + fmt::format("[{}:{}]", in.first_input, in.first_input + one.shape[1]);
    }
    if (in.of_rows == 0) return text;
    if (in.row_block != 0) {
      return text + fmt::format("[{}:{} of each {}]", in.first_row, in.first_row + in.row_block,
                                in.row_stride);
    }
    return text + fmt::format("[{}:{}]", in.first_row, in.first_row + one.shape.front());
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

std::string rotated_text(std::size_t columns, std::size_t head_dim, std::size_t first) {
  if (columns == head_dim) return "";
  return fmt::format(", {} of {} columns of each head{}", columns, head_dim,
                     first == 0 ? "" : fmt::format(" from column {}", first));
}

std::string plan_text(const Plan& plan) { return PlanText(plan).text(); }

LineDifference first_difference(const std::string& expected, const std::string& found) {
  std::istringstream left(expected), right(found);
  LineDifference lines;
  do {
    if (!std::getline(left, lines.expected)) lines.expected = "the end";
    if (!std::getline(right, lines.found)) lines.found = "the end";
  } while (lines.expected == lines.found && (left || right));
  return lines;
}

}  // namespace stagecraft
