// ChatGLM-6B, which follows GLM-130B (Zeng et al. 2022), and ChatGLM2-6B and ChatGLM3-6B (GLM Team
// 2024): one model type for two designs.
//
// The first design, compared with GPT-NeoX: prompt and answer have separate positions, and the two
// halves of each head are rotated by one of them each; a token of the prompt sees the whole prompt,
// later tokens too; a block adds its result not to x, but to sqrt(2 n_layers) times the norm of x.
// The second design, compared with Llama: RoPE rotates pairs of neighbouring columns in the first
// half of each head; q, k and v are rows of one stored matrix and have biases; gate and up are rows
// of one matrix.
#include <array>
#include <cmath>

#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 4> kRopeNames = {"rope_theta", "rope_scaling",
                                                        "rope_parameters", "rotary_percent"};
constexpr std::array<std::string_view, 1> kPromptTuning = {"pre_seq_len"};

void refuse_tuning(const ConfigFields& fields) {
  // The layer scaling divides the queries by a number and multiplies the scores by it again, so it
  // can be ignored.
  refuse_foreign_arithmetic(fields, {"layernorm_epsilon", "apply_query_key_layer_scaling",
                                     "apply_residual_connection_post_layernorm"});
  expect_absent(fields, kRopeNames, "none (theta 10000)");
  expect_absent(fields, kPromptTuning, "null (no tuned prompt)");
}

// The number of columns in half a head. RoPE rotates pairs of columns in it, so it must be even.
std::size_t half_of_head(const ConfigFields& fields, std::string_view key, std::size_t head_dim) {
  if (head_dim % 4 == 0) return head_dim / 2;
  throw Error(
      "{}: '{}': expected a head size that is a multiple of 4 (RoPE rotates pairs in half a head), "
      "found {}",
      fields.where(), key, head_dim);
}

// ---- the first design

DecoderSizes chatglm_sizes(const ConfigFields& fields) {
  return parse_sizes(
      fields, {.vocab_size = 130'528, .max_seq_len = 2048, .norm_eps = 1e-5, .ffn_factor = 4},
      {.ffn_dim = "inner_hidden_size",
       .n_layers = either_name(fields, "num_layers", "num_hidden_layers"),
       .n_kv_heads = "num_attention_heads",
       .max_seq_len = "max_sequence_length",
       .norm_eps = "layernorm_epsilon"});
}

PromptRule parse_prompt(const ConfigFields& fields, std::size_t vocab_size) {
  const auto id = [&](std::string_view key) {
    return static_cast<TokenId>(fields.size(key, 0, vocab_size - 1));
  };
  return {id("bos_token_id"), {id("gmask_token_id"), id("mask_token_id")}};
}

// Rotates one half of each head of q and k by the position in the text, the other half by the
// position in the answer.
void rope_halves(DecoderWriter& w, std::size_t head_dim, FrequenciesId text, FrequenciesId answer) {
  const auto pairs = RopeStep::Pairs::Halves;
  w.step("q_rope", RopeStep{w.q, text, head_dim, pairs});
  w.step("k_rope", RopeStep{w.k, text, head_dim, pairs});
  w.step("q_rope_answer", RopeStep{w.q, answer, head_dim, pairs, head_dim / 2});
  w.step("k_rope_answer", RopeStep{w.k, answer, head_dim, pairs, head_dim / 2});
}

Plan chatglm_plan(const ConfigFields& fields) {
  refuse_tuning(fields);
  expect_true(fields, "position_encoding_2d");
  const DecoderSizes sizes = chatglm_sizes(fields);
  const std::size_t half = half_of_head(fields, "hidden_size", sizes.head_dim);
  const float scale = sizes.score_scale();
  const float residual = std::sqrt(2.0f * static_cast<float>(sizes.n_layers));

  Plan plan;
  plan.prompt = parse_prompt(fields, sizes.vocab_size);
  DecoderWriter w("chatglm", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .embedding = "transformer.word_embeddings",
                               .layers = "transformer.layers.",
                               .final_norm = "transformer.final_layernorm"});
  const FrequenciesId text = w.frequencies(RopeConfig{}, half);
  const FrequenciesId answer = w.frequencies(RopeConfig{}, half);
  plan.frequencies[static_cast<std::size_t>(answer)].positions = Positions::Answer;
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i);
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.fused_qkv(w.n, at + "attention.query_key_value", true);
    rope_halves(w, sizes.head_dim, text, answer);
    w.attention(scale);
    w.linear("attn_proj", w.x, w.a, at + "attention.dense", true);
    w.step("attn_residual", AddStep{w.x, w.n, residual});

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.linear("up", w.g, w.n, at + "mlp.dense_h_to_4h", true);
    w.step("gelu", ActivateStep{w.g, w.g, kNone, ActivateStep::Function::GeluTanh});
    w.linear("down", w.x, w.g, at + "mlp.dense_4h_to_h", true);
    w.step("mlp_residual", AddStep{w.x, w.n, residual});
  }
  w.logits();
  return plan;
}

