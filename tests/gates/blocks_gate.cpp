// The gates of stages 4 and 6: the MLP, and attention piece by piece.
#include <fmt/format.h>

#include <cmath>

#include "tests/gates/exact.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

// A dumped case of a block: its last result is x, the others are what it shows on its way.
Case block_case(Case dumped, const std::vector<std::string>& order) {
  Case one{dumped.name, dumped.request, {}, {}};
  for (const std::string& name : order) {
    const auto found = dumped.expected.find(name);
    if (found != dumped.expected.end()) one.on_the_way.emplace_back(name, found->second);
  }
  one.expected["x"] = dumped.expected.at(order.back());
  return one;
}

// ---- 4 ------------------------------------------------------------------------------------------

const std::vector<std::string> kMlpOrder = {"mlp_norm", "gate", "up",
                                            "swiglu",   "down", "mlp_residual"};

// Fresh numbers through a block of these sizes.
Case fresh_mlp(Inputs& inputs, std::size_t rows, std::size_t dim, std::size_t ffn_dim) {
  const Tensor x = inputs.tensor({rows, dim}, 2.0f);
  const Tensor norm = inputs.tensor({dim});
  const Tensor gate = inputs.tensor({ffn_dim, dim}, 0.3f);
  const Tensor up = inputs.tensor({ffn_dim, dim}, 0.3f);
  const Tensor down = inputs.tensor({dim, ffn_dim}, 0.3f);
  const double eps = static_cast<double>(1e-3f);

  const Expected normed = twin_rms_norm(exact(x), norm, eps);
  const Expected gate_out = twin_linear(normed, gate);
  const Expected up_out = twin_linear(normed, up);
  const Expected activated = twin_swiglu(gate_out, up_out);
  const Expected down_out = twin_linear(activated, down);
  const Expected result = twin_add(down_out, exact(x));

  Case one;
  one.name = fmt::format("{} rows of {}, inside {}", rows, dim, ffn_dim);
  one.request.function = "mlp";
  one.request.scalars = {{"eps", eps}};
  one.request.inputs = {{"x", x},
                        {"post_attention_layernorm.weight", norm},
                        {"mlp.gate_proj.weight", gate},
                        {"mlp.up_proj.weight", up},
                        {"mlp.down_proj.weight", down}};
  one.expected = {{"x", result}};
  one.on_the_way = {{"mlp_norm", normed},  {"gate", gate_out},          {"up", up_out},
                    {"swiglu", activated}, {"scratch gate", activated}, {"scratch up", up_out},
                    {"down", down_out}};
  return one;
}

TEST(Mlp, EqualsPyTorch) {
  for (const Case& dumped : dumped_cases("mlp")) {
    if (!judge(block_case(dumped, kMlpOrder)) && ::testing::Test::IsSkipped()) return;
  }
}

TEST(Mlp, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  Case one = fresh_mlp(inputs, inputs.size(2, 5), inputs.size(10, 30), inputs.size(31, 70));
  one.request.calls = 2;
  judge(one);
}

TEST(MlpResidual, AddsToWhatWasThere) {
  Inputs inputs;
  Case one = fresh_mlp(inputs, 3, 8, 20);
  Tensor& down = one.request.inputs.at("mlp.down_proj.weight");
  for (float& weight : down.values) weight = 0.0f;  // so that nothing but x is left
  one.name = "a block that adds nothing";
  one.expected["x"] = exact(one.request.inputs.at("x"));
  one.on_the_way.clear();
  judge(one);
}

TEST(MlpResidual, TreatsEveryRowAlone) {
  Inputs inputs;
  const Case all = fresh_mlp(inputs, 4, 12, 25);
  Case one = all;
  one.name = "the last of four rows alone";
  Tensor& x = one.request.inputs.at("x");
  x = {{1, 12}, {x.values.end() - 12, x.values.end()}};
  const Expected& rows = all.expected.at("x");
  one.expected["x"] = {{1, 12},
                       {rows.values.end() - 12, rows.values.end()},
                       {rows.allowed.end() - 12, rows.allowed.end()}};
  one.on_the_way.clear();
  judge(one);
}

// ---- 6.2 softmax, 6.4 rope ----------------------------------------------------------------------

Case softmax_case(const std::string& name, const Tensor& x) {
  return {name, {"softmax", {{"x", x}}, {}}, {{"y", twin_softmax(exact(x))}}};
}

TEST(Softmax, EqualsPyTorch) { judge_dumps("softmax"); }

TEST(Softmax, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  Case one = softmax_case("fresh", inputs.tensor({3, inputs.size(5, 60)}, 4.0f));
  one.request.calls = 2;
  judge(one);
}

