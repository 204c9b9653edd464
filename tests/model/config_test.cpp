#include "model/config.h"

#include <gtest/gtest.h>

#include "base/config_fields.h"
#include "base/json.h"
#include "tests/support/error_of.h"

namespace stagecraft {
namespace {

// A config of four layers and eight heads of 16, with `more` added. For Qwen, it sets the number of
// key heads, because the default is too large for this model.
Config parse(const std::string& model_type, const std::string& more = "") {
  const bool qwen = model_type.starts_with("qwen");
  return parse_config(R"({"model_type": ")" + model_type +
                          R"(", "vocab_size": 50, "hidden_size": 128, "intermediate_size": 64,
                          "num_hidden_layers": 4, "num_attention_heads": 8)" +
                          (qwen ? R"(, "num_key_value_heads": 2)" : "") +
                          (more.empty() ? std::string() : ", " + more) + "}",
                      "config.json");
}

using Windows = std::vector<std::size_t>;

TEST(Config, TakesWhatTransformersTakesWhereAFileDoesNotSay) {
  const Config llama = parse("llama");
  EXPECT_EQ(llama.n_kv_heads, 8u);
  EXPECT_EQ(llama.head_dim, 16u);
  EXPECT_EQ(llama.max_seq_len, 2048u);
  EXPECT_EQ(llama.norm_eps, 1e-6f);
  EXPECT_EQ(llama.rope.theta, 10000.0);
  EXPECT_FALSE(llama.tied_embeddings || llama.qkv_bias || llama.o_bias || llama.mlp_bias);
  EXPECT_EQ(parse("mistral").max_seq_len, 131072u);
  EXPECT_EQ(parse("mistral").n_kv_heads, 8u);
  EXPECT_EQ(parse("qwen2").max_seq_len, 32768u);
  EXPECT_EQ(parse("qwen3").head_dim, 128u);
}

TEST(Config, MistralSlidesOnEveryLayerUnlessTheWindowIsNull) {
  EXPECT_EQ(parse("mistral").windows, Windows(4, 4096));
  EXPECT_EQ(parse("mistral", R"("sliding_window": 7)").windows, Windows(4, 7));
  EXPECT_EQ(parse("mistral", R"("sliding_window": null)").windows, Windows(4, 0));
}

TEST(Config, QwenSlidesOnlyWhereItSaysSo) {
  const std::string on = R"("use_sliding_window": true, )";
  EXPECT_EQ(parse("qwen2", R"("sliding_window": 7, "max_window_layers": 0)").windows,
            Windows(4, 0));
  EXPECT_EQ(parse("qwen2", on + R"("sliding_window": 7)").windows, Windows(4, 0));  // from layer 28
  EXPECT_EQ(parse("qwen2", on + R"("sliding_window": 7, "max_window_layers": 3)").windows,
            (Windows{0, 0, 0, 7}));
  EXPECT_EQ(parse("qwen3", on + R"("max_window_layers": 0)").windows, Windows(4, 4096));
  EXPECT_EQ(parse("qwen3", on + R"("max_window_layers": 0, "sliding_window": null)").windows,
            Windows(4, 0));
  EXPECT_EQ(parse("qwen2", on + R"("sliding_window": 7, "layer_types": ["full_attention",
                  "sliding_attention", "full_attention", "sliding_attention"])")
                .windows,
            (Windows{0, 7, 0, 7}));
}

TEST(Config, ReadsRopeInBothStylesAlike) {
  const std::string llama3 = R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                                "original_max_position_embeddings": 64})";
  for (const Config& config :
       {parse("llama", R"("rope_theta": 500, "rope_scaling": {"rope_type": "llama3", )" + llama3),
        parse("llama",
              R"("rope_parameters": {"rope_theta": 500, "rope_type": "llama3", )" + llama3),
        parse("llama", R"("rope_theta": 500, "rope_scaling": {"type": "llama3", )" + llama3)}) {
    EXPECT_EQ(config.rope.type, RopeConfig::Type::Llama3);
    EXPECT_EQ(config.rope.theta, 500.0);
    EXPECT_EQ(config.rope.factor, 8.0);
    EXPECT_EQ(config.rope.original_max_seq_len, 64.0);
  }
}

TEST(Config, StretchesLlama3FromTheWholeContextWhereNoOriginalIsGiven) {
  const std::string scaling = R"("rope_scaling": {"rope_type": "llama3", "factor": 8,
                                 "low_freq_factor": 1, "high_freq_factor": 4})";
  EXPECT_EQ(
      parse("llama", scaling + R"(, "max_position_embeddings": 77)").rope.original_max_seq_len,
      77.0);
  EXPECT_EQ(parse("llama", scaling + R"(, "original_max_position_embeddings": 33)")
                .rope.original_max_seq_len,
            33.0);
}

TEST(Config, LetsRopeScalingGoBeforeRopeParameters) {
  const Config config = parse("llama", R"("rope_scaling": {"type": "linear", "factor": 2},
                                          "rope_parameters": {"rope_type": "default"})");
  EXPECT_EQ(config.rope.type, RopeConfig::Type::Linear);
}

TEST(Config, GivesEachFamilyItsBiases) {
  const std::string bias = R"("attention_bias": true)";
  EXPECT_TRUE(parse("llama", bias).qkv_bias && parse("llama", bias).o_bias);
  EXPECT_TRUE(parse("qwen2").qkv_bias && !parse("qwen2", bias).o_bias);
  EXPECT_TRUE(parse("qwen3", bias).qkv_bias && parse("qwen3", bias).o_bias);
  EXPECT_TRUE(!parse("mistral", bias).qkv_bias && !parse("mistral", bias).o_bias);
  EXPECT_TRUE(parse("llama", R"("mlp_bias": true)").mlp_bias);
  EXPECT_TRUE(parse("qwen3").qk_norm && !parse("qwen2").qk_norm);
}

TEST(Config, AFlagThatIsNullIsFalseAsInPython) {
  const Json file = parse_json_object(R"({"a": null, "b": true})", "config.json");
  const ConfigFields fields(file, "config.json");
  EXPECT_FALSE(fields.flag_or("a", true));
  EXPECT_TRUE(fields.flag_or("b", false));
  EXPECT_TRUE(fields.flag_or("c", true));
}

TEST(Config, RefusesByNameWhatWouldChangeTheResult) {
  for (const auto& [model_type, more, named] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"llama", R"("rope_scaling": {"rope_type": "yarn", "factor": 2})", "yarn"},
           {"llama", R"("rope_scaling": {"rope_type": "dynamic", "factor": 2})", "dynamic"},
           {"llama", R"("rope_parameters": {"full_attention": {"rope_type": "default"}})",
            "full_attention"},
           {"llama", R"("rope_parameters": {"partial_rotary_factor": 0.5})", "partial_rotary"},
           {"llama", R"("sliding_window": 7)", "sliding_window"},
           {"mistral", R"("layer_types": ["full_attention"])", "layer_types"},
           {"llama", R"("hidden_act": "gelu")", "hidden_act"},
           {"llama", R"("logit_scale": 0.5)", "logit_scale"},
           {"llama", R"("quantization_config": {"bits": 4})", "quantization_config"},
           {"gpt2", "", "gpt2"}}) {
    const std::string error = error_of([&] { parse(model_type, more); });
    EXPECT_NE(error.find(named), std::string::npos) << more << ": " << error;
  }
}

}  // namespace
}  // namespace stagecraft
