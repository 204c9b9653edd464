#include "tests/backends/conformance_cases.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include "checkpoint/convert_tensor.h"
#include "formats/gguf/writer.h"
#include "model/placement.h"
#include "model/plan_weights.h"
#include "model/plan_writer.h"
#include "tensor/matrix.h"
#include "tests/support/random_blocks.h"

namespace stagecraft {
namespace {

class Builder {
 public:
  Builder(DType dtype, std::size_t index, std::mt19937& random)
      : dtype_(dtype),
        odd_(index % 2 == 1),
        large_(index / 2 % 2 == 1),
        random_(random),
        w_(made_.plan) {
    made_.plan.model_type = "conformance";
    made_.plan.max_seq_len = 256;
  }

  ConformanceCase build(const std::string& step, const std::filesystem::path& file) {
    made_.step = step;
    if (step == "embed") embed_case();
    if (step == "norm") norm_case(NormStep::Kind::Rms);
    if (step == "layer norm") norm_case(NormStep::Kind::Layer);
    if (step == "norm, add") norm_add_case(NormStep::Kind::Rms);
    if (step == "layer norm, add") norm_add_case(NormStep::Kind::Layer);
    if (step == "linear") linear_case();
    if (step == "linear, add") linear_add_case();
    if (step == "transposed") transposed_case();
    if (step == "linear, columns") columns_case();
    if (step == "linear, slices") slices_case();
    if (step == "linear, relu") activation_case(ActivateStep::Function::Relu);
    if (step == "linear, silu") activation_case(ActivateStep::Function::Silu);
    if (step == "linear, gelu") activation_case(ActivateStep::Function::Gelu);
    if (step == "linear, tanh") activation_case(ActivateStep::Function::GeluTanh);
    if (step == "silu gate") gate_case(ActivateStep::Function::Silu);
    if (step == "gelu gate") gate_case(ActivateStep::Function::Gelu);
    if (step == "tanh gate") gate_case(ActivateStep::Function::GeluTanh);
    if (step == "product") product_case(ActivateStep::Function::Identity);
    if (step == "sigmoid product") product_case(ActivateStep::Function::Sigmoid);
    if (step == "short conv") short_conv_case();
    if (step == "gated delta") delta_case();
    if (step == "route") route_case(false);
    if (step == "route groups") route_case(true);
    if (step == "experts") experts_case(false);
    if (step == "clamped experts") experts_case(true);
    if (step == "linear of heads") heads_case();
    if (step == "attention") attention_case(Attends::Usual);
    if (step == "alibi") attention_case(Attends::Alibi);
    if (step == "sinks") attention_case(Attends::Sinks);
    if (step == "shared cache") attention_case(Attends::Shared);
    if (step == "prompt") attention_case(Attends::Prompt);
    if (step == "map") map_case();
    if (step == "select") select_case();
    // Keys are stored in chunks of 64 positions, so some texts have one chunk, others several.
    const std::size_t n = has_cache(step) && large_ ? pick(130, 200) : pick(1, kMostTokens);
    for (std::size_t i = 0; i < n; ++i) {
      made_.tokens.push_back(static_cast<TokenId>(random_() % made_.plan.vocab_size));
    }
    if (made_.plan.prompt) place_prompt(*made_.plan.prompt);
    write(file);
    return std::move(made_);
  }

 private:
  std::size_t pick(std::size_t least, std::size_t most) {
    return least + random_() % (most - least + 1);
  }
  bool coin() { return random_() % 2 == 0; }
  static constexpr std::size_t kMostTokens = 40;  // of a text without attention

  // The width of a row that is multiplied: whole blocks.
  std::size_t inputs() {
    const std::size_t block = dtype_block(dtype_).elements;
    return block == 1 ? pick(1, 150) : block == 256 ? 256 * pick(1, 2) : block * pick(1, 5);
  }
  std::size_t outputs() { return large_ ? pick(41, 150) : pick(1, 40); }

