// Facts from the sources of llama.cpp (github.com/ggml-org/llama.cpp): keys and transformations
// from conversion/*.py, names from gguf-py/gguf/constants.py. Values that a file does not contain
// are from src/models/*.cpp, which uses the same ones for every file of an architecture.
#include "formats/gguf/architectures.h"

#include <vector>

#include <fmt/format.h>

#include "base/alternatives.h"

namespace stagecraft {
namespace {

using Name = GgufTensorName;
using Key = GgufKey;
using Flag = GgufTensorFlag;
constexpr auto kNumber = GgufKey::Kind::Number;
constexpr auto kSize = GgufKey::Kind::Size;
using RopeFactors = GgufArchitecture::RopeFactors;
constexpr auto kExperts = Name::Change::Experts;
constexpr auto kHeads = Name::Change::Heads;

// The eps of LayerNorm: the field of most architectures, and the field of GPT-2.
constexpr Key kLayerNormEps = {"attention.layer_norm_epsilon", "layer_norm_eps"};
constexpr Key kLayerNormEpsilon = {"attention.layer_norm_epsilon", "layer_norm_epsilon"};

constexpr Name kModelNames[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};

constexpr Name kLayerNames[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

constexpr Flag kLlamaBiases[] = {{"attention_bias", "blk.0.attn_output.bias"},
                                 {"mlp_bias", "blk.0.ffn_down.bias"}};
// One bias of layer 0 shows whether the model has the biases that the field stands for.
constexpr Flag kOutputBias[] = {{"attention_bias", "blk.0.attn_output.bias"}};
constexpr Flag kQueryBias[] = {{"attention_bias", "blk.0.attn_q.bias"}};

// ---- Gemma --------------------------------------------------------------------------------------

// A layer has a norm before and after each of its two blocks.
constexpr Name kGemmaNames[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr Key kGemma2Keys[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", kNumber},
    {"final_logit_softcapping", "final_logit_softcapping", kNumber},
};
constexpr Key kGemma3Keys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", kNumber},
    {"rope.freq_base_swa", "rope_local_base_freq", kNumber},
};

// Gemma 4. There may be a second embedding with numbers per token and layer, and experts beside the
// feed-forward block.
constexpr Name kGemma4Names[] = {
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate_inp", "router.proj"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"ffn_gate_up_exps.weight", "experts.gate_up_proj"},
    {"ffn_down_exps.weight", "experts.down_proj"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {"layer_output_scale.weight", "layer_scalar"},
};
constexpr Key kGemma4Keys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", kNumber},
    {"embedding_length_per_layer_input", "hidden_size_per_layer_input", Key::Kind::Count, true},
    {"attention.shared_kv_layers", "num_kv_shared_layers", Key::Kind::Count},
    {"expert_count", "num_experts"},
    {"expert_used_count", "top_k_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
};
constexpr Flag kGemma4Flags[] = {{"enable_moe_block", "blk.0.ffn_gate_inp.weight"},
                                 {"attention_bias", "blk.0.attn_q.bias"}};
constexpr std::string_view kGeluTanh = R"({"hidden_activation": "gelu_pytorch_tanh"})";

// ---- experts ------------------------------------------------------------------------------------

constexpr Name kQwenExperts[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.{}.gate_proj", kExperts},
    {"ffn_up_exps", "mlp.experts.{}.up_proj", kExperts},
    {"ffn_down_exps", "mlp.experts.{}.down_proj", kExperts},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate", Name::Change::OneRow},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};
constexpr Key kQwen3MoeKeys[] = {
    {"expert_count", "num_experts", kSize, true},
    {"expert_used_count", "num_experts_per_tok", kSize, true},
    {"expert_feed_forward_length", "moe_intermediate_size", kSize, true},
};
constexpr Key kQwen2MoeKeys[] = {
    {"expert_count", "num_experts", kSize, true},
    {"expert_used_count", "num_experts_per_tok", kSize, true},
    {"expert_feed_forward_length", "moe_intermediate_size", kSize, true},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size", kSize, true},
};
constexpr Flag kQwen2MoeFlags[] = {{"qkv_bias", "blk.0.attn_q.bias"}};

// The file has no width for experts: feed_forward_length is the width of each expert.
constexpr Key kExpertKeys[] = {
    {"expert_count", "num_local_experts", kSize, true},
    {"expert_used_count", "num_experts_per_tok", kSize, true},
};

constexpr Name kMixtralNames[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.{}.w1", kExperts},
    {"ffn_up_exps", "block_sparse_moe.experts.{}.w3", kExperts},
    {"ffn_down_exps", "block_sparse_moe.experts.{}.w2", kExperts},
};

// DeepSeek. Older files have attn_kv_b as it was trained. Newer files have the part that computes
// keys (attn_k_b, transposed) and the part that computes values (attn_v_b) for each head.
constexpr Name kDeepseekNames[] = {
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attn_kv_b", "self_attn.kv_b_proj"},
    {"attn_k_b", "self_attn.k_b_proj.{}", kHeads},
    {"attn_v_b", "self_attn.v_b_proj.{}", kHeads},
    {"ffn_gate_inp", "mlp.gate"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_exps", "mlp.experts.{}.gate_proj", kExperts},
    {"ffn_up_exps", "mlp.experts.{}.up_proj", kExperts},
    {"ffn_down_exps", "mlp.experts.{}.down_proj", kExperts},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
};
constexpr Key kDeepseekKeys[] = {
    {"leading_dense_block_count", "first_k_dense_replace", Key::Kind::Count, true},
    {"attention.q_lora_rank", "q_lora_rank", kSize},
    {"expert_count", "n_routed_experts", kSize, true},
    {"expert_used_count", "num_experts_per_tok", kSize, true},
    {"expert_shared_count", "n_shared_experts", kSize, true},
    {"expert_feed_forward_length", "moe_intermediate_size", kSize, true},
    {"expert_weights_scale", "routed_scaling_factor", kNumber},
    {"expert_weights_norm", "norm_topk_prob", Key::Kind::Flag},
    {"expert_group_count", "n_group", kSize},
    {"expert_group_used_count", "topk_group", kSize},
};
constexpr Flag kDeepseekFlags[] = {{"stored_heads_apart", "blk.0.attn_k_b.weight"}};
// Without these keys, llama.cpp forms no groups and does not scale.
constexpr std::string_view kDeepseekFixed =
    R"({"q_lora_rank": null, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0})";
constexpr GgufArchitecture kDeepseek2 = {.name = "deepseek2",
                                         .model_type = "deepseek_v2",
                                         .names = kDeepseekNames,
                                         .keys = kDeepseekKeys,
                                         .flags = kDeepseekFlags,
                                         .fixed = kDeepseekFixed,
                                         .latent_heads = true,
                                         .yarn = true,
                                         .predicts = true};
constexpr GgufArchitecture kDeepseek3 = [] {
  GgufArchitecture third = kDeepseek2;
  third.model_type = "deepseek_v3";
  third.marker = "expert_weights_norm";
  third.sigmoid = true;
  return third;
}();

// ---- others -------------------------------------------------------------------------------------

constexpr Name kPhi3Names[] = {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}};
// src/models/phi3.cpp ignores the window and warns that results may be worse. This engine uses it.
constexpr Key kPhi3Keys[] = {{"attention.sliding_window", "sliding_window", kSize}};

constexpr Key kGraniteKeys[] = {
    {"attention.scale", "attention_multiplier", kNumber, true},
    {"embedding_scale", "embedding_multiplier", kNumber, true},
    {"residual_scale", "residual_multiplier", kNumber, true},
    {"logit_scale", "logits_scaling", kNumber, true},
};

constexpr Name kOlmo2Names[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

// The norms of OLMo 1 have no weights, and config.json has no field for their eps.
constexpr Key kOlmoKeys[] = {{"attention.clamp_kqv", "clip_qkv", kNumber}};

// Files of OLMo 3 have the architecture name of OLMo 2, but only they have a window.
constexpr std::string_view kOlmo3Marker = "attention.sliding_window";

constexpr Name kStarcoder2Names[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};
constexpr Flag kStarcoder2Flags[] = {{"use_bias", "blk.0.attn_q.bias"}};

constexpr Flag kStablelmFlags[] = {{"use_qkv_bias", "blk.0.attn_q.bias"},
                                   {"use_parallel_residual", "blk.0.ffn_norm.weight", false}};

// The value is often wrong; the tensors show which kind the model is.
constexpr std::string_view kStablelmNoEffect[] = {"use_parallel_residual"};

constexpr Name kGlm4Names[] = {
    {"post_attention_norm", "post_self_attn_layernorm"},
    {"ffn_up", "mlp.gate_up_proj"},
    {"post_ffw_norm", "post_mlp_layernorm"},
};
// ChatGLM2, ChatGLM3 and GLM-4, which Hugging Face calls "glm". Some files have q, k and v in one
// tensor.
constexpr Name kChatGlmNames[] = {
    {"attn_qkv", "self_attn.{}_proj", Name::Change::Thirds},
    {"ffn_up", "mlp.gate_up_proj"},
};
constexpr Flag kChatGlmFlags[] = {{"attention_bias", "blk.0.attn_qkv.bias"},
                                  {"attention_bias", "blk.0.attn_q.bias"}};
constexpr Flag kErnieFlags[] = {{"use_bias", "blk.0.attn_output.bias"}};

// Command R. The files have no lm_head: llama.cpp uses the embedding table.
constexpr Key kCohereKeys[] = {{"logit_scale", "logit_scale", kNumber, true}};
constexpr Flag kCohereFlags[] = {{"attention_bias", "blk.0.attn_q.bias"},
                                 {"use_qk_norm", "blk.0.attn_q_norm.weight"}};

// The last norm is called token_embd_norm in some files and output_norm in others.
constexpr Name kLfm2Names[] = {
    {"token_embd_norm", "model.embedding_norm"},
    {"output_norm", "model.embedding_norm"},
    {"attn_norm", "operator_norm"},
    {"attn_q_norm", "self_attn.q_layernorm"},
    {"attn_k_norm", "self_attn.k_layernorm"},
    {"attn_output", "self_attn.out_proj"},
    {"shortconv.in_proj", "conv.in_proj"},
    {"shortconv.conv", "conv.conv", Name::Change::Taps},
    {"shortconv.out_proj", "conv.out_proj"},
    {"ffn_norm", "ffn_norm"},
    {"ffn_gate", "feed_forward.w1"},
    {"ffn_up", "feed_forward.w3"},
    {"ffn_down", "feed_forward.w2"},
};
constexpr Key kLfm2Keys[] = {{"shortconv.l_cache", "conv_L_cache", kSize, true}};
constexpr Flag kLfm2Flags[] = {{"conv_bias", "blk.0.shortconv.conv.bias"}};

constexpr Name kGptOssNames[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"attn_sinks.weight", "self_attn.sinks"},
    {"ffn_gate_inp", "mlp.router"},
    {"ffn_gate_exps", "mlp.experts.{}.gate_proj", kExperts},
    {"ffn_up_exps", "mlp.experts.{}.up_proj", kExperts},
    {"ffn_down_exps", "mlp.experts.{}.down_proj", kExperts},
};
constexpr Key kGptOssKeys[] = {
    {"expert_count", "num_local_experts", kSize, true},
    {"expert_used_count", "num_experts_per_tok", kSize, true},
    {"expert_feed_forward_length", "intermediate_size", kSize, true},
};

// ---- older architectures ------------------------------------------------------------------------

constexpr auto kThirds = Name::Change::Thirds;
constexpr std::string_view kApart = R"({"stored_qkv_apart": true})";

constexpr Name kGpt2Names[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"attn_norm", "ln_1"},
    {"attn_qkv", "attn.{}_proj", kThirds},
    {"attn_output", "attn.c_proj"},
    {"ffn_norm", "ln_2"},
    {"ffn_up", "mlp.c_fc"},
    {"ffn_down", "mlp.c_proj"},
};
constexpr GgufField kGpt2Fields[] = {
    {"hidden_size", "n_embd"},
    {"intermediate_size", "n_inner"},
    {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},
    {"num_key_value_heads", ""},
    {"max_position_embeddings", "n_positions"},
    {"rope_theta", ""},
};

constexpr Name kNeoxNames[] = {
    {"token_embd", "gpt_neox.embed_in"},
    {"output_norm", "gpt_neox.final_layer_norm"},
    {"output", "embed_out"},
    {"attn_qkv", "attention.{}_proj", kThirds},
    {"attn_output", "attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
};
constexpr Key kNeoxKeys[] = {{"use_parallel_residual", "use_parallel_residual", Key::Kind::Flag}};
constexpr GgufField kNeoxFields[] = {
    {"num_key_value_heads", ""},
    {"rope_theta", "rotary_emb_base"},
    {"partial_rotary_factor", "rotary_pct"},
};

constexpr Name kBloomNames[] = {
    {"token_embd", "transformer.word_embeddings"},
    {"token_embd_norm", "transformer.word_embeddings_layernorm"},
    {"output_norm", "transformer.ln_f"},
    {"attn_qkv", "self_attention.{}_proj", kThirds},
    {"attn_output", "self_attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
};
constexpr GgufField kBloomFields[] = {
    {"intermediate_size", "n_inner"},          {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},         {"num_key_value_heads", ""},
    {"max_position_embeddings", "seq_length"}, {"rope_theta", ""},
};

// Falcon 40B has two norms per layer. Falcon 7B has one, whose name is "attn_norm" too.
constexpr Name kFalconNames[] = {
    {"attn_norm", "ln_mlp"},
    {"attn_norm_2", "ln_attn"},
    {"token_embd", "transformer.word_embeddings"},
    {"output_norm", "transformer.ln_f"},
    {"attn_qkv", "self_attention.{}_proj", kThirds},
    {"attn_output", "self_attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
};
constexpr GgufField kFalconFields[] = {
    {"intermediate_size", "ffn_hidden_size"},
    {"num_key_value_heads", "num_kv_heads"},
};
// llama.cpp computes GELU in its tanh form, as for gptneox.
constexpr GgufArchitecture kFalcon40b = {
    .name = "falcon",
    .model_type = "falcon",
    .marker = "blk.0.attn_norm_2.weight",
    .names = kFalconNames,
    .layers = "transformer.h.",
    .norm_eps = kLayerNormEpsilon,
    .fields = kFalconFields,
    .fixed = R"({"stored_qkv_apart": true, "new_decoder_architecture": true})",
    .has_head_dim = false};
constexpr GgufArchitecture kFalcon7b = [] {
  GgufArchitecture one_norm = kFalcon40b;
  one_norm.marker = "";
  one_norm.names = std::span(kFalconNames).subspan(2);
  one_norm.fixed = R"({"stored_qkv_apart": true, "new_decoder_architecture": true,
                       "num_ln_in_parallel_attn": 1})";
  return one_norm;
}();

// Older files of phi-2, from before transformers had its code, have q, k and v in one tensor.
constexpr Name kPhi2Names[] = {
    {"output_norm", "model.final_layernorm"},
    {"attn_qkv", "self_attn.{}_proj", kThirds},
    {"attn_output", "self_attn.dense"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
};

// Qwen3.5. The files have the value heads in another order: one of each key head in turn.
constexpr Name kQwen35Names[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"attn_qkv", "linear_attn.in_proj_qkv"},
    {"attn_gate", "linear_attn.in_proj_z"},
    {"ssm_beta", "linear_attn.in_proj_b"},
    {"ssm_alpha", "linear_attn.in_proj_a"},
    {"ssm_conv1d", "linear_attn.conv1d", Name::Change::Taps},
    {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"ssm_a", "linear_attn.A_log", Name::Change::MinusExp},
    {"ssm_norm", "linear_attn.norm", Name::Change::AsStored},
    {"ssm_out", "linear_attn.out_proj"},
};
constexpr Key kQwen35Keys[] = {
    {"ssm.conv_kernel", "linear_conv_kernel_dim", kSize, true},
    {"ssm.state_size", "linear_key_head_dim", kSize, true},
    {"ssm.state_size", "linear_value_head_dim", kSize, true},
    {"ssm.group_count", "linear_num_key_heads", kSize, true},
    {"ssm.time_step_rank", "linear_num_value_heads", kSize, true},
    {"full_attention_interval", "full_attention_interval", kSize},
};
constexpr std::string_view kQwen35NoEffect[] = {
    "rope.dimension_sections",  // for images; in text, the three positions are equal
};

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .model_type = "llama",
     .pairs = true,
     .rope_factors = RopeFactors::Any,
     .flags = kLlamaBiases,
     .yarn = true},
    {.name = "qwen2",
     .model_type = "qwen2",
     .rope_factors = RopeFactors::Any,
     .flags = kLlamaBiases,
     .yarn = true},
    {.name = "qwen3",
     .model_type = "qwen3",
     .rope_factors = RopeFactors::Any,
     .flags = kLlamaBiases,
     .yarn = true},
    {.name = "gemma", .model_type = "gemma", .norms_plus_one = true, .fixed = kGeluTanh},
    {.name = "gemma2",
     .model_type = "gemma2",
     .names = kGemmaNames,
     .norms_plus_one = true,
     .keys = kGemma2Keys,
     // src/models/gemma2.cpp uses these caps if the file has no such keys.
     .fixed = R"({"hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": 50.0,
                  "final_logit_softcapping": 30.0})",
     .period = 2,
     .window = 4096,
     .wide_model = 46},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .names = kGemmaNames,
     .norms_plus_one = true,
     .keys = kGemma3Keys,
     .fixed = R"({"hidden_activation": "gelu_pytorch_tanh", "rope_local_base_freq": 10000.0})",
     .period = 6,
     .wide_model = 62},
    // If the file has no soft cap, llama.cpp caps at 30. This engine does not: a model without a
    // cap in its config was trained without one.
    {.name = "gemma4",
     .model_type = "gemma4_text",
     .names = kGemma4Names,
     .rope_factors = RopeFactors::Partial,
     .keys = kGemma4Keys,
     .flags = kGemma4Flags,
     .fixed = kGeluTanh,
     .two_kinds = true,
     .period = 6},
    {.name = "qwen3moe",
     .model_type = "qwen3_moe",
     .names = kQwenExperts,
     .keys = kQwen3MoeKeys,
     .flags = kOutputBias,
     .fixed = R"({"norm_topk_prob": true})",
     .yarn = true},
    {.name = "qwen2moe",
     .model_type = "qwen2_moe",
     .names = kQwenExperts,
     .keys = kQwen2MoeKeys,
     .flags = kQwen2MoeFlags,
     .fixed = R"({"norm_topk_prob": false})",
     .yarn = true},
    {.name = "smollm3",
     .model_type = "smollm3",
     .pairs = true,
     .flags = kLlamaBiases,
     .fixed = R"({"no_rope_layer_interval": 4})"},
    {.name = "phi3", .model_type = "phi3", .names = kPhi3Names, .keys = kPhi3Keys},
    {.name = "granite",
     .model_type = "granite",
     .pairs = true,
     .keys = kGraniteKeys,
     .flags = kLlamaBiases,
     .rope_switch = true},
    {.name = "olmo",
     .model_type = "olmo",
     .pairs = true,
     .norm_eps = {"attention.layer_norm_epsilon", "stored_norm_eps"},
     .keys = kOlmoKeys},
    {.name = "olmo2", .model_type = "olmo2", .names = kOlmo2Names, .yarn = true},
    {.name = "olmo2",
     .model_type = "olmo3",
     .marker = kOlmo3Marker,
     .names = kOlmo2Names,
     .yarn = true,
     .period = 4},
    // llama.cpp rounds the bounds of yarn ("truncate"); the model was trained without rounding.
    {.name = "gpt-oss",
     .model_type = "gpt_oss",
     .names = kGptOssNames,
     .keys = kGptOssKeys,
     .flags = kQueryBias,
     .fixed = R"({"stored_experts_apart": true, "rope_scaling": {"truncate": false}})",
     .yarn = true,
     .period = 2},
    {.name = "starcoder2",
     .model_type = "starcoder2",
     .names = kStarcoder2Names,
     .norm_eps = {"attention.layer_norm_epsilon", "norm_epsilon"},
     .flags = kStarcoder2Flags,
     .fixed = R"({"hidden_act": "gelu_pytorch_tanh"})"},
    {.name = "stablelm",
     .model_type = "stablelm",
     .norm_eps = kLayerNormEps,
     .flags = kStablelmFlags,
     .partial_rope = true,
     .no_effect = kStablelmNoEffect},
    {.name = "olmoe",
     .model_type = "olmoe",
     .names = kQwenExperts,
     .keys = kExpertKeys,
     .flags = kOutputBias,
     .fixed = R"({"norm_topk_prob": false})",
     .has_head_dim = false},
    {.name = "llama",
     .model_type = "mixtral",
     .marker = "expert_count",
     .names = kMixtralNames,
     .pairs = true,
     .keys = kExpertKeys},
    {.name = "glm4",
     .model_type = "glm4",
     .names = kGlm4Names,
     .flags = kQueryBias,
     .partial_rope = true},
    {.name = "chatglm",
     .model_type = "glm",
     .names = kChatGlmNames,
     .flags = kChatGlmFlags,
     .partial_rope = true},
    kDeepseek2,
    kDeepseek3,
    {.name = "ernie4_5", .model_type = "ernie4_5", .flags = kErnieFlags},
    {.name = "command-r",
     .model_type = "cohere",
     .norm_eps = kLayerNormEps,
     .keys = kCohereKeys,
     .flags = kCohereFlags},
    {.name = "cohere2",
     .model_type = "cohere2",
     .norm_eps = kLayerNormEps,
     .keys = kCohereKeys,
     .flags = kQueryBias,
     .period = 4},
    {.name = "lfm2",
     .model_type = "lfm2",
     .names = kLfm2Names,
     .norm_eps = {"attention.layer_norm_rms_epsilon", "norm_eps"},
     .keys = kLfm2Keys,
     .flags = kLfm2Flags,
     .fixed = R"({"block_auto_adjust_ff_dim": false})",
     .has_head_dim = false,
     .conv_layers = true},
    {.name = "gpt2",
     .model_type = "gpt2",
     .names = kGpt2Names,
     .layers = "transformer.h.",
     .norm_eps = kLayerNormEpsilon,
     .fields = kGpt2Fields,
     .fixed = kApart,
     .has_head_dim = false},
    // llama.cpp computes GELU in its tanh form; the models were trained with the exact form.
    {.name = "gptneox",
     .model_type = "gpt_neox",
     .names = kNeoxNames,
     .layers = "gpt_neox.layers.",
     .norm_eps = kLayerNormEps,
     .keys = kNeoxKeys,
     .flags = kOutputBias,
     .fields = kNeoxFields,
     .fixed = kApart,
     .has_head_dim = false,
     .partial_rope = true},
    {.name = "bloom",
     .model_type = "bloom",
     .names = kBloomNames,
     .layers = "transformer.h.",
     .norm_eps = kLayerNormEpsilon,
     .fields = kBloomFields,
     .fixed = kApart,
     .has_head_dim = false},
    kFalcon7b,
    kFalcon40b,
    {.name = "phi2",
     .model_type = "phi",
     .names = kPhi2Names,
     .norm_eps = kLayerNormEps,
     .has_head_dim = false,
     .partial_rope = true},
    {.name = "qwen35",
     .model_type = "qwen3_5_text",
     .names = kQwen35Names,
     .norms_plus_one = true,
     .keys = kQwen35Keys,
     .fixed = R"({"stored_key_heads_in_turn": true})",
     .partial_rope = true,
     .predicts = true,
     .no_effect = kQwen35NoEffect},
};

}  // namespace

