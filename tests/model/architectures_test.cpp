// Configs and files of the architectures outside the Llama family: which configs are refused, and
// which other forms their files may have.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/decoder_writer.h"
#include "model/description.h"
#include "tests/support/engines.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// The error message for the config.json of a tiny model with one changed field.
std::string refusal(const std::string& model, const std::string& key, const nlohmann::json& value) {
  const TemporaryFolder folder;
  nlohmann::json config =
      nlohmann::json::parse(text_of(fs::path(TEST_DATA "/models") / model / "config.json"));
  config[key] = value;
  std::ofstream(folder.path() / "config.json") << config;
  try {
    describe_model(folder.path());
  } catch (const Error& error) {
    const std::string what = error.what(), file = "config.json: ";
    const std::size_t at = what.find(file);
    return at == std::string::npos ? what : what.substr(at + file.size());
  }
  return "not refused";
}

TEST(Description, TakesTheEndsOfATextFromGenerationConfigIfItNamesThem) {
  for (const char* model : {"llama-mha", "llama-gelu", "qwen2-rope-yarn", "gpt2-tied"}) {
    const TemporaryFolder folder;
    fs::copy(fs::path(TEST_DATA "/models") / model / "config.json", folder.path());
    const auto expect_ends = [&](const std::vector<TokenId>& ends) {
      const ModelDescription description = describe_model(folder.path());
      EXPECT_EQ(description.plan.eos_ids, ends) << model;
      const bool has_config = description.config.has_value();
      EXPECT_EQ(has_config ? description.config->eos_ids : ends, ends) << model;
    };
    expect_ends({2});
    write_file(folder.file("generation_config.json"), "{}");
    expect_ends({2});
    write_file(folder.file("generation_config.json"), R"({"eos_token_id": [5, 3]})");
    expect_ends({5, 3});
  }
}

// Qwen's files name the length of the training as the longest one.
TEST(Description, YarnMakesTheContextOfALlamaLonger) {
  const auto context = [](std::string_view config) {
    const TemporaryFolder folder;
    write_file(folder.file("config.json"), std::string(config));
    const ModelDescription description = describe_model(folder.path());
    EXPECT_FALSE(description.config.has_value());
    return description.plan.max_seq_len;
  };
  auto config = nlohmann::json::parse(read_file(TEST_DATA "/models/qwen2-rope-yarn/config.json"));
  EXPECT_EQ(context(config.dump()), 256u);  // 4 times 64
  config["rope_scaling"]["original_max_position_embeddings"] = 8;
  EXPECT_EQ(context(config.dump()), 64u);
  config["rope_scaling"]["factor"] = 1e6;
  config["rope_scaling"]["original_max_position_embeddings"] = 1 << 24;
  EXPECT_EQ(context(config.dump()), std::size_t{1} << 24);
}