  // Weights of the tested step have type dtype_; the others are F32.
  WeightId weight(std::string name, std::vector<std::size_t> shape, bool typed = false,
                  float plus = 0.0f) {
    typed_[name] = typed;
    return w_.weight({std::move(name), std::move(shape), "", plus});
  }
  void embed(BufferId x, std::size_t rows, bool typed = false, float scale = 1.0f) {
    made_.plan.vocab_size = rows;
    const std::size_t width = made_.plan.buffer(x).width;
    w_.step("embedding", EmbedStep{x, weight("table", {rows, width}, typed), scale});
  }
  void linear(BufferId out, BufferId in, const std::string& name, bool typed, bool bias) {
    const std::size_t o = made_.plan.buffer(out).width, i = made_.plan.buffer(in).width;
    LinearStep step{out, in, weight(name, {o, i}, typed)};
    if (bias) step.bias = weight(name + ".bias", {o});
    w_.step(name, step);
  }
  // Makes the rows of x the logits, by a product with the identity.
  void show(BufferId x) {
    w_.step("", SelectStep{x});
    show_selected(x);
  }
  void show_selected(BufferId x) {
    const std::size_t width = made_.plan.buffer(x).width;
    made_.plan.logits = w_.buffer("logits", width);
    const WeightId identity = weight(std::string(kIdentity), {width, width});
    w_.step("logits", LinearStep{made_.plan.logits, x, identity});
  }

  void embed_case() {
    const BufferId x = w_.buffer("x", inputs());
    const float scale = coin() ? 1.0f : 2.75f;
    const std::size_t width = made_.plan.buffer(x).width;
    embed(x, width, true, scale);
    if (odd_) {
      made_.plan.max_positions = kMostTokens;
      std::get<EmbedStep>(made_.plan.steps.back().kind).positions =
          weight("positions", {kMostTokens, width}, true);
    }
    if (odd_ && large_) {  // the positions have their own step
      EmbedStep& tokens = std::get<EmbedStep>(made_.plan.steps.back().kind);
      const BufferId y = w_.buffer("y", width);
      const EmbedStep positions{y, kNone, 1.0f, std::exchange(tokens.positions, kNone)};
      w_.step("positions", positions);
      w_.step("sum", AddStep{x, y});
    }
    show(x);
    made_.shape = fmt::format("{}, scale {}{}", width, scale, odd_ ? ", positions" : "");
  }

  NormStep norm(NormStep::Kind kind, BufferId out, BufferId in, const std::string& name,
                std::size_t group, float plus = 0.0f) {
    const bool layer = kind == NormStep::Kind::Layer;
    const std::size_t width = made_.plan.buffer(in).width;
    const std::size_t size = odd_ ? width : group;  // the weights of each group, or shared ones
    NormStep step{out, in, kNone, group, 1e-2f, kind};
    if (!large_ || odd_) step.weight = weight(name, {size}, false, plus);
    if (layer && !large_) step.bias = weight(name + ".bias", {group});
    return step;
  }
  std::string norm_text(NormStep::Kind kind) const {
    if (!large_) return "";
    if (!odd_) return ", no weight";
    return kind == NormStep::Kind::Rms ? "" : ", no bias";
  }

  void norm_case(NormStep::Kind kind) {
    const std::size_t width = pick(1, 150);
    const BufferId x = w_.buffer("x", width), n = w_.buffer("n", width);
    embed(x, width);
    const float plus = coin() ? 0.0f : 1.0f;
    w_.step("", SelectStep{x});
    w_.step("norm", norm(kind, n, x, "norm", width, plus));
    // A norm that cannot be fused with the linear after it, because a second norm reads its result.
    if (odd_) w_.step("again", norm(kind, n, n, "second", width));
    show_selected(n);
    made_.shape =
        fmt::format("{}, plus {}{}{}", width, plus, odd_ ? ", twice" : "", norm_text(kind));
  }

  void norm_add_case(NormStep::Kind kind) {
    const std::size_t width = pick(1, 150);
    const BufferId x = w_.buffer("x", width), y = w_.buffer("y", width);
    embed(x, width);
    linear(y, x, "w", false, false);
    w_.step("norm", norm(kind, y, y, "norm", width));
    const float scale = odd_ ? 0.375f : 1.0f;
    w_.step("sum", AddStep{x, y, scale});
    show(x);
    made_.shape = fmt::format("{}, scale {}", width, scale);
  }

  void linear_case() {
    const BufferId x = w_.buffer("x", inputs()), y = w_.buffer("y", outputs());
    const bool bias = odd_;
    embed(x, made_.plan.buffer(y).width);
    linear(y, x, "w", true, bias);
    // In large cases (several panels), the weight is some rows of a taller tensor.
    Weight& rows = weight_of_last_step();
    if (large_) take_some(rows);
    made_.shape = fmt::format("{} -> {}{}{}", made_.plan.buffer(x).width,
                              made_.plan.buffer(y).width, bias ? ", bias" : "", rows_text(rows));
    show(y);
  }