TEST(Softmax, DoesNotOverflow) {
  judge(softmax_case("scores around 1000", {{1, 4}, {1000.0f, 999.0f, 998.5f, -1000.0f}}));
}

TEST(Softmax, AllowsYToBeX) {
  Case one = softmax_case("y is x", Inputs().tensor({2, 9}));
  one.request.alias = "x";
  judge(one);
}

Case rope_case(const std::string& name, const Tensor& x, const Tensor& inv_freq,
               std::size_t first_position) {
  Case one;
  one.name = name;
  one.request.function = "rope";
  one.request.inputs = {{"x", x}, {"inv_freq", inv_freq}};
  one.request.scalars = {{"first_position", static_cast<double>(first_position)}};
  one.expected = {{"x", twin_rope(exact(x), inv_freq, first_position)}};
  return one;
}

TEST(Rope, EqualsPyTorch) {
  for (Case one : dumped_cases("rope")) {
    one.expected = {{"x", one.expected.at("y")}};
    if (!judge(one) && ::testing::Test::IsSkipped()) return;
  }
}

TEST(Rope, CountsFromTheFirstPositionForEveryHead) {
  Inputs inputs;
  const Tensor inv_freq{{4}, {1.0f, 0.1f, 0.01f, 0.001f}};
  Case one = rope_case("3 heads from position 11", inputs.tensor({5, 24}), inv_freq, 11);
  one.request.calls = 2;
  if (!judge(one)) return;
  one.request.gap = 3;
  one.name += ", rows that lie apart";
  judge(one);
}

TEST(Rope, LeavesPositionZeroAsItIs) {
  const Tensor x = Inputs().tensor({1, 8});
  Case one = rope_case("position 0", x, {{4}, {1.0f, 0.5f, 0.25f, 0.125f}}, 0);
  one.expected = {{"x", exact(x)}};
  judge(one);
}

// ---- 6.3, 6.5 attention -------------------------------------------------------------------------

bool is_whole_prompt(const Case& one) {
  const auto& scalars = one.request.scalars;
  return scalars.at("past") == 0 && scalars.at("n_heads") == scalars.at("n_kv_heads") &&
         scalars.at("window") == 0;
}

Case fresh_attention(Inputs& inputs, std::size_t q_len, std::size_t past, std::size_t n_heads,
                     std::size_t n_kv_heads, std::size_t head_dim) {
  const Tensor q = inputs.tensor({q_len, n_heads * head_dim});
  const Tensor k = inputs.tensor({past + q_len, n_kv_heads * head_dim});
  const Tensor v = inputs.tensor({past + q_len, n_kv_heads * head_dim});
  const TwinAttention twin = twin_attention(exact(q), exact(k), exact(v), n_heads, n_kv_heads, 0);
  Case one;
  one.name = fmt::format("{} queries after {} past, {} heads on {}, of {}", q_len, past, n_heads,
                         n_kv_heads, head_dim);
  one.request.function = "attention";
  one.request.inputs = {{"q", q}, {"k", k}, {"v", v}};
  one.request.scalars = {{"n_heads", static_cast<double>(n_heads)},
                         {"n_kv_heads", static_cast<double>(n_kv_heads)},
                         {"head_dim", static_cast<double>(head_dim)},
                         {"window", 0.0}};
  one.expected = {{"probabilities", twin.probabilities}, {"out", twin.out}};
  one.on_the_way = {{"probabilities", twin.probabilities}};
  return one;
}

TEST(AttentionWholePrompt, EqualsPyTorch) { judge_dumps("attention", is_whole_prompt); }

TEST(AttentionWholePrompt, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  Case one = fresh_attention(inputs, inputs.size(5, 12), 0, 3, 3, 10);
  one.request.calls = 2;
  judge(one);
}

TEST(AttentionWholePrompt, LetsNoQueryLookAhead) {
  Inputs inputs;
  Case one = fresh_attention(inputs, 6, 0, 1, 1, 8);
  // What comes last is huge: whoever looks ahead sees nothing else.
  Tensor& v = one.request.inputs.at("v");
  for (std::size_t d = 0; d < 8; ++d) v.values[5 * 8 + d] = 1e6f;
  const TwinAttention twin = twin_attention(exact(one.request.inputs.at("q")),
                                            exact(one.request.inputs.at("k")), exact(v), 1, 1, 0);
  one.name = "a last value of a million";
  one.expected["out"] = twin.out;
  judge(one);
}

TEST(AttentionGroupsAndPast, EqualsPyTorch) {
  judge_dumps("attention", [](const Case& one) { return !is_whole_prompt(one); });
}

