// The gates of stages 4 and 6: the MLP, and attention in parts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/gates/exact.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

// A dumped case of a block: its last result is x, the others are intermediate results.
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

Case mlp_case(const std::string& name, const Tensor& x, const Tensor& norm, const Tensor& gate,
              const Tensor& up, const Tensor& down, double eps) {
  const Expected normed = exact_rms_norm(exact(x), norm, eps);
  const Expected gate_out = exact_linear(normed, gate);
  const Expected up_out = exact_linear(normed, up);
  const Expected activated = exact_swiglu(gate_out, up_out);
  const Expected down_out = exact_linear(activated, down);
  const Expected result = exact_add(down_out, exact(x));

  Case one;
  one.name = name;
  one.request.function = "mlp";
  one.request.scalars = {{"eps", eps}};
  one.request.inputs = {{"x", x},
                        {"post_attention_layernorm.weight", norm},
                        {"mlp.gate_proj.weight", gate},
                        {"mlp.up_proj.weight", up},
                        {"mlp.down_proj.weight", down}};
  one.expected = {{"x", result}};
  one.on_the_way = {{"mlp_norm", normed},  {"gate", gate_out},    {"up", up_out},
                    {"swiglu", activated}, {"w.gate", activated}, {"w.up", up_out},
                    {"down", down_out}};
  return one;
}

// A block of these sizes with fresh numbers.
Case fresh_mlp(Inputs& inputs, std::size_t rows, std::size_t dim, std::size_t ffn_dim) {
  const Tensor x = inputs.tensor({rows, dim}, 2.0f);
  const Tensor norm = inputs.tensor({dim});
  const Tensor gate = inputs.tensor({ffn_dim, dim}, 0.3f);
  const Tensor up = inputs.tensor({ffn_dim, dim}, 0.3f);
  const Tensor down = inputs.tensor({dim, ffn_dim}, 0.3f);
  return mlp_case(fmt::format("{} rows of {}, inside {}", rows, dim, ffn_dim), x, norm, gate, up,
                  down, static_cast<double>(1e-3f));
}

TEST(Mlp, EqualsTheExampleByHand) {
  judge(mlp_case(kByHand, {{1, 2}, {3, 4}}, filled({2}, 1.0f), {{1, 2}, {1, 0}}, {{1, 2}, {0, 1}},
                 {{2, 1}, {1, -1}}, 0.0));
}

TEST(Mlp, EqualsPyTorch) {
  for (const Case& dumped : dumped_cases("mlp")) {
    if (!judge(block_case(dumped, kMlpOrder))) return;
  }
}

TEST(Mlp, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  Case one = fresh_mlp(inputs, inputs.size(2, 5), inputs.size(10, 30), inputs.odd_size(31, 70));
  one.request.calls = 2;
  if (!judge(one)) return;
  const std::size_t sizes[][3] = {{2, 3, 3001}, {1501, 4, 6}, {2, 2003, 5}};
  for (const auto& [rows, dim, ffn_dim] : sizes) {
    if (!judge(fresh_mlp(inputs, rows, dim, ffn_dim))) return;
  }
  judge(
      in_turn("blocks of other sizes", {fresh_mlp(inputs, 3, 10, 20), fresh_mlp(inputs, 3, 10, 20),
                                        fresh_mlp(inputs, 9, 16, 40), fresh_mlp(inputs, 1, 4, 8)}));
}

TEST(MlpResidual, AddsToWhatWasThere) {
  Inputs inputs;
  const std::size_t sizes[][3] = {{3, 8, 20}, {3001, 5, 4}, {2, 3001, 4}};
  for (const auto& [rows, dim, ffn_dim] : sizes) {
    Case one = fresh_mlp(inputs, rows, dim, ffn_dim);
    Tensor& down = one.request.inputs.at("mlp.down_proj.weight");
    for (float& weight : down.values) weight = 0.0f;  // so that the result is x
    one.name = fmt::format("a block that adds nothing to {} rows of {}", rows, dim);
    one.expected["x"] = exact(one.request.inputs.at("x"));
    one.on_the_way.clear();
    if (!judge(one)) return;
  }
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
  return {name, {"softmax", {{"x", x}}, {}}, {{"y", exact_softmax(exact(x))}}};
}