  Weight& weight_of_last_step() {
    const auto step = std::get<LinearStep>(made_.plan.steps.back().kind);
    return made_.plan.weights[static_cast<std::size_t>(step.weight)];
  }

  // Makes a weight some rows of a taller tensor. In odd cases, they alternate with other rows.
  void take_some(Weight& rows) {
    const std::size_t n = rows.shape[0];
    rows.stored.first_row = pick(1, 40);
    rows.stored.of_rows = rows.stored.first_row + n + pick(0, 9);
    if (!odd_) return;
    rows.stored.row_block = pick(1, 20);
    rows.stored.row_stride = rows.stored.row_block + pick(1, 20);
    rows.stored.of_rows = rows.stored.row(n - 1) + 1 + pick(0, 9);
  }
  static std::string rows_text(const Weight& rows) {
    if (rows.stored.of_rows == 0) return "";
    if (rows.stored.row_block == 0) return fmt::format(", from row {}", rows.stored.first_row);
    return fmt::format(", {} of each {} rows from row {}", rows.stored.row_block,
                       rows.stored.row_stride, rows.stored.first_row);
  }

  void transposed_case() {
    const BufferId x = w_.buffer("x", inputs()), y = w_.buffer("y", outputs());
    embed(x, made_.plan.buffer(y).width);
    linear(y, x, "w", true, coin());
    Weight& rows = weight_of_last_step();
    rows.stored.transposed = true;
    if (large_) take_some(rows);
    made_.shape = fmt::format("{} -> {}{}", made_.plan.buffer(x).width, made_.plan.buffer(y).width,
                              rows_text(rows));
    show(y);
  }

  // The weight is some columns of a wider matrix, in large cases also only some of its rows.
  void columns_case() {
    const BufferId x = w_.buffer("x", inputs()), y = w_.buffer("y", outputs());
    embed(x, made_.plan.buffer(y).width);
    linear(y, x, "w", true, coin());
    Weight& columns = weight_of_last_step();
    columns.stored.first_input = pick(odd_ ? 1 : 0, 40);
    columns.stored.of_inputs =
        columns.stored.first_input + made_.plan.buffer(x).width + pick(odd_ ? 0 : 1, 9);
    columns.stored.transposed = odd_ && large_;
    if (large_) take_some(columns);
    made_.shape = fmt::format("{} -> {}, from column {}{}{}", made_.plan.buffer(x).width,
                              made_.plan.buffer(y).width, columns.stored.first_input,
                              columns.stored.transposed ? ", transposed" : "", rows_text(columns));
    show(y);
  }

  // The weight is one of several matrices in a tensor. So is the bias, or it is stored as a matrix.
  void slices_case() {
    const BufferId x = w_.buffer("x", inputs()), y = w_.buffer("y", 2 * outputs());
    embed(x, made_.plan.buffer(y).width);
    linear(y, x, "w", true, true);
    const std::size_t n = pick(2, 5), slice = pick(0, n - 1);
    Weight& matrix = weight_of_last_step();
    matrix.stored.of_slices = n;
    matrix.stored.slice = slice;
    if (large_) take_some(matrix);
    Weight& bias = made_.plan.weights.back();
    if (odd_) {
      bias.stored.folded_rows = 2;
    } else {
      bias.stored.of_slices = n;
      bias.stored.slice = slice;
    }
    made_.shape = fmt::format("{} -> {}, slice {} of {}{}{}", made_.plan.buffer(x).width,
                              made_.plan.buffer(y).width, slice, n, rows_text(matrix),
                              odd_ ? ", bias of two rows" : "");
    show(y);
  }

  void activation_case(ActivateStep::Function function) {
    const BufferId x = w_.buffer("x", inputs()), g = w_.buffer("g", outputs());
    embed(x, made_.plan.buffer(g).width);
    linear(g, x, "up", true, odd_);
    w_.step("activated", ActivateStep{g, g, kNone, function});
    show(g);
    made_.shape = fmt::format("{} -> {}{}", made_.plan.buffer(x).width, made_.plan.buffer(g).width,
                              odd_ ? ", bias" : "");
  }