TEST(Architectures, RefuseByNameWhatWouldChangeTheResult) {
  struct Row {
    std::string model, key;
    nlohmann::json value;
    std::string expected;
  };
  const Row rows[] = {
      {"gpt2-tied", "add_cross_attention", true,
       "'add_cross_attention': expected false, found true"},
      {"gpt2-tied", "activation_function", "tanh",
       "'activation_function': expected gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or "
       "silu, "
       "found 'tanh'"},
      {"gpt2-tied", "hidden_size", 16,
       "'hidden_size': expected none (GPT-2's own fields are 'n_embd', ...), found 16"},
      {"gpt2-tied", "n_head", 3, "'n_embd': expected a multiple of 'n_head' 3, found 16"},
      {"gpt2-tied", "n_head", 16, "'n_embd': expected an even multiple of 'n_head' 16, found 16"},
      {"phi-mha", "num_attention_heads", 6,
       "'hidden_size': expected an even multiple of 'num_attention_heads' 6 (RoPE rotates pairs), "
       "found 30"},
      {"falcon-alibi", "num_attention_heads", 6,
       "'hidden_size': expected an even multiple of 'num_attention_heads' 6, found 18"},
      {"gpt2-tied", "layer_norm_epsilon", -1.0, ""},
      {"gpt-neox-parallel", "rope_theta", 500.0,
       "'rope_theta': expected 'rotary_emb_base' instead, found 500.0"},
      {"gpt-neox-parallel", "rotary_pct", 0.125,
       "'rotary_pct': expected an even number of rotated columns (of 8 per head), found 1"},
      {"gpt-neox-parallel", "partial_rotary_factor", 0.5,
       "'partial_rotary_factor': 0.5 is not supported"},
      {"gpt-neox-parallel", "num_key_value_heads", 1,
       "'num_key_value_heads': expected none (the head size is hidden_size / num_attention_heads), "
       "found 1"},
      {"gptj-whole-heads", "rotary", false, "'rotary': expected true, found false"},
      {"gptj-whole-heads", "scale_attn_weights", false,
       "'scale_attn_weights': expected true, found false"},
      {"gptj-whole-heads", "rotary_dim", 8,
       "'rotary_dim': expected an even number up to the head's 6 columns, found 8"},
      {"gptj-whole-heads", "rotary_dim", 3,
       "'rotary_dim': expected an even number up to the head's 6 columns, found 3"},
      {"gptj-whole-heads", "rope_theta", 500.0,
       "'rope_theta': expected none (theta 10000), found 500.0"},
      {"gptj-whole-heads", "hidden_size", 24,
       "'n_embd': expected 24 (the value of 'hidden_size'), found 18"},
      {"opt-norm-before", "activation_function", "tanh", ""},
      {"opt-norm-before", "head_dim", 8, ""},
      {"opt-norm-before", "word_embed_proj_dim", 0, ""},
      {"bloom-4-heads", "slow_but_exact", true, "not refused"},
      {"bloom-6-heads", "slow_but_exact", true, "'slow_but_exact': expected false, found true"},
      {"bloom-6-heads", "n_inner", 50, "'n_inner': expected 4 * 'n_embed' = 48, found 50"},
      {"bloom-6-heads", "n_head", 4,
       "'n_head': expected 6 (the value of 'num_attention_heads'), found 4"},
      {"falcon-two-norms", "num_kv_heads", 4,
       "'num_attention_heads': expected a multiple of 'num_kv_heads' 4, found 6"},
      {"falcon-two-norms", "num_ln_in_parallel_attn", 3,
       "'num_ln_in_parallel_attn': expected 1 or 2, found 3"},
      {"falcon-two-norms", "parallel_attn", false,
       "'parallel_attn': expected true with 'new_decoder_architecture', found false"},
      {"falcon-two-norms", "num_key_value_heads", 2, ""},
      {"falcon-one-key-head", "num_ln_in_parallel_attn", 2,
       "'num_ln_in_parallel_attn': expected 1, found 2"},
      {"falcon-one-key-head", "num_kv_heads", 3, "not refused"},
      {"falcon-one-key-head", "rope_scaling", nlohmann::json{{"type", "dynamic"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear or llama3, found 'dynamic'"},
      {"falcon-alibi", "num_kv_heads", 1, "'num_kv_heads': expected 3, one per head, found 1"},
      {"phi-gqa2", "qk_layernorm", true, "'qk_layernorm': true is not supported"},
      {"phi-gqa2", "hidden_act", "quick_gelu",
       "'hidden_act': expected gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or silu, "
       "found 'quick_gelu'"},
      {"phi-gqa2", "rope_scaling", nlohmann::json{{"type", "linear"}, {"factor", 2.0}},
       "rope type: expected default, found linear"},
      {"phi-gqa2", "rope_scaling",
       nlohmann::json{{"type", "default"}, {"partial_rotary_factor", 0.0}},
       "'partial_rotary_factor': expected an even number of rotated columns (of 8 per head), found "
       "0"},
      {"stablelm-biases", "qk_layernorm", true, "'qk_layernorm': true is not supported"},
      {"stablelm-biases", "hidden_act", "gelu",
       "'hidden_act': expected 'silu' or 'swish', found 'gelu'"},
      {"starcoder2-window4", "norm_type", "rms_norm",
       "'norm_type': expected 'layer_norm', found 'rms_norm'"},
      {"starcoder2-window4", "mlp_type", "gated", "'mlp_type': expected 'default', found 'gated'"},
      {"llama-gqa2", "hidden_act", "gelu_10",
       "'hidden_act': expected gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or silu, "
       "found 'gelu_10'"},
      {"ernie4_5-tied", "moe_num_experts", 64, "'moe_num_experts': 64 is not supported"},
      {"ernie4_5-tied", "hidden_act", "gelu_10",
       "'hidden_act': expected gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or silu, "
       "found 'gelu_10'"},
      {"ernie4_5-tied", "use_bias", "no", "'use_bias': expected true or false, found \"no\""},
      {"ernie4_5-tied", "rope_scaling", nlohmann::json{{"type", "dynamic"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear or llama3, found 'dynamic'"},
      {"glm-half-rotary", "partial_rotary_factor", 0.125,
       "'partial_rotary_factor': expected an even number of rotated columns (of 8 per head), found "
       "1"},
      {"glm4-post-norms", "rope_scaling", nlohmann::json{{"type", "linear"}, {"factor", 2.0}},
       "rope type: expected default, found linear"},
      {"glm4-post-norms", "num_key_value_heads", 3,
       "'num_attention_heads': expected a multiple of 'num_key_value_heads' 3, found 4"},
      {"chatglm-gmask", "position_encoding_2d", false,
       "'position_encoding_2d': expected true, found false"},
      {"chatglm-gmask", "bos_token_id", nullptr, ""},
      {"chatglm-gmask", "gmask_token_id", 37,
       "'gmask_token_id': expected a whole number from 0 to 36, found 37"},
      {"chatglm-gmask", "mask_token_id", -1, ""},
      {"chatglm-gmask", "num_attention_heads", 8,
       "'hidden_size': expected a head size that is a multiple of 4 (RoPE rotates pairs in half a "
       "head), found 2"},
      {"chatglm-gmask", "inner_hidden_size", 0, ""},
      {"chatglm-gmask", "pre_seq_len", 8,
       "'pre_seq_len': expected null (no tuned prompt), found 8"},
      {"chatglm-gmask", "quantization_bit", 8, "'quantization_bit': 8 is not supported"},
      {"chatglm2-two-key-heads", "apply_residual_connection_post_layernorm", true,
       "'apply_residual_connection_post_layernorm': expected false, found true"},
      {"chatglm2-two-key-heads", "apply_query_key_layer_scaling", false, "not refused"},
      {"chatglm2-two-key-heads", "rmsnorm", false, "'rmsnorm': expected true, found false"},
      {"chatglm2-two-key-heads", "post_layer_norm", false,
       "'post_layer_norm': expected true, found false"},
      {"chatglm2-two-key-heads", "original_rope", false,
       "'original_rope': expected true, found false"},
      {"chatglm2-two-key-heads", "rope_ratio", 50, "'rope_ratio': expected 1, found 50"},
      {"chatglm2-two-key-heads", "rope_theta", 500.0,
       "'rope_theta': expected none (theta 10000), found 500.0"},
      {"chatglm2-two-key-heads", "pre_seq_len", 8,
       "'pre_seq_len': expected null (no tuned prompt), found 8"},
      {"chatglm2-two-key-heads", "quantization_bit", 4, "'quantization_bit': 4 is not supported"},
      {"chatglm2-two-key-heads", "multi_query_group_num", 3,
       "'num_attention_heads': expected a multiple of 'multi_query_group_num' 3, found 4"},
      {"chatglm2-two-key-heads", "kv_channels", 6,
       "'kv_channels': expected a head size that is a multiple of 4 (RoPE rotates pairs in half a "
       "head), found 6"},
      {"chatglm2-two-key-heads", "padded_vocab_size", "many", ""},
      {"chatglm2-two-key-heads", "vocab_size", 38,
       "'padded_vocab_size': expected 38 (the value of 'vocab_size'), found 37"},
      {"chatglm2-two-key-heads", "ffn_hidden_size", nullptr, ""},
      {"chatglm2-biases", "num_hidden_layers", 3,
       "'num_layers': expected 3 (the value of 'num_hidden_layers'), found 2"},
      {"olmo-clip", "clip_qkv", 0.0, ""},
      {"olmo-clip", "clip_qkv", "8", ""},
      {"olmo-clip", "rope_scaling", nlohmann::json{{"type", "yarn"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear or llama3, found 'yarn'"},
      {"olmo3-yarn", "rope_theta", 10000.0,
       "'rope_theta': expected 500000 (or one per kind of layer in 'rope_parameters'), found "
       "10000.0"},
      {"olmo3-yarn", "rope_scaling", nlohmann::json{{"type", "longrope"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear, llama3 or yarn, found 'longrope'"},
      {"olmo3-yarn", "rope_scaling",
       nlohmann::json{{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 4.0}},
       "rope_scaling: 'beta_fast': 4.0 is not supported"},
      {"olmo3-yarn", "rope_scaling",
       nlohmann::json{{"type", "yarn"}, {"factor", 2.0}, {"beta_fast", -1.0}},
       "rope_scaling: 'beta_fast': expected a number from 0.001 to 1000000, found -1.0"},
      {"olmo3-yarn", "rope_scaling",
       nlohmann::json{{"type", "yarn"}, {"factor", 2.0}, {"truncate", false}},
       "'truncate': expected true, found false"},
      {"olmo3-yarn", "sliding_window", nullptr, "'sliding_window': expected a size, found null"},
      {"qwen2-rope-yarn", "rope_scaling",
       nlohmann::json{
           {"type", "yarn"}, {"factor", 4.0}, {"attn_factor", 0.878}, {"finetuned", true}},
       "not refused"},
      {"olmo3-layer-types", "rope_scaling", nlohmann::json{{"type", "linear"}, {"factor", 2.0}},
       "'rope_scaling': expected none beside 'rope_parameters', found an object"},
      {"olmo3-layer-types", "layer_types", nlohmann::json{"full_attention"},
       "'layer_types': expected one type for each of 2 layers, found an array of 1"},
      {"cohere-tied", "use_parallel_block", false,
       "'use_parallel_block': expected true, found false"},
      {"cohere-tied", "position_embedding_type", "alibi",
       "'position_embedding_type': expected 'rope_gptj', found 'alibi'"},
      {"cohere-tied", "logit_scale", -1.0, ""},
      {"cohere2-pattern", "use_qk_norm", true, "'use_qk_norm': expected false, found true"},
      {"cohere2-pattern", "order_of_interleaved_layers", "global_attn_first",
       "'order_of_interleaved_layers': expected 'local_attn_first', found 'global_attn_first'"},
      {"cohere2-pattern", "sliding_window_pattern", 0, ""},
      {"mixtral-2-of-5", "num_local_experts", 0, ""},
      {"mixtral-2-of-5", "num_local_experts", 40'000,
       "'num_local_experts': expected 1 to 32768, found 40000"},
      {"mixtral-2-of-5", "num_experts", 6,
       "'num_local_experts': expected 6 (the value of 'num_experts'), found 5"},
      {"mixtral-2-of-5", "num_experts_per_tok", 6,
       "'num_experts_per_tok': expected 1 to 5, found 6"},
      {"mixtral-2-of-5", "num_experts_per_tok", 0, ""},
      {"mixtral-2-of-5", "num_experts_per_tok", nullptr, "not refused"},  // 2
      {"mixtral-2-of-5", "moe_intermediate_size", 8, "'moe_intermediate_size': 8 is not supported"},
      {"mixtral-2-of-5", "hidden_act", "gelu_10", ""},
      {"mixtral-2-of-5", "sliding_window", 0, ""},
      {"mixtral-2-of-5", "rope_scaling", nlohmann::json{{"type", "yarn"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear or llama3, found 'yarn'"},
      {"qwen2-moe-shared", "use_qk_norm", true, "'use_qk_norm': expected false, found true"},
      {"qwen3-moe-3-of-7", "use_qk_norm", true, "not refused"},
      {"qwen3-moe-3-of-7", "rope_scaling", nlohmann::json{{"type", "yarn"}, {"factor", 4.0}},
       "not refused"},
      {"qwen3-moe-3-of-7", "use_qk_norm", false, "'use_qk_norm': expected true, found false"},
      {"qwen2-moe-shared", "num_experts", nullptr, "not refused"},
      {"qwen2-moe-shared", "num_experts", "five", ""},
      {"qwen2-moe-shared", "num_experts_per_tok", 6,
       "'num_experts_per_tok': expected 1 to 5, found 6"},
      {"qwen2-moe-shared", "shared_expert_intermediate_size", 0, ""},
      {"qwen2-moe-shared", "norm_topk_prob", 1, ""},
      {"qwen2-moe-shared", "mlp_only_layers", 1,
       "'mlp_only_layers': expected an array of layers, found 1"},
      {"qwen2-moe-shared", "mlp_only_layers", nlohmann::json{2}, ""},
      {"qwen2-moe-shared", "decoder_sparse_step", 0, ""},
      {"qwen2-moe-shared", "layer_types", nlohmann::json{"sliding_attention", "full_attention"},
       "'layer_types': layer 0 has a window, but 'sliding_window' gives no size"},
      {"qwen2-moe-layers", "sliding_window", nullptr,
       "'sliding_window': expected a size, found null"},
      {"qwen2-moe-shared", "routed_scaling_factor", 2.5,
       "'routed_scaling_factor': 2.5 is not supported"},
      {"qwen3-moe-3-of-7", "num_local_experts", 6,
       "'num_experts': expected 6 (the value of 'num_local_experts'), found 7"},
      {"qwen3-moe-3-of-7", "n_shared_experts", 1, "'n_shared_experts': 1 is not supported"},
      {"qwen3-moe-3-of-7", "moe_intermediate_size", 0, ""},
      {"olmoe-clip", "clip_qkv", 0.0, ""},
      {"olmoe-clip", "num_experts_per_tok", 7, "'num_experts_per_tok': expected 1 to 6, found 7"},
      {"olmoe-clip", "head_dim", 8,
       "'head_dim': expected none (the head size is hidden_size / num_attention_heads, no window), "
       "found 8"},
      {"olmoe-clip", "sliding_window", 4, ""},
      {"lfm2-conv-last", "full_attn_idxs", 1,
       "'full_attn_idxs': expected an array of layers, found 1"},
      {"lfm2-conv-last", "full_attn_idxs", nlohmann::json{3}, ""},
      {"lfm2-conv-last", "conv_L_cache", 0, ""},
      {"lfm2-conv-last", "conv_L_cache", 65,
       "'conv_L_cache': expected a whole number from 1 to 64, found 65"},
      {"lfm2-conv-last", "block_multiple_of", 0, ""},
      {"lfm2-conv-last", "block_ffn_dim_multiplier", 0.0, ""},
      {"lfm2-conv-last", "block_ffn_dim_multiplier", 0.01,
       "'block_ffn_dim_multiplier': expected a feed-forward width of 1 to 16777216, found 0"},
      {"lfm2-conv-last", "block_ff_dim", 0, ""},
      {"lfm2-conv-last", "conv_bias", "yes", ""},
      {"lfm2-conv-last", "rope_scaling", nlohmann::json{{"type", "yarn"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear or llama3, found 'yarn'"},
      {"lfm2-biases", "layer_types", nlohmann::json{"conv", "conv", "sliding_attention"},
       "'layer_types': expected 'full_attention' or 'conv', found 'sliding_attention'"},
      {"lfm2-biases", "layer_types", nlohmann::json{"conv"},
       "'layer_types': expected one type for each of 3 layers, found an array of 1"},
      {"qwen3_5-interval", "linear_num_value_heads", 3,
       "'linear_num_value_heads': expected a multiple of 'linear_num_key_heads' 2, found 3"},
      {"qwen3_5-interval", "linear_num_value_heads", 1 << 23,
       "'linear_num_value_heads': expected at most 16777216 numbers in all heads, found 41943064"},
      {"qwen3_5-interval", "linear_num_key_heads", 0, ""},
      {"qwen3_5-interval", "linear_key_head_dim", "six", ""},
      {"qwen3_5-interval", "linear_value_head_dim", -1, ""},
      {"qwen3_5-interval", "linear_conv_kernel_dim", 65,
       "'linear_conv_kernel_dim': expected a whole number from 1 to 64, found 65"},
      {"qwen3_5-interval", "full_attention_interval", 0, ""},
      {"qwen3_5-interval", "attn_output_gate", false,
       "'attn_output_gate': expected true, found false"},
      {"qwen3_5-interval", "hidden_act", "gelu",
       "'hidden_act': expected 'silu' or 'swish', found 'gelu'"},
      {"qwen3_5-interval", "num_experts", 4, "'num_experts': 4 is not supported"},
      {"qwen3_5-interval", "stored_key_heads_in_turn", true,
       "'stored_key_heads_in_turn': true is not supported"},
      {"gpt2-tied", "stored_qkv_apart", false, "'stored_qkv_apart': false is not supported"},
      {"qwen3_5-interval", "rope_parameters",
       nlohmann::json{{"rope_type", "yarn"}, {"factor", 2.0}},
       "rope_parameters: rope type: expected default, linear or llama3, found 'yarn'"},
      {"qwen3_5-layer-types", "layer_types", nlohmann::json{"linear_attention"},
       "'layer_types': expected one type for each of 3 layers, found an array of 1"},
      {"qwen3_5-layer-types", "layer_types",
       nlohmann::json{"linear_attention", "conv", "linear_attention"},
       "'layer_types': expected 'full_attention' or 'linear_attention', found 'conv'"},
      {"qwen3_5-layer-types", "model_type", "qwen3_5",
       "'text_config': expected an object, found none"},
      {"gpt-oss-2-of-5", "swiglu_limit", 0.0, ""},
      {"gpt-oss-2-of-5", "swiglu_alpha", -1.0, ""},
      {"gpt-oss-2-of-5", "experts_per_token", 3,
       "'num_experts_per_tok': expected 3 (the value of 'experts_per_token'), found 2"},
      {"gpt-oss-2-of-5", "num_experts_per_tok", 6,
       "'num_experts_per_tok': expected 1 to 5, found 6"},
      {"gpt-oss-2-of-5", "num_local_experts", 0, ""},
      {"gpt-oss-2-of-5", "hidden_act", "gelu",
       "'hidden_act': expected 'silu' or 'swish', found 'gelu'"},
      {"gpt-oss-2-of-5", "rope_scaling", nullptr, "'rope_scaling': expected an object, found none"},
      {"gpt-oss-2-of-5", "rope_scaling", nlohmann::json{{"type", "longrope"}, {"factor", 2.0}},
       "rope_scaling: rope type: expected default, linear, llama3 or yarn, found 'longrope'"},
      {"gpt-oss-2-of-5", "sliding_window", nullptr,
       "'sliding_window': expected a size, found null"},
      {"gpt-oss-layer-types", "layer_types", nlohmann::json{"full_attention"},
       "'layer_types': expected one type for each of 2 layers, found an array of 1"},
      {"deepseek-v3-groups", "kv_lora_rank", 0, ""},
      {"deepseek-v3-groups", "kv_lora_rank", 1 << 23,
       "'kv_lora_rank': expected at most 2097152, found 8388608"},
      {"deepseek-v3-groups", "q_lora_rank", -1, ""},
      {"deepseek-v3-groups", "qk_rope_head_dim", 3,
       "'qk_rope_head_dim': expected an even number (RoPE rotates pairs), found 3"},
      {"deepseek-v3-groups", "v_head_dim", "three", ""},
      {"deepseek-v3-groups", "num_key_value_heads", 2,
       "'num_key_value_heads': expected 4, one per head, found 2"},
      {"deepseek-v3-groups", "n_group", 4,
       "'n_group': expected a divisor of 6 (the experts) that leaves at least 2 per group, found "
       "4"},
      {"deepseek-v3-groups", "n_group", 6,
       "'n_group': expected a divisor of 6 (the experts) that leaves at least 2 per group, found "
       "6"},
      {"deepseek-v3-groups", "n_group", 100, "'n_group': expected at most 64, found 100"},
      {"deepseek-v3-groups", "topk_group", 4, "'topk_group': expected at most 3, found 4"},
      {"deepseek-v3-groups", "num_experts_per_tok", 5,
       "'num_experts_per_tok': expected at most 4, found 5"},
      {"deepseek-v3-groups", "scoring_func", "softmax",
       "'scoring_func': expected 'sigmoid', found 'softmax'"},
      {"deepseek-v3-groups", "topk_method", "greedy",
       "'topk_method': expected 'noaux_tc', found 'greedy'"},
      {"deepseek-v3-groups", "moe_layer_freq", 2,
       "'moe_layer_freq': expected a whole number from 1 to 1, found 2"},
      {"deepseek-v3-groups", "first_k_dense_replace", -1, ""},
      {"deepseek-v3-groups", "n_shared_experts", 0, ""},
      {"deepseek-v3-groups", "n_shared_experts", 1 << 24,
       "'n_shared_experts': expected at most 2396745, found 16777216"},
      {"deepseek-v3-groups", "num_nextn_predict_layers", 17,
       "'num_nextn_predict_layers': expected a whole number from 0 to 16, found 17"},
      {"deepseek-v3-groups", "rope_scaling",
       nlohmann::json{{"type", "yarn"}, {"factor", 4.0}, {"attention_factor", 1.25}},
       "'mscale': expected the value of 'mscale_all_dim', or 'attention_factor' 1, found an "
       "attention factor of 1.25"},
      {"deepseek-v2-greedy", "num_experts_per_tok", nullptr, ""},
      {"deepseek-v2-greedy", "norm_topk_prob", true,
       "'norm_topk_prob': expected false, found true"},
      {"deepseek-v2-greedy", "topk_method", "noaux_tc",
       "'topk_method': expected 'greedy' or 'group_limited_greedy', found 'noaux_tc'"},
      {"deepseek-v2-greedy", "rope_interleave", false,
       "'rope_interleave': expected true, found false"},
      {"deepseek-v2-groups", "n_group", nullptr, ""},
      {"gemma4-shared-caches", "model_type", "gemma4",
       "'text_config': expected an object, found none"},
      {"gemma4-shared-caches", "num_kv_shared_layers", 4,
       "'num_kv_shared_layers': expected an earlier global layer with keys and values of its own, "
       "found none for layer 1"},
      {"gemma4-shared-caches", "num_kv_shared_layers", 5,
       "'num_kv_shared_layers': expected a whole number from 0 to 4, found 5"},
      {"gemma4-shared-caches", "vocab_size_per_layer_input", 38,
       "'vocab_size_per_layer_input': expected 'vocab_size' 37, found 38"},
      {"gemma4-shared-caches", "hidden_size_per_layer_input", 1 << 23,
       "'hidden_size_per_layer_input': expected at most 16777216 numbers in all layers, found "
       "41943040"},
      {"gemma4-shared-caches", "hidden_size_per_layer_input", -1, ""},
      {"gemma4-shared-caches", "use_double_wide_mlp", 1, ""},
      {"gemma4-shared-caches", "layer_types", nlohmann::json{"full_attention"},
       "'layer_types': expected one type for each of 5 layers, found an array of 1"},
      {"gemma4-shared-caches", "rope_theta", 10000.0,
       "'rope_theta': expected 'rope_parameters' instead, found 10000.0"},
      {"gemma4-shared-caches", "rope_parameters", nlohmann::json{{"rope_type", "default"}},
       "rope_parameters: 'sliding_attention': expected an object, found none"},
      {"gemma4-shared-caches", "per_layer_config",
       nlohmann::json{{"1", {{"head_dim", 7}}}, {"4", {{"head_dim", 7}}}},
       "per_layer_config: 1: 'head_dim': expected an even number (RoPE rotates pairs), found 7"},
      {"gemma4-shared-caches", "per_layer_config", nlohmann::json{{"1", {{"head_dim", 8}}}},
       "per_layer_config: '4': expected 2 KV heads of size 8, as in other global layers, found 2 "
       "of size 6"},
      {"gemma4-shared-caches", "per_layer_config",
       nlohmann::json{{"1", {{"head_dim", 8}}}, {"4", {{"head_dim", 6}}}},
       "per_layer_config: '4': expected 2 KV heads of size 8, as in other global layers, found 2 "
       "of size 6"},
      {"gemma4-shared-caches", "per_layer_config",
       nlohmann::json{{"0", {{"head_dim", 6}}}, {"1", {{"head_dim", 8}}}, {"4", {{"head_dim", 8}}}},
       "per_layer_config: expected sizes for the 2 named global layers only, found 3 entries"},
      {"gemma4-shared-caches", "per_layer_config",
       nlohmann::json{{"1", {{"head_dim", 8}, {"window", 3}}}, {"4", {{"head_dim", 8}}}},
       "per_layer_config: 1: 'window': 3 is not supported"},
      {"gemma4-keys-as-values", "global_head_dim", 7,
       "'global_head_dim': expected an even number (RoPE rotates pairs), found 7"},
      {"gemma4-keys-as-values", "num_global_key_value_heads", 3,
       "'num_attention_heads': expected a multiple of 'num_global_key_value_heads' 3, found 4"},
      {"gemma4-keys-as-values", "hidden_activation", "silu",
       "'hidden_activation': expected 'gelu_pytorch_tanh', found 'silu'"},
      {"gemma4-keys-as-values", "use_bidirectional_attention", "all",
       "'use_bidirectional_attention': expected 'vision', found 'all'"},
      {"gemma4-keys-as-values", "final_logit_softcapping", 0.0, ""},
      {"gemma4-keys-as-values", "attn_logit_softcapping", 50.0,
       "'attn_logit_softcapping': 50.0 is not supported"},
      {"gemma4-2-of-5-experts", "num_experts", nullptr, ""},
      {"gemma4-2-of-5-experts", "top_k_experts", 6, "'top_k_experts': expected 1 to 5, found 6"},
      {"gemma4-2-of-5-experts", "moe_intermediate_size", 0, ""},
  };
  for (const Row& row : rows) {
    const std::string got = refusal(row.model, row.key, row.value);
    if (row.expected.empty()) {
      EXPECT_NE(got.find("'" + row.key + "'"), std::string::npos) << row.model << ": " << got;
    } else {
      EXPECT_EQ(got, row.expected) << row.model << ", " << row.key;
    }
  }
}

// Press et al. 2021 list the slopes of 8 heads; 12 heads also use 4 of the slopes of 16 heads.
TEST(Architectures, AlibiSlopesAreThoseOfItsPaper) {
  const std::vector<float> eight = alibi_slopes(8), twelve = alibi_slopes(12);
  ASSERT_EQ(eight.size(), 8u);
  ASSERT_EQ(twelve.size(), 12u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(eight[i], std::exp2(-1.0f - static_cast<float>(i)));
    EXPECT_EQ(twelve[i], eight[i]);
  }
  for (std::size_t i = 8; i < 12; ++i) {
    EXPECT_FLOAT_EQ(twelve[i], std::exp2(-0.5f - static_cast<float>(i - 8)));
  }
  EXPECT_EQ(alibi_slopes(1), std::vector<float>{0x1p-8f});
}

// Writes the file of a tiny model with other names: `prefix` becomes `other`. Adds a tensor `extra`
// of one number.
void write_renamed(const fs::path& model, const std::string& prefix, const std::string& other,
                   const std::string& extra, const fs::path& folder) {
  const std::string file = text_of(model / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  nlohmann::json header = nlohmann::json::parse(file.substr(8, length)),
                 renamed = nlohmann::json::object();
  for (const auto& [name, tensor] : header.items()) {
    renamed[name.starts_with(prefix) ? other + name.substr(prefix.size()) : name] = tensor;
  }
  const std::size_t data = file.size() - 8 - length;
  renamed[extra] = {{"dtype", "F32"}, {"shape", {1, 1, 1, 1}}, {"data_offsets", {data, data + 4}}};
  std::string text = renamed.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t n = text.size();
  std::string bytes(sizeof n, '\0');
  std::memcpy(bytes.data(), &n, sizeof n);
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      << bytes + text + file.substr(8 + length) + std::string(4, '\0');
}

void expect_same_logits(const fs::path& model, const fs::path& other) {
  Engine first = textbook_engine(model), second = textbook_engine(other);
  const std::vector<TokenId> ids = {1, 5, 3};
  Matrix<float> a(3, first.plan().vocab_size), b(3, first.plan().vocab_size);
  const auto one = first.make_sequence(3), two = second.make_sequence(3);
  const Input of_one{one.get(), ids, 3}, of_two{two.get(), ids, 3};
  first.forward({&of_one, 1}, a.view());
  second.forward({&of_two, 1}, b.view());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.rows() * a.cols() * sizeof(float)), 0);
}

// The first GPT-2 files have shorter names, and contain the causal mask of each layer.
TEST(Architectures, ReadGpt2FilesWithShortNamesAndMasks) {
  const fs::path model = TEST_DATA "/models/gpt2-tied";
  const TemporaryFolder folder;
  fs::copy(model / "config.json", folder.path() / "config.json");
  write_renamed(model, "transformer.", "", "h.1.attn.bias", folder.path());
  expect_same_logits(model, folder.path());
  write_renamed(model, "transformer.", "", "h.1.other", folder.path());
  EXPECT_THROW(textbook_engine(folder.path()), Error);
}

// Released Qwen3.5 files also contain a model for images, and layers that predict further tokens.
TEST(Architectures, ReadTheTextModelOfQwen3_5Files) {
  const fs::path model = TEST_DATA "/models/qwen3_5-interval";
  const TemporaryFolder folder;
  nlohmann::json config;
  config["model_type"] = "qwen3_5";
  config["text_config"] = nlohmann::json::parse(text_of(model / "config.json"));
  std::ofstream(folder.path() / "config.json") << config;
  const std::string name = "model.language_model.";
  for (const char* extra : {"model.visual.patch_embed.proj.weight", "mtp.fc.weight"}) {
    write_renamed(model, "model.", name, extra, folder.path());
    expect_same_logits(model, folder.path());
  }
  write_renamed(model, "model.", name, name + "layers.4.visual.weight", folder.path());
  EXPECT_THROW(textbook_engine(folder.path()), Error);
}

// Released Gemma 4 files also contain models for images and sound, and may contain weights that no
// step reads. Newer files list the sizes of each global layer.
TEST(Architectures, ReadTheTextModelOfGemma4Files) {
  const fs::path model = TEST_DATA "/models/gemma4-shared-caches";
  const TemporaryFolder folder;
  nlohmann::json config;
  config["model_type"] = "gemma4";
  nlohmann::json& text = config["text_config"];
  text = nlohmann::json::parse(text_of(model / "config.json"));
  text.erase("global_head_dim");
  text["per_layer_config"] = {{"1", {{"head_dim", 8}}}, {"4", {{"head_dim", 8}}}};
  std::ofstream(folder.path() / "config.json") << config;
  const std::string name = "model.language_model.";
  for (const char* extra : {"model.vision_tower.patch_embedder.input_proj.weight",
                            "model.embed_audio.embedding_projection.weight",
                            "model.language_model.layers.3.self_attn.k_proj.weight"}) {
    write_renamed(model, "model.", name, extra, folder.path());
    expect_same_logits(model, folder.path());
  }
  write_renamed(model, "model.", name, name + "layers.1.self_attn.v_norm.weight", folder.path());
  EXPECT_THROW(textbook_engine(folder.path()), Error);
}

// DeepSeek-V3 files may end with layers that predict further tokens.
TEST(Architectures, IgnoreTheLayersBehindTheLastThatDeepSeekNames) {
  const fs::path model = TEST_DATA "/models/deepseek-v3-groups";
  const TemporaryFolder folder;
  nlohmann::json config = nlohmann::json::parse(text_of(model / "config.json"));
  config["num_nextn_predict_layers"] = 1;
  std::ofstream(folder.path() / "config.json") << config;
  write_renamed(model, "", "", "model.layers.3.eh_proj.weight", folder.path());
  expect_same_logits(model, folder.path());
  write_renamed(model, "", "", "model.layers.4.eh_proj.weight", folder.path());
  EXPECT_THROW(textbook_engine(folder.path()), Error);
}

// weights_read misses no weight: a step reads each weight of a plan.
TEST(Architectures, HaveNoWeightThatNoStepReads) {
  for (const std::string& name : tiny_model_names()) {
    const Plan plan = describe_model(fs::path(TEST_DATA "/models") / name).plan;
    std::vector<bool> read(plan.weights.size(), false);
    for (const Step& step : plan.steps) {
      for (const WeightId id : weights_read(step.kind)) read[static_cast<std::size_t>(id)] = true;
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      EXPECT_TRUE(read[i]) << name << ": " << plan.weights[i].name;
    }
  }
}

TEST(Architectures, NoTextIsLongerThanTheTableOfPositions) {
  const fs::path model = TEST_DATA "/models/gpt2-scale-by-layer";  // 9 positions
  for (const BackendKind backend : {BackendKind::Textbook, BackendKind::Cpu}) {
    Engine engine = Engine::open(model, {.backend = backend, .n_threads = 1});
    EXPECT_NO_THROW(engine.make_sequence(9));
    try {
      engine.make_sequence(10);
      ADD_FAILURE() << "a context of 10 is not refused";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "context: expected at most 9 tokens (the model's positions), found 10");
    }
  }
}

}  // namespace
}  // namespace stagecraft