// ---- the second design

void refuse_other_layers(const ConfigFields& fields) {
  refuse_tuning(fields);
  expect_false(fields, "apply_residual_connection_post_layernorm");
  expect_true(fields, "rmsnorm");
  expect_true(fields, "post_layer_norm");
  expect_true(fields, "original_rope");
  // The meaning of this field differs between older and newer files.
  if (fields.number_or("rope_ratio", 1.0, 0.0, 1e6) != 1.0) {
    throw Error("{}: 'rope_ratio': expected 1, found {}", fields.where(),
                fields.find("rope_ratio")->describe());
  }
}

// shared: whether query heads share key heads ("multi_query_attention").
DecoderSizes chatglm2_sizes(const ConfigFields& fields, bool shared) {
  return parse_sizes(fields,
                     {.vocab_size = 65'024, .max_seq_len = 2048, .norm_eps = 1e-5, .n_kv_heads = 1},
                     {.ffn_dim = "ffn_hidden_size",
                      .n_layers = either_name(fields, "num_layers", "num_hidden_layers"),
                      .n_kv_heads = shared ? "multi_query_group_num" : "num_attention_heads",
                      .head_dim = "kv_channels",
                      .vocab_size = either_name(fields, "padded_vocab_size", "vocab_size"),
                      .max_seq_len = "seq_length",
                      .norm_eps = "layernorm_epsilon"});
}

Plan chatglm2_plan(const ConfigFields& fields) {
  refuse_other_layers(fields);
  const bool shared = fields.flag_or("multi_query_attention", false);
  const bool bias = fields.flag_or("add_bias_linear", false);
  const bool qkv_bias = bias || fields.flag_or("add_qkv_bias", false);
  const DecoderSizes sizes = chatglm2_sizes(fields, shared);
  const std::size_t columns = half_of_head(fields, "kv_channels", sizes.head_dim);
  const float scale = sizes.score_scale();

  Plan plan;
  plan.unused = {"rotary_pos_emb.inv_freq"};
  DecoderWriter w("chatglm", sizes, plan,
                  DecoderStyle{.pairs = RopeStep::Pairs::Neighbours,
                               .embedding = "transformer.embedding.word_embeddings",
                               .layers = "transformer.encoder.layers.",
                               .final_norm = "transformer.encoder.final_layernorm",
                               .head = "transformer.output_layer"});
  const FrequenciesId rope = w.frequencies(RopeConfig{}, columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attention.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    if (shared) {
      w.stacked_qkv(w.n, self + "query_key_value", qkv_bias);
    } else {
      w.fused_qkv(w.n, self + "query_key_value", qkv_bias);
    }
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "dense", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.stacked_gate(w.n, mlp + "dense_h_to_4h", ActivateStep::Function::Silu, bias);
    w.linear("down", w.o, w.g, mlp + "dense_4h_to_h", bias);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

Plan plan_of_either(const ConfigFields& fields) {
  const bool first = fields.has("position_encoding_2d") || fields.has("inner_hidden_size");
  return first ? chatglm_plan(fields) : chatglm2_plan(fields);
}

constexpr std::string_view kChatglmTypes[] = {"chatglm"};

}  // namespace

extern const Architecture architecture_chatglm;
constinit const Architecture architecture_chatglm = {kChatglmTypes, plan_of_either};

}  // namespace stagecraft