  void linear_add_case() {
    const BufferId x = w_.buffer("x", outputs()), h = w_.buffer("h", inputs());
    const BufferId y = w_.buffer("y", made_.plan.buffer(x).width);
    const bool bias = odd_;
    embed(x, made_.plan.buffer(x).width);
    linear(h, x, "v", false, false);
    linear(y, h, "w", true, bias);
    const float scale = large_ ? 0.22f : 1.0f;
    w_.step("sum", AddStep{x, y, scale});
    show(x);
    made_.shape = fmt::format("{} -> {}{}, scale {}", made_.plan.buffer(h).width,
                              made_.plan.buffer(x).width, bias ? ", bias" : "", scale);
  }

  void gate_case(ActivateStep::Function function) {
    const BufferId x = w_.buffer("x", inputs()), g = w_.buffer("g", outputs());
    const BufferId u = w_.buffer("u", made_.plan.buffer(g).width);
    const bool bias = odd_;
    embed(x, made_.plan.buffer(g).width);
    linear(g, x, "gate", true, bias);
    linear(u, x, "up", true, bias);
    w_.step("gated", ActivateStep{g, g, u, function});
    show(g);
    made_.shape = fmt::format("{} -> {}{}", made_.plan.buffer(x).width, made_.plan.buffer(g).width,
                              bias ? ", bias" : "");
  }

  // A gate that cannot be fused with the linears before it.
  void product_case(ActivateStep::Function function) {
    const std::size_t width = pick(1, 150);
    const BufferId x = w_.buffer("x", width), g = w_.buffer("g", width);
    embed(x, width);
    linear(g, x, "g", false, false);
    const bool alone = odd_ && large_, wider = large_ && !odd_;
    ActivateStep step{odd_ ? x : g, g, alone ? kNone : x, function};
    if (wider) {  // some columns of another buffer
      step.first_column = pick(0, 40);
      step.up = w_.buffer("u", step.first_column + width + pick(step.first_column == 0 ? 1 : 0, 9));
      linear(step.up, x, "u", false, false);
    }
    w_.step("gated", step);
    show(odd_ ? x : g);
    made_.shape = fmt::format("{}{}{}{}", width, odd_ ? ", into what is gated" : "",
                              alone ? ", without a product" : "",
                              wider ? fmt::format(", from column {}", step.first_column) : "");
  }

  void short_conv_case() {
    const std::size_t width = pick(2, 75) * 2, n_taps = odd_ ? pick(1, 3) : pick(4, 7);
    const BufferId x = w_.buffer("x", width), y = w_.buffer("y", width);
    embed(x, width);
    ShortConvStep step{y, x, weight("taps", {width, n_taps}, true), w_.state({n_taps - 1, width})};
    made_.plan.weights.back().stored.taps = odd_;
    if (odd_) step.bias = weight("bias", {width});
    w_.step("conv", step);
    // What is read only after the last state: computed for the scored rows.
    const BufferId z = w_.buffer("z", width);
    linear(z, x, "z", false, false);
    const BufferId again = w_.buffer("again", width);
    if (large_) {
      const StateId second = w_.state({2, width});
      w_.step("second", ShortConvStep{again, y, weight("more", {width, 3}), second});
      w_.step("sum", AddStep{y, again});
    }
    w_.step("gated", ActivateStep{y, z, y, ActivateStep::Function::Identity});
    show(y);
    made_.shape = fmt::format("{}, {} taps{}{}", width, n_taps, odd_ ? ", bias" : "",
                              large_ ? ", twice" : "");
  }

  void delta_case() {
    const std::size_t n_key_heads = pick(1, 3), n_heads = n_key_heads * (odd_ ? 2 : 1);
    const std::size_t key_dim = pick(1, 40), value_dim = large_ ? pick(33, 80) : pick(1, 32);
    const std::size_t values = n_heads * value_dim;
    const BufferId x = w_.buffer("x", 24);
    const BufferId in = w_.buffer("in", 2 * n_key_heads * key_dim + values);
    const BufferId beta = w_.buffer("beta", n_heads), decay = w_.buffer("decay", n_heads);
    const BufferId y = w_.buffer("y", values), z = w_.buffer("z", values);
    embed(x, values);
    linear(in, x, "in", false, false);
    linear(beta, x, "beta", false, false);
    linear(decay, x, "decay", false, false);
    linear(z, x, "z", false, false);
    const WeightId rate = weight("rate", {n_heads}), shift = weight("shift", {n_heads});
    w_.step("delta",
            DeltaStep{y, in, beta, decay, rate, shift, w_.state({n_heads * key_dim, value_dim}),
                      n_key_heads, key_dim, large_});
    // What is read only after the last state: computed for the scored rows.
    w_.step("gated", ActivateStep{y, z, y, ActivateStep::Function::Sigmoid});
    show(y);
    made_.shape = fmt::format("{} heads, {} key heads{}, {} x {}", n_heads, n_key_heads,
                              large_ ? " in turn" : "", key_dim, value_dim);
  }