TEST(AttentionGroupsAndPast, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  for (const auto& [n_heads, n_kv_heads] :
       {std::pair<std::size_t, std::size_t>{4, 2}, {6, 2}, {8, 1}}) {
    Case one =
        fresh_attention(inputs, inputs.size(1, 4), inputs.size(3, 9), n_heads, n_kv_heads, 6);
    one.request.gap = 2;
    if (!judge(one)) return;
  }
}

// ---- 6.6 the block ------------------------------------------------------------------------------

const std::vector<std::string> kAttentionOrder = {
    "attn_norm", "q",      "k",          "v",        "q_norm",    "k_norm",
    "q_rope",    "k_rope", "attn_probs", "attn_out", "attn_proj", "attn_residual"};

TEST(AttentionBlock, EqualsPyTorch) {
  for (const Case& dumped : dumped_cases("attention_block")) {
    Case one = block_case(dumped, kAttentionOrder);
    // The cache holds keys after rope, behind those of the past.
    const auto& inputs = one.request.inputs;
    one.expected["cached keys"] = stacked(exact(inputs.at("past_k")), dumped.expected.at("k_rope"));
    one.expected["cached values"] = stacked(exact(inputs.at("past_v")), dumped.expected.at("v"));
    if (!judge(one) && ::testing::Test::IsSkipped()) return;
  }
}

TEST(AttentionBlock, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  const std::size_t q_len = inputs.size(1, 4);
  const std::size_t past = inputs.size(2, 7);
  const std::size_t dim = inputs.size(9, 20);
  constexpr std::size_t kHeads = 4;
  constexpr std::size_t kKvHeads = 2;
  constexpr std::size_t kHeadDim = 6;
  const Tensor x = inputs.tensor({q_len, dim});
  const Tensor norm = inputs.tensor({dim});
  const Tensor wq = inputs.tensor({kHeads * kHeadDim, dim}, 0.3f);
  const Tensor wk = inputs.tensor({kKvHeads * kHeadDim, dim}, 0.3f);
  const Tensor wv = inputs.tensor({kKvHeads * kHeadDim, dim}, 0.3f);
  const Tensor wo = inputs.tensor({dim, kHeads * kHeadDim}, 0.3f);
  const Tensor past_k = inputs.tensor({past, kKvHeads * kHeadDim});
  const Tensor past_v = inputs.tensor({past, kKvHeads * kHeadDim});
  Tensor inv_freq{{kHeadDim / 2}, {}};
  for (std::size_t i = 0; i < kHeadDim / 2; ++i) {
    inv_freq.values.push_back(
        static_cast<float>(std::pow(10'000.0, -2.0 * static_cast<double>(i) / kHeadDim)));
  }

  const Expected normed = twin_rms_norm(exact(x), norm, static_cast<double>(1e-5f));
  const Expected q = twin_linear(normed, wq);
  const Expected k = twin_linear(normed, wk);
  const Expected v = twin_linear(normed, wv);
  const Expected q_rope = twin_rope(q, inv_freq, past);
  const Expected k_rope = twin_rope(k, inv_freq, past);
  const Expected keys = stacked(exact(past_k), k_rope);
  const Expected values = stacked(exact(past_v), v);
  const TwinAttention mixed = twin_attention(q_rope, keys, values, kHeads, kKvHeads, 0);
  const Expected projected = twin_linear(mixed.out, wo);

  Case one;
  one.name = fmt::format("{} tokens after {} past", q_len, past);
  one.request.function = "attention_block";
  one.request.inputs = {{"x", x},
                        {"input_layernorm.weight", norm},
                        {"self_attn.q_proj.weight", wq},
                        {"self_attn.k_proj.weight", wk},
                        {"self_attn.v_proj.weight", wv},
                        {"self_attn.o_proj.weight", wo},
                        {"past_k", past_k},
                        {"past_v", past_v}};
  one.request.scalars = {{"eps", static_cast<double>(1e-5f)},
                         {"n_heads", kHeads},
                         {"n_kv_heads", kKvHeads},
                         {"head_dim", kHeadDim},
                         {"window", 0.0},
                         {"rope_theta", 10'000.0}};
  one.request.calls = 2;
  one.expected = {
      {"x", twin_add(projected, exact(x))}, {"cached keys", keys}, {"cached values", values}};
  one.on_the_way = {{"attn_norm", normed},
                    {"q", q},
                    {"k", k},
                    {"v", v},
                    {"q_rope", q_rope},
                    {"k_rope", k_rope},
                    {"attn_probs", mixed.probabilities},
                    {"attn_out", mixed.out},
                    {"attn_proj", projected}};
  judge(one);
}

}  // namespace
}  // namespace stagecraft::stages