TEST(Softmax, EqualsTheExampleByHand) { judge(softmax_case(kByHand, {{1, 2}, {0, 1}})); }

TEST(Softmax, EqualsPyTorch) { judge_dumps("softmax"); }

TEST(Softmax, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  Case one = softmax_case("fresh", inputs.tensor({3, inputs.odd_size(5, 60)}, 4.0f));
  one.request.calls = 2;
  if (!judge(one)) return;
  if (!judge(softmax_case("rows of 64 numbers", inputs.tensor({2, 64}, 4.0f)))) return;
  judge(softmax_case("a row of 9001 numbers", inputs.tensor({1, 9001}, 4.0f)));
}

TEST(Softmax, KeepsNothing) {
  Inputs inputs;
  const std::size_t sizes[][2] = {{1, 5}, {2, 50}, {3, 3001}};
  judge_together([&](std::size_t size) {
    return softmax_case("", inputs.tensor({sizes[size][0], sizes[size][1]}, 4.0f));
  });
}

TEST(Softmax, GivesNothingToMinusInfinity) {
  Tensor x = Inputs().tensor({2, 24});
  for (std::size_t i = 0; i < x.values.size(); i += 2) x.values[i] = -INFINITY;
  if (!judge(softmax_case("-infinity between numbers", x))) return;
  x.values[1] = x.values[3] = -INFINITY;
  if (!judge(softmax_case("-infinity before the first number", x))) return;
  if (!judge(softmax_case("-infinity alone", filled({1, 9}, -INFINITY)))) return;
  judge(softmax_case("n = 0", {{1, 0}, {}}));
}

TEST(Softmax, DoesNotOverflow) {
  Tensor x = Inputs().tensor({1, 16}, 3.0f);
  for (float& value : x.values) value += 1000.0f;
  x.values[7] = -1000.0f;
  if (!judge(softmax_case("scores around 1000", x))) return;
  for (const std::size_t at : {std::size_t{0}, x.values.size() - 1}) {  // the ends of a search
    Tensor one = x;
    one.values[at] = 2000.0f;
    if (!judge(softmax_case("scores around 1000", one))) return;
  }
}

TEST(Softmax, AllowsYToBeX) {
  Case one = softmax_case("y and x are the same memory", Inputs().tensor({2, 9}));
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
  one.expected = {{"x", exact_rope(exact(x), inv_freq, first_position)}};
  return one;
}

TEST(Rope, EqualsTheExampleByHand) { judge(rope_case(kByHand, {{1, 2}, {1, 0}}, {{1}, {1}}, 1)); }

TEST(Rope, EqualsPyTorch) {
  for (Case one : dumped_cases("rope")) {
    one.expected = {{"x", one.expected.at("y")}};
    if (!judge(one)) return;
  }
}