  // The scores come from a table of multiples of 1/1024, so that rounding cannot change which
  // experts are chosen. In every second row some scores occur twice, so that ties are tested.
  BufferId route(std::size_t rows, std::size_t n_experts) {
    const BufferId r = w_.buffer("r", n_experts);
    w_.step("router", EmbedStep{r, weight("scores", {rows, n_experts})});
    const auto score = odd_ ? RouteStep::Score::Sigmoid : RouteStep::Score::Softmax;
    w_.step("routing_weights", RouteStep{r, pick(1, n_experts), odd_ != large_, score});
    return r;
  }
  std::string route_text() const {
    for (const Step& step : made_.plan.steps) {
      const auto* route = std::get_if<RouteStep>(&step.kind);
      if (route == nullptr) continue;
      return fmt::format("{} of {} experts{}{}", route->n_chosen, made_.plan.buffer(route->x).width,
                         route->normed ? ", normed" : "",
                         route->score == RouteStep::Score::Sigmoid ? ", sigmoid" : "");
    }
    return "";
  }

  // groups: several groups of equal size, a scale and perhaps a bias. Otherwise one group and no
  // bias.
  void route_case(bool groups) {
    std::size_t n_experts = large_ ? pick(20, 130) : pick(1, 9);
    if (!groups) {
      made_.plan.vocab_size = n_experts;
      show(route(n_experts, n_experts));
      made_.shape = route_text();
      return;
    }
    const std::size_t size = pick(2, large_ ? 16 : 4);
    RouteGroups of{pick(1, 8), 1, odd_ ? std::size_t{1} : std::size_t{2}};
    n_experts = of.n * size;
    made_.plan.vocab_size = n_experts;
    const BufferId r = route(n_experts, n_experts);
    RouteStep& step = std::get<RouteStep>(made_.plan.steps.back().kind);
    of.n_chosen = pick(1, of.n);
    step.n_chosen = pick(1, size * of.n_chosen);
    step.groups = of;
    step.scale = 2.5f;
    if (!odd_) step.bias = weight("bias", {n_experts});
    show(r);
    made_.shape =
        fmt::format("{}, {} of {} groups{}", route_text(), of.n_chosen, of.n, odd_ ? "" : ", bias");
  }

  // Heads of the result lie beside other heads, and their size is not a multiple of a panel.
  void heads_case() {
    const std::size_t n_heads = pick(1, 5), from = inputs(), rest = pick(1, 9);
    const std::size_t first = odd_ ? pick(1, 20) : 0, to = large_ ? pick(33, 80) : pick(1, 31);
    const BufferId x = w_.buffer("x", n_heads * (first + from + (large_ ? pick(1, 9) : 0)));
    const BufferId y = w_.buffer("y", n_heads * to), z = w_.buffer("z", n_heads * rest);
    const BufferId both = w_.buffer("both", n_heads * (to + rest));
    embed(x, made_.plan.buffer(both).width);
    linear(z, x, "z", false, false);
    HeadsLinearStep step{y, x, {}, first};
    for (std::size_t head = 0; head < n_heads; ++head) {
      step.weights.push_back(weight(fmt::format("head.{}", head), {to, from}, true));
      made_.plan.weights.back().exact = true;
    }
    w_.step("heads", step);
    w_.step("both", odd_ ? JoinStep{both, z, y, n_heads} : JoinStep{both, y, z, n_heads});
    show(both);
    made_.shape = fmt::format("{} heads, {} -> {}, from column {}", n_heads, from, to, first);
  }