const GgufArchitecture* find_gguf_architecture(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const std::string_view name = metadata.text("general.architecture");
  const auto is_marked = [&](std::string_view marker) {
    const std::string key = fmt::format("{}.{}", name, marker);
    if (file.find(marker) != nullptr) return true;
    return metadata.has(key) && !metadata.is_off(key);
  };
  const GgufArchitecture* found = nullptr;
  for (const GgufArchitecture& entry : kArchitectures) {
    if (entry.name != name) continue;
    if (entry.marker.empty() ? found == nullptr : is_marked(entry.marker)) found = &entry;
  }
  return found;
}

std::size_t gguf_first_predicting_layer(const GgufMetadata& metadata,
                                        const GgufArchitecture& architecture) {
  const std::string key = fmt::format("{}.nextn_predict_layers", architecture.name);
  const std::string layers = fmt::format("{}.block_count", architecture.name);
  if (!architecture.predicts || !metadata.has(key) || metadata.is_off(key)) return SIZE_MAX;
  const std::size_t n = metadata.size(layers, 2, SIZE_MAX >> 1);
  return n - metadata.size(key, 1, n - 1);
}

std::string gguf_architecture_names() {
  std::vector<std::string_view> names;
  for (const GgufArchitecture& entry : kArchitectures) names.push_back(entry.name);
  return alternatives(std::move(names));
}

std::span<const GgufTensorName> gguf_model_names() { return kModelNames; }
std::span<const GgufTensorName> gguf_layer_names() { return kLayerNames; }

}  // namespace stagecraft