TEST(Rope, CountsFromTheFirstPositionForEveryHead) {
  Inputs inputs;
  const Tensor inv_freq{{4}, {1.0f, 0.1f, 0.01f, 0.001f}};
  Case one = rope_case("3 heads from position 11", inputs.tensor({5, 24}), inv_freq, 11);
  one.request.calls = 2;
  if (!judge(one)) return;
  one.request.gap = 3;
  one.name += ", rows with gaps between them";
  if (!judge(one)) return;
  if (!judge(rope_case("3001 rows from position 0", inputs.tensor({3001, 8}), inv_freq, 0))) return;
  if (!judge(
          rope_case("heads of 8 from position 70000", inputs.tensor({3, 16}), inv_freq, 70'000))) {
    return;
  }
  Tensor many{{130}, {}};
  for (std::size_t i = 0; i < 130; ++i) many.values.push_back(1.0f / static_cast<float>(i + 1));
  one = rope_case("heads of 260 from position 5000", inputs.tensor({3, 2080}), many, 5000);
  one.request.gap = 1001;
  judge(one);
}

TEST(Rope, KeepsNothing) {
  Inputs inputs;
  const std::size_t sizes[][3] = {{2, 1, 2}, {5, 3, 4}, {40, 2, 16}};  // rows, heads, head_dim / 2
  judge_together([&](std::size_t size) {
    const auto& [rows, heads, half] = sizes[size];
    Tensor inv_freq = inputs.tensor({half});
    for (float& value : inv_freq.values) value = std::fabs(value) * 0.3f;
    return rope_case("", inputs.tensor({rows, heads * 2 * half}), inv_freq, inputs.size(0, 40));
  });
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

Case attention_case(const std::string& name, const Tensor& q, const Tensor& k, const Tensor& v,
                    std::size_t n_heads = 1, std::size_t n_kv_heads = 1, std::size_t window = 0) {
  const ExactAttention formula =
      exact_attention(exact(q), exact(k), exact(v), n_heads, n_kv_heads, window);
  Case one;
  one.name = name;
  one.request.function = "attention";
  one.request.inputs = {{"q", q}, {"k", k}, {"v", v}};
  one.request.scalars = {{"n_heads", static_cast<double>(n_heads)},
                         {"n_kv_heads", static_cast<double>(n_kv_heads)},
                         {"head_dim", static_cast<double>(q.cols() / n_heads)},
                         {"window", static_cast<double>(window)}};
  one.expected = {{"probabilities", formula.probabilities}, {"out", formula.out}};
  one.on_the_way = {{"probabilities", formula.probabilities}};
  return one;
}

Case fresh_attention(Inputs& inputs, std::size_t q_len, std::size_t past, std::size_t n_heads,
                     std::size_t n_kv_heads, std::size_t head_dim, std::size_t window = 0) {
  const Tensor q = inputs.tensor({q_len, n_heads * head_dim});
  const Tensor k = inputs.tensor({past + q_len, n_kv_heads * head_dim});
  const Tensor v = inputs.tensor({past + q_len, n_kv_heads * head_dim});
  return attention_case(
      fmt::format("{} queries after {} past tokens, {} heads, {} kv heads, head_dim {}", q_len,
                  past, n_heads, n_kv_heads, head_dim),
      q, k, v, n_heads, n_kv_heads, window);
}

TEST(AttentionWholePrompt, EqualsTheExampleByHand) {
  judge(attention_case(kByHand, {{2, 2}, {1, 0, 0, 2}}, {{2, 2}, {1, 0, 1, 1}},
                       {{2, 2}, {10, 0, 0, 10}}));
}

// The probabilities are computed before out, so the first wrong one tells more.
TEST(AttentionWholePrompt, EqualsPyTorch) {
  judge_dumps("attention", is_whole_prompt, "probabilities");
}

TEST(AttentionWholePrompt, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  Case one = fresh_attention(inputs, inputs.size(5, 12), 0, 3, 3, 10);
  one.request.calls = 2;
  judge(one);
}

TEST(AttentionWholePrompt, TakesThousandsOfTokensAndWideHeads) {
  Inputs inputs;
  if (!judge(fresh_attention(inputs, 1003, 0, 1, 1, 3))) return;
  if (!judge(fresh_attention(inputs, 3, 0, 70, 70, 2))) return;
  judge(fresh_attention(inputs, 3, 0, 1, 1, 1026));
}

TEST(AttentionWholePrompt, LetsNoQueryLookAhead) {
  Inputs inputs;
  // The last position is huge: code without a causal mask gives clearly wrong numbers.
  Tensor v = inputs.tensor({6, 8});
  for (std::size_t d = 0; d < 8; ++d) v.values[5 * 8 + d] = 1e6f;
  judge(
      attention_case("a last value of a million", inputs.tensor({6, 8}), inputs.tensor({6, 8}), v));
}

TEST(AttentionWholePrompt, MasksScoresOfAnySize) {
  Inputs inputs;
  // The scores of key j are near -58,000 + 11,600 j: a future key wins if its masked score is
  // -10,000, or its score minus 10,000.
  Tensor k = filled({5, 8}, -160.0f);
  for (std::size_t i = 0; i < k.values.size(); ++i)
    k.values[i] += 32.0f * static_cast<float>(i / 8);
  judge(attention_case("scores below -10000", filled({5, 8}, 128.0f), k, inputs.tensor({5, 8})));
}

TEST(AttentionGroupsAndPast, EqualsPyTorch) {
  judge_dumps(
      "attention", [](const Case& one) { return !is_whole_prompt(one); }, "probabilities");
}

TEST(AttentionGroupsAndPast, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  for (const auto& [n_heads, n_kv_heads] :
       {std::pair<std::size_t, std::size_t>{4, 2}, {6, 2}, {8, 1}}) {
    Case one =
        fresh_attention(inputs, inputs.size(2, 4), inputs.size(3, 9), n_heads, n_kv_heads, 6);
    one.request.gap = 2;
    if (!judge(one)) return;
  }
}

TEST(AttentionGroupsAndPast, TakesThousandsOfKeysAndQueries) {
  Inputs inputs;
  if (!judge(fresh_attention(inputs, 1, 9000, 2, 1, 6))) return;
  if (!judge(fresh_attention(inputs, 301, 0, 2, 1, 4))) return;
  Case next = fresh_attention(inputs, 1, 9, 4, 2, 6, 4);
  next.name += ", a window of 4";
  if (!judge(next)) return;
  if (!judge(fresh_attention(inputs, 2, 5, 70, 35, 2))) return;
  if (!judge(fresh_attention(inputs, 2, 5, 2, 1, 514))) return;
  Case one = fresh_attention(inputs, 3, 1100, 2, 1, 4, 1030);
  one.name += ", a window of 1030";
  one.request.gap = 901;
  judge(one);
}

TEST(AttentionGroupsAndPast, GivesARowAloneWhatItGivesAmongMany) {
  Inputs inputs;
  Case one = fresh_attention(inputs, 7, 30, 4, 2, 18);
  one.name = "each row alone";
  judge_rows_alone(one, "out");
}

TEST(AttentionGroupsAndPast, KeepsNothing) {
  Inputs inputs;
  const std::size_t sizes[][5] = {{1, 2, 2, 1, 4}, {3, 4, 4, 2, 6}, {30, 50, 6, 2, 8}};
  judge_together([&](std::size_t size) {
    const auto& [q_len, past, heads, kv_heads, width] = sizes[size];
    return fresh_attention(inputs, q_len, past, heads, kv_heads, width);
  });
}

// ---- 6.6 the block ------------------------------------------------------------------------------

const std::vector<std::string> kAttentionOrder = {
    "attn_norm", "q",      "k",          "v",        "q_norm",    "k_norm",
    "q_rope",    "k_rope", "attn_probs", "attn_out", "attn_proj", "attn_residual"};

TEST(AttentionBlock, EqualsPyTorch) {
  for (const Case& dumped : dumped_cases("attention_block")) {
    Case one = block_case(dumped, kAttentionOrder);
    // The cache has the past keys, then the new keys after RoPE.
    const auto& inputs = one.request.inputs;
    one.expected["keys in the cache"] =
        stacked(exact(inputs.at("past_k")), dumped.expected.at("k_rope"));
    one.expected["values in the cache"] =
        stacked(exact(inputs.at("past_v")), dumped.expected.at("v"));
    one.expected["w.probabilities"] = dumped.expected.at("attn_probs");  // for peek
    if (!judge(one)) return;
  }
}

// RMSNorm of each head.
Expected exact_head_norm(Expected x, const Tensor& weight, double eps) {
  const std::vector<std::size_t> shape = x.shape;
  const std::size_t head_dim = weight.values.size();
  x.shape = {x.values.size() / head_dim, head_dim};
  Expected normed = exact_rms_norm(x, weight, eps);
  normed.shape = shape;
  return normed;
}

Case fresh_block(Inputs& inputs, std::size_t q_len, std::size_t past, std::size_t dim,
                 std::size_t window = 0, bool qk_norm = false) {
  constexpr double kEps = 1e-5f;
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

  const Tensor q_norm = inputs.tensor({kHeadDim});
  const Tensor k_norm = inputs.tensor({kHeadDim});
  const Expected normed = exact_rms_norm(exact(x), norm, kEps);
  const Expected q = exact_linear(normed, wq);
  const Expected k = exact_linear(normed, wk);
  const Expected v = exact_linear(normed, wv);
  const Expected q_normed = qk_norm ? exact_head_norm(q, q_norm, kEps) : q;
  const Expected k_normed = qk_norm ? exact_head_norm(k, k_norm, kEps) : k;
  const Expected q_rope = exact_rope(q_normed, inv_freq, past);
  const Expected k_rope = exact_rope(k_normed, inv_freq, past);
  const Expected keys = stacked(exact(past_k), k_rope);
  const Expected values = stacked(exact(past_v), v);
  const ExactAttention mixed = exact_attention(q_rope, keys, values, kHeads, kKvHeads, window);
  const Expected projected = exact_linear(mixed.out, wo);

  Case one;
  one.name = fmt::format("{} tokens after {} past tokens", q_len, past);
  one.request.function = "attention_block";
  one.request.inputs = {{"x", x},
                        {"input_layernorm.weight", norm},
                        {"self_attn.q_proj.weight", wq},
                        {"self_attn.k_proj.weight", wk},
                        {"self_attn.v_proj.weight", wv},
                        {"self_attn.o_proj.weight", wo},
                        {"past_k", past_k},
                        {"past_v", past_v}};
  if (qk_norm) {
    one.request.inputs["self_attn.q_norm.weight"] = q_norm;
    one.request.inputs["self_attn.k_norm.weight"] = k_norm;
  }
  one.request.scalars = {{"eps", kEps},
                         {"n_heads", kHeads},
                         {"n_kv_heads", kKvHeads},
                         {"head_dim", kHeadDim},
                         {"window", static_cast<double>(window)},
                         {"rope_theta", 10'000.0}};
  one.expected = {{"x", exact_add(projected, exact(x))},
                  {"keys in the cache", keys},
                  {"values in the cache", values},
                  {"w.probabilities", mixed.probabilities}};
  one.on_the_way = {{"attn_norm", normed},
                    {"q", q},
                    {"k", k},
                    {"v", v},
                    {"q_rope", q_rope},
                    {"k_rope", k_rope},
                    {"attn_probs", mixed.probabilities},
                    {"attn_out", mixed.out},
                    {"attn_proj", projected}};
  return one;
}

TEST(AttentionBlock, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  Case one = fresh_block(inputs, inputs.size(2, 4), inputs.size(2, 7), inputs.odd_size(9, 20));
  one.request.calls = 2;
  if (!judge(one)) return;
  if (!judge(fresh_block(inputs, 1, inputs.size(2, 7), inputs.size(9, 20)))) return;
  Case next = fresh_block(inputs, 1, 9, 12, 4);
  next.name += ", a window of 4";
  if (!judge(next)) return;
  next = fresh_block(inputs, 1, 5, 12, 0, true);
  next.name += ", with q_norm and k_norm";
  if (!judge(next)) return;
  if (!judge(fresh_block(inputs, 3, 1501, 5))) return;
  if (!judge(fresh_block(inputs, 301, 2, 5))) return;
  judge(in_turn("blocks of other sizes",
                {fresh_block(inputs, 3, 5, 12), fresh_block(inputs, 3, 5, 12),
                 fresh_block(inputs, 8, 20, 16), fresh_block(inputs, 2, 1, 6)}));
}

}  // namespace
}  // namespace stagecraft::stages