  // The sum of the experts; in large cases it is added to another buffer. Clamped experts have
  // biases, too.
  void experts_case(bool clamped) {
    const std::size_t n_experts = large_ ? pick(9, 16) : pick(1, 5), hidden = inputs();
    const BufferId x = w_.buffer("x", inputs()), y = w_.buffer("y", outputs());
    const std::size_t width = made_.plan.buffer(x).width, rows = made_.plan.buffer(y).width;
    embed(x, rows);
    ExpertsStep step{y, x, route(rows, n_experts), {}};
    step.function = odd_ ? ActivateStep::Function::Gelu : ActivateStep::Function::Silu;
    for (std::size_t e = 0; e < n_experts; ++e) {
      const auto matrix = [&](const char* name, std::size_t outputs, std::size_t inputs) {
        return weight(fmt::format("{}.{}", e, name), {outputs, inputs}, true);
      };
      step.experts.push_back({matrix("gate", hidden, width), matrix("up", hidden, width),
                              matrix("down", rows, hidden)});
      if (!clamped) continue;
      const auto bias = [&](const char* name, std::size_t n) {
        return weight(fmt::format("{}.{}.bias", e, name), {n});
      };
      ExpertsStep::Expert& expert = step.experts.back();
      expert.gate_bias = bias("gate", hidden);
      expert.up_bias = bias("up", hidden);
      expert.down_bias = bias("down", rows);
      step.limit = 0.7f;
      step.alpha = 1.702f;
    }
    BufferId shown = y;
    if (large_) {
      shown = w_.buffer("sum", rows);
      w_.step("", EmbedStep{shown, weight("sum", {rows, rows})});
    }
    w_.step("experts", step);
    if (large_) w_.step("sum", AddStep{shown, y});
    show(shown);
    made_.shape = fmt::format("{} -> {} -> {}, {}", width, hidden, rows, route_text());
  }

  enum class Attends { Usual, Alibi, Prompt, Sinks, Shared };
  void attention_case(Attends how) {
    const bool alibi = how == Attends::Alibi, prompt = how == Attends::Prompt;
    const std::size_t group = pick(1, 5), n_kv_heads = pick(1, 3);
    const std::size_t head_dim = 2 * pick(prompt ? 2 : 1, 40);
    const std::size_t q_dim = group * n_kv_heads * head_dim, kv_dim = n_kv_heads * head_dim;
    const BufferId x = w_.buffer("x", 24), q = w_.buffer("q", q_dim), k = w_.buffer("k", kv_dim);
    const BufferId v = w_.buffer("v", kv_dim), a = w_.buffer("a", q_dim);
    embed(x, q_dim);
    linear(q, x, "q", false, false);
    linear(k, x, "k", false, false);
    linear(v, x, "v", false, false);
    const bool norms = coin(), rows = coin(), rotate = large_ || coin();
    const auto pairs = odd_ ? RopeStep::Pairs::Neighbours : RopeStep::Pairs::Halves;
    if (norms) {  // norms of each head, or of the whole row
      const std::size_t q_group = rows ? q_dim : head_dim, k_group = rows ? kv_dim : head_dim;
      const auto kind = coin() ? NormStep::Kind::Rms : NormStep::Kind::Layer;
      w_.step("", norm(kind, q, q, "q_norm", q_group));
      w_.step("", norm(kind, k, k, "k_norm", k_group));
    }
    if (prompt) {
      const std::size_t first = pick(1, head_dim / 2 - 1), second = pick(1, head_dim / 2 - first);
      const FrequenciesId text = random_frequencies(first, Positions::Text);
      const FrequenciesId answer = random_frequencies(second, Positions::Answer);
      for (const BufferId heads : {q, k}) {
        w_.step("", RopeStep{heads, text, head_dim, pairs});
        w_.step("", RopeStep{heads, answer, head_dim, pairs, 2 * first});
      }
    } else if (rotate) {
      const std::size_t turned = coin() ? head_dim / 2 : pick(1, head_dim / 2);
      const FrequenciesId rope = random_frequencies(turned, Positions::Text);
      w_.step("", RopeStep{q, rope, head_dim, pairs});
      w_.step("", RopeStep{k, rope, head_dim, pairs});
    }
    const CacheId cache = w_.cache({n_kv_heads, head_dim});
    w_.step("", StoreStep{cache, k, v});
    const std::size_t window = odd_ && !prompt ? pick(1, 12) : 0;
    const float cap = odd_ != large_ ? 1.5f : 0.0f;
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim + pick(0, 9)));
    AttentionStep step{a, q, cache, group * n_kv_heads, scale, window, cap};
    for (std::size_t head = 0; alibi && head < step.n_heads; ++head) {
      step.slopes.push_back(static_cast<float>(pick(1, 1000)) * 1e-3f);
    }
    if (how == Attends::Sinks) step.sinks = weight("sinks", {step.n_heads});
    w_.step("attention", step);
    if (how == Attends::Shared) attend_again(step);
    show(a);
    if (prompt) {
      const auto last = static_cast<TokenId>(made_.plan.vocab_size - 1);
      made_.plan.prompt = PromptRule{last, {last - 1, last - 2}};
    }
    made_.shape = fmt::format(
        "{} heads of {}, {} kv heads{}{}{}{}", group * n_kv_heads, head_dim, n_kv_heads,
        norms ? rows   ? ", norms of rows"
                : odd_ ? ", a norm of its own for each head"
                       : ", norms"
              : "",
        rotate || prompt ? odd_ ? ", pairs of neighbours" : "" : ", no rope",
        window != 0 ? fmt::format(", window {}", window) : "", cap != 0.0f ? ", soft cap" : "");
  }

  // A second layer without its own keys and values: it attends to those of the first.
  void attend_again(AttentionStep step) {
    const BufferId x = w_.buffer("again", 24);
    linear(x, step.out, "o", false, false);
    linear(step.q, x, "second q", false, false);
    const std::size_t head_dim = made_.plan.cache(step.cache).head_dim;
    if (large_) {
      w_.step("", RopeStep{step.q, random_frequencies(head_dim / 2, Positions::Text), head_dim});
    }
    w_.step("second attention", std::move(step));
  }

  FrequenciesId random_frequencies(std::size_t n, Positions positions) {
    std::vector<float> values(n);
    for (float& one : values) one = static_cast<float>(pick(1, 1000)) * 1e-3f;
    return w_.frequencies({"random", values, positions});
  }

  // A prompt of random length, which may be 0 in small cases. The text also ends with the end
  // token.
  void place_prompt(const PromptRule& rule) {
    for (TokenId& token : made_.tokens) token %= rule.masks.back();
    const std::size_t prompt = pick(large_ ? 1 : 0, made_.tokens.size() - 1);
    if (prompt != 0) made_.tokens[pick(0, prompt - 1)] = rule.masks[coin() ? 0 : 1];
    made_.tokens[prompt] = rule.end;
    made_.tokens.back() = rule.end;
    made_.shape += fmt::format(", prompt of {}", prompt);
  }

  void map_case() {
    const std::size_t width = pick(1, 150);
    const BufferId x = w_.buffer("x", width);
    embed(x, width);
    show(x);
    const float cap = odd_ ? 0.75f : 0.0f, scale = odd_ != large_ ? 1.0f : 0.125f;
    const float clip = !odd_ && large_ ? 0.4f : 0.0f;
    const std::size_t n_by = large_ ? (odd_ ? 1 : width) : 0;
    const WeightId by = n_by == 0 ? kNone : weight("by", {n_by});
    w_.step("mapped", MapStep{made_.plan.logits, scale, cap, clip, by});
    made_.shape =
        fmt::format("{}, scale {}{}{}{}", width, scale, odd_ ? ", soft cap" : "",
                    clip != 0.0f ? ", clip" : "", n_by != 0 ? fmt::format(", by {}", n_by) : "");
  }

  void select_case() {
    const BufferId x = w_.buffer("x", pick(1, 150));
    embed(x, made_.plan.buffer(x).width);
    show(x);
    made_.shape = fmt::format("{}", made_.plan.buffer(x).width);
  }

  // Writes all tensors of the plan: random numbers, except for the identity.
  void write(const std::filesystem::path& path) {
    GgufWriter writer;
    writer.add("general.architecture", "conformance");
    std::vector<std::string> data;
    for (const Weight& one : made_.plan.weights) {
      const std::vector<std::size_t> shape = stored_shape(one);
      std::size_t rows = 1;
      for (const std::size_t size : std::span(shape).first(shape.size() - 1)) rows *= size;
      Matrix<float> values(rows, shape.back());
      std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
      for (std::size_t r = 0; r < values.rows(); ++r) {
        for (std::size_t c = 0; c < values.cols(); ++c) {
          values.view()(r, c) = one.name == kIdentity ? (r == c ? 1.0f : 0.0f) : uniform(random_);
          if (one.name != "scores") continue;
          float& score = values.view()(r, c);
          score = std::nearbyint(score * 1024.0f) / 1024.0f;
          if (r % 2 == 1 && c % 3 == 2) score = values.view()(r, c - 1 - c % 2);
        }
      }
      const StoredTensor stored{
          one.name, DType::F32, shape,
          std::as_bytes(std::span(values.data(), values.rows() * values.cols()))};
      const DType dtype = typed_[one.name] ? dtype_ : DType::F32;
      writer.add_tensor(one.name, dtype, shape);
      std::string& bytes = data.emplace_back();
      if (has_no_writer(dtype)) {
        const DTypeBlock block = dtype_block(dtype);
        bytes.resize(values.rows() * values.cols() / block.elements * block.bytes);
        fill_blocks(dtype, std::as_writable_bytes(std::span(bytes)), random_);
      } else {
        convert_tensor(stored, dtype, "conformance", [&](std::span<const std::byte> piece) {
          bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        });
      }
      bytes += GgufWriter::padding(bytes.size());
    }
    std::ofstream out(path, std::ios::binary);
    out << writer.header();
    for (const std::string& bytes : data) out << bytes;
  }

  DType dtype_;
  // Not random, so that a few cases cover all four combinations. odd_: biases and windows. large_:
  // sizes of several panels and chunks.
  bool odd_, large_;
  std::mt19937& random_;
  ConformanceCase made_;
  PlanWriter w_;
  std::map<std::string, bool> typed_;
};

}  // namespace

const std::vector<std::string>& conformance_steps() {
  static const std::vector<std::string> steps = {
      "embed",           "norm",         "layer norm",      "norm, add",       "layer norm, add",
      "linear",          "linear, add",  "linear, columns", "linear, slices",  "transposed",
      "silu gate",       "gelu gate",    "tanh gate",       "linear, silu",    "linear, gelu",
      "linear, tanh",    "linear, relu", "product",         "sigmoid product", "short conv",
      "gated delta",     "route",        "route groups",    "experts",         "clamped experts",
      "linear of heads", "attention",    "alibi",           "sinks",           "shared cache",
      "prompt",          "map",          "select"};
  return steps;
}

bool has_cache(const std::string& step) {
  return step == "attention" || step == "alibi" || step == "prompt" || step == "sinks" ||
         step == "shared cache";
}

bool has_typed_weight(const std::string& step) {
  return step == "embed" || step.starts_with("linear") || step.ends_with("gate") ||
         step == "transposed" || step.ends_with("experts") || step == "short conv";
}

const CacheFormat* cache_format(DType name) {
  static constexpr CacheFormat kFormats[] = {
      {DType::F32, KvType::F32, WeightLayout::F32, CacheNumbers::Exact, CacheNumbers::Exact},
      {DType::F16, KvType::F16, WeightLayout::F16, CacheNumbers::F16, CacheNumbers::F16},
      {DType::BF16, KvType::BF16, WeightLayout::RoundedBF16, CacheNumbers::BF16, {}},
      {DType::Q8_0, KvType::Q8_0, WeightLayout::Q8_0, CacheNumbers::Q8, CacheNumbers::Q8_0}};
  const auto found = std::ranges::find(kFormats, name, &CacheFormat::name);
  return found == std::end(kFormats) ? nullptr : found;
}

ConformanceCase make_case(const std::string& step, DType dtype, std::size_t index,
                          std::mt19937& random, const std::filesystem::path& file) {
  return Builder(dtype, index, random).build(step, file);
}

Logits in_cuts(const ConformanceCase& one, std::mt19937& random, const RunPass& pass) {
  // Logits are rows of a wider matrix. The gaps between them must not be written.
  const std::size_t width = one.plan.vocab_size, gap = random() % 4;
  constexpr float kUntouched = -12345.0f;
  Matrix<float> memory(one.tokens.size(), width + gap);
  std::fill_n(memory.data(), memory.rows() * memory.cols(), kUntouched);
  const MatrixView<float> logits(memory.data(), one.tokens.size(), width, width + gap);
  for (std::size_t at = 0; at < one.tokens.size();) {
    const std::size_t least = at == 0 ? first_pass(one.plan, one.tokens) : 1;
    const std::size_t n =
        std::min<std::size_t>(one.tokens.size() - at, std::max(least, 1 + random() % 16));
    pass(std::span(one.tokens).subspan(at, n), logits.row_range(at, n));
    at += n;
  }
  Logits all;
  for (std::size_t i = 0; i < logits.rows(); ++i) {
    const std::span<const float> row = memory.view().row(i);
    all.insert(all.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(width));
    for (const float between : row.subspan(width)) {
      if (between != kUntouched) all.back() = NAN;  // fails with any tolerance
    }
  }
  return all;
}

}  // namespace stagecraft
