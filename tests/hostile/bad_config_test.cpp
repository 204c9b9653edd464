// The error message for a wrong config.json or generation_config.json.
#include "model/architectures/architectures.h"
#include "tests/hostile/refused_model.h"

namespace stagecraft {
namespace {

const std::string kDeep = std::string(65, '[') + std::string(65, ']');

const BadModel kBadConfigs[] = {
    // The file.
    {"is_missing", removed("config.json"),
     "config.json: cannot be opened: No such file or directory"},
    {"is_a_folder", a_folder("config.json"), "config.json: expected a file, found a folder"},
    {"is_a_fifo", a_fifo("config.json"), "config.json: expected a regular file, found a FIFO"},
    {"is_endless", a_link("config.json", "/dev/zero"),
     "config.json: expected a regular file, found a device"},
    {"is_a_link_to_nothing", a_link("config.json", "../blobs/7f3a"),
     "config.json: is a link to '../blobs/7f3a', which does not exist"},
    {"is_a_link_to_itself", a_link("config.json", "config.json"),
     "config.json: cannot be opened: Too many levels of symbolic links"},
    {"may_not_be_read", unreadable("config.json"),
     "config.json: cannot be opened: Permission denied"},
    {"is_a_git_lfs_pointer",
     text("config.json", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n"),
     "config.json: is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'"},
    {"is_5_MB", [](TinyModel& model) { text("config.json", std::string(5'000'000, ' '))(model); },
     "config.json: expected at most 4194304 bytes, found 5000000"},

    // The JSON.
    {"is_empty", text("config.json", ""), "config.json: expected JSON, found nothing"},
    {"is_blank", text("config.json", " \n"), "config.json: not valid JSON: it ends too early"},
    {"is_cut_short", cut("config.json", 100), "config.json: not valid JSON: it ends too early"},
    {"has_a_comma_too_many", text("config.json", "{\n  \"vocab_size\": 65,\n}\n"),
     "config.json: not valid JSON: line 3, column 1: unexpected '}'; expected string literal"},
    {"has_a_comment", text("config.json", "{ // mine\n}"),
     "config.json: not valid JSON: line 1, column 3: invalid literal"},
    {"has_text_after_its_end", appended("config.json", "{}"),
     "config.json: not valid JSON: line 21, column 1: unexpected '{'; expected end of input"},
    {"holds_a_zero_byte", appended("config.json", std::string("\0{", 2)),
     "config.json: not valid JSON: a zero byte at line 21, column 1"},
    {"holds_broken_utf8", text("config.json", "{\"model_type\": \"ll\xc3(ma\"}"),
     "config.json: not valid JSON: line 1, column 20: invalid string: ill-formed UTF-8 byte"},
    {"says_NaN", config_with(R"("rope_theta": NaN)"),
     "config.json: not valid JSON: line 1, column 16: invalid literal"},
    {"is_an_array", text("config.json", "[1, 2]"),
     "config.json: expected an object, found an array of 2"},
    {"is_a_string", text("config.json", "\"llama\""),
     "config.json: expected an object, found \"llama\""},
    {"nests_too_deep", text("config.json", kDeep), "config.json: nested deeper than 64 levels"},
    {"nests_a_million_deep",
     [](TinyModel& model) { text("config.json", std::string(1'000'000, '['))(model); },
     "config.json: nested deeper than 64 levels"},
    {"gives_a_member_twice", config_with(R"("vocab_size": 66)"),
     "config.json: 'vocab_size' is given twice"},

    // Sizes.
    {"lacks_the_vocabulary_size", config(R"({"vocab_size": null})"),
     "config.json: 'vocab_size' is missing"},
    {"has_a_size_of_0", config(R"({"vocab_size": 0})"),
     "config.json: 'vocab_size': expected a whole number from 1 to 16777216, found 0"},
    {"has_a_negative_size", config(R"({"hidden_size": -24})"),
     "config.json: 'hidden_size': expected a whole number from 1 to 16777216, found -24"},
    {"has_a_fractional_size", config(R"({"intermediate_size": 37.5})"),
     "config.json: 'intermediate_size': expected a whole number from 1 to 16777216, found 37.5"},
    {"has_a_size_as_text", config(R"({"hidden_size": "24"})"),
     "config.json: 'hidden_size': expected a whole number from 1 to 16777216, found \"24\""},
    {"has_a_size_as_array", config(R"({"hidden_size": [24]})"),
     "config.json: 'hidden_size': expected a whole number from 1 to 16777216, found an array of 1"},
    {"has_a_size_of_true", config(R"({"hidden_size": true})"),
     "config.json: 'hidden_size': expected a whole number from 1 to 16777216, found true"},
    {"has_a_size_beyond_64_bits", config_with(R"("head_dim": 18446744073709551622)"),
     "config.json: 'head_dim': expected a whole number from 1 to 16777216, "
     "found 1.8446744073709552e+19"},
    {"has_a_number_beyond_a_double", config_with(R"("head_dim": 1e999)"),
     "config.json: not valid JSON: number out of range '1e999'"},
    {"claims_4_billion_words", config(R"({"vocab_size": 4294967361})"),
     "config.json: 'vocab_size': expected a whole number from 1 to 16777216, found 4294967361"},
    {"claims_a_million_layers", config(R"({"num_hidden_layers": 1000000})"),
     "config.json: 'num_hidden_layers': expected a whole number from 1 to 4096, found 1000000"},
    {"claims_no_layers", config(R"({"num_hidden_layers": 0})"),
     "config.json: 'num_hidden_layers': expected a whole number from 1 to 4096, found 0"},
    {"claims_no_positions", config(R"({"max_position_embeddings": 0})"),
     "config.json: 'max_position_embeddings': expected a whole number from 1 to 16777216, found 0"},

    // Sizes that the weights contradict.
    {"claims_another_layer", config(R"({"num_hidden_layers": 3})"),
     "model.safetensors: tensor 'model.layers.2.input_layernorm.weight': expected [24], found "
     "none"},
    {"claims_4096_layers", config(R"({"num_hidden_layers": 4096})"),
     "model.safetensors: tensor 'model.layers.2.input_layernorm.weight': expected [24], found "
     "none"},
    {"forgets_a_layer", config(R"({"num_hidden_layers": 1})"),
     "model.safetensors: tensor 'model.layers.1.input_layernorm.weight' [24] is not part of the "
     "model that config.json describes"},
    {"claims_16_million_words", config(R"({"vocab_size": 16777216})"),
     "model.safetensors: tensor 'model.embed_tokens.weight': expected [16777216, 24], "
     "found [65, 24]"},
    {"claims_more_key_heads", config(R"({"num_key_value_heads": 4})"),
     "model.safetensors: tensor 'model.layers.0.self_attn.k_proj.weight': expected [24, 24], "
     "found [12, 24]"},
    {"claims_a_bias", config(R"({"attention_bias": true})"),
     "model.safetensors: tensor 'model.layers.0.self_attn.q_proj.bias': expected [24], found none"},
    {"claims_another_family", config(R"({"model_type": "qwen2"})"),
     "model.safetensors: tensor 'model.layers.0.self_attn.q_proj.bias': expected [24], found none"},

    // Heads.
    {"has_heads_that_do_not_divide", config(R"({"num_attention_heads": 5})"),
     "config.json: 'num_attention_heads': expected a multiple of 'num_key_value_heads' 2, found 5"},
    {"has_a_width_that_heads_do_not_divide",
     config(R"({"num_attention_heads": 10, "num_key_value_heads": 2})"),
     "config.json: 'hidden_size': expected a multiple of 'num_attention_heads' 10, found 24"},
    {"has_no_key_heads", config(R"({"num_key_value_heads": 0})"),
     "config.json: 'num_key_value_heads': expected a whole number from 1 to 16777216, found 0"},

    {"has_an_odd_head", config(R"({"head_dim": 3})"),
     "config.json: 'head_dim': expected an even number (RoPE rotates pairs), found 3"},
    {"has_an_odd_head_by_division", config(R"({"num_attention_heads": 8})"),
     "config.json: 'head_dim': expected an even number (RoPE rotates pairs), "
     "found 3 (hidden_size 24 / num_attention_heads 8)"},

    // Numbers and flags.
    {"has_an_eps_of_0", config(R"({"rms_norm_eps": 0})"),
     "config.json: 'rms_norm_eps': expected a number from 1e-30 to 1, found 0"},
    {"has_an_eps_below_what_f32_holds", config(R"({"rms_norm_eps": 1e-60})"),
     "config.json: 'rms_norm_eps': expected a number from 1e-30 to 1, found 1e-60"},
    {"has_an_eps_as_text", config(R"({"rms_norm_eps": "1e-5"})"),
     "config.json: 'rms_norm_eps': expected a number from 1e-30 to 1, found \"1e-5\""},
    {"has_a_flag_that_is_a_number", config(R"({"tie_word_embeddings": 1})"),
     "config.json: 'tie_word_embeddings': expected true or false, found 1"},

    // End tokens.
    {"has_an_end_token_beyond_the_vocabulary", config(R"({"eos_token_id": 65})"),
     "config.json: 'eos_token_id': expected a whole number from 0 to 64, found 65"},
    {"has_a_negative_end_token", config(R"({"eos_token_id": [2, -1]})"),
     "config.json: 'eos_token_id': expected a whole number from 0 to 64, found -1"},
    {"has_an_end_token_as_text", config(R"({"eos_token_id": "</s>"})"),
     "config.json: 'eos_token_id': expected a whole number from 0 to 64, found \"</s>\""},
    {"generation_config_ends_beyond_the_vocabulary",
     text("generation_config.json", R"({"eos_token_id": [2, 151643]})"),
     "generation_config.json: 'eos_token_id': expected a whole number from 0 to 64, found 151643"},
    {"generation_config_is_broken", text("generation_config.json", "{"),
     "generation_config.json: not valid JSON: it ends too early"},
    {"generation_config_is_an_array", text("generation_config.json", "[]"),
     "generation_config.json: expected an object, found an array of 0"},
    {"generation_config_is_a_folder", a_folder("generation_config.json"),
     "generation_config.json: expected a file, found a folder"},

    // RoPE.
    {"has_a_theta_of_0", config(R"({"rope_theta": 0})"),
     "config.json: 'rope_theta': expected a number from 1 to 1000000000000, found 0"},
    {"has_an_array_for_rope", config(R"({"rope_scaling": [8]})"),
     "config.json: 'rope_scaling': expected an object, found an array of 1"},
    {"has_an_unknown_rope", config(R"({"rope_scaling": {"type": "dynamic", "factor": 4}})"),
     "config.json: rope_scaling: rope type: expected default, linear, llama3 or yarn, found "
     "'dynamic'"},
    {"has_a_number_for_a_rope_type", config(R"({"rope_scaling": {"rope_type": 3}})"),
     "config.json: rope_scaling: 'rope_type': expected a string, found 3"},
    {"has_linear_rope_without_a_factor", config(R"({"rope_scaling": {"rope_type": "linear"}})"),
     "config.json: rope_scaling: 'factor' is missing"},
    {"has_a_rope_factor_of_0", config(R"({"rope_scaling": {"type": "linear", "factor": 0.0}})"),
     "config.json: rope_scaling: 'factor': expected a number from 1 to 1000000, found 0.0"},
    {"has_llama3_rope_bands_swapped", config(R"({"rope_parameters": {"rope_type": "llama3",
        "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}})"),
     "config.json: rope_parameters: 'high_freq_factor': expected more than 'low_freq_factor' 4, "
     "found 1"},
    {"turns_a_part_of_each_head", config(R"({"partial_rotary_factor": 0.5})"),
     "config.json: 'partial_rotary_factor': 0.5 is not supported"},
    {"turns_a_part_of_each_head_in_the_newer_style",
     config(R"({"rope_parameters": {"partial_rotary_factor": 0.5}})"),
     "config.json: rope_parameters: 'partial_rotary_factor': 0.5 is not supported"},
    {"has_rope_for_each_type_of_layer",
     config(R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})"),
     "config.json: rope_parameters: 'full_attention': an object is not supported"},
    {"has_rope_in_three_dimensions", config(R"({"rope_scaling": {"mrope_section": [1, 1, 1]}})"),
     "config.json: rope_scaling: 'mrope_section': an array of 3 is not supported"},
    {"scales_attention_in_rope", config(R"({"rope_scaling": {"attention_factor": 1.2}})"),
     "config.json: rope_scaling: 'attention_factor': 1.2 is not supported"},

    // Windows.
    {"has_a_window_where_llama_has_none", config(R"({"sliding_window": 4})"),
     "config.json: 'sliding_window' is not supported for model type 'llama'"},
    {"has_a_window_of_0", config(R"({"model_type": "mistral", "sliding_window": 0})"),
     "config.json: 'sliding_window': expected a whole number from 1 to 16777216, found 0"},
    {"has_layer_types_where_mistral_has_none",
     config(R"({"model_type": "mistral", "layer_types": ["full_attention", "full_attention"]})"),
     "config.json: 'layer_types' is not supported for model type 'mistral'"},
    {"has_too_few_layer_types",
     config(R"({"model_type": "qwen2", "layer_types": ["full_attention"]})"),
     "config.json: 'layer_types': expected one type for each of 2 layers, found an array of 1"},
    {"has_an_unknown_layer_type",
     config(R"({"model_type": "qwen2", "layer_types": ["full_attention", "mamba"]})"),
     "config.json: 'layer_types': expected 'full_attention' or 'sliding_attention', found 'mamba'"},
    {"has_a_layer_that_slides_without_a_window",
     config(R"({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]})"),
     "config.json: 'layer_types': layer 1 has a window, but 'sliding_window' gives no size"},

    // Models that compute something else. If they were accepted, the output would be wrong.
    {"is_of_an_unknown_family", config(R"({"model_type": "mamba"})"),
     "config.json: 'model_type': expected " + known_model_types() + ", found 'mamba'"},
    {"is_of_no_family", config(R"({"model_type": null})"),
     "config.json: 'model_type': expected " + known_model_types() + ", found ''"},
    {"is_of_a_family_with_a_newline", config(R"({"model_type": "llama\nok"})"),
     "config.json: 'model_type': expected " + known_model_types() + ", found 'llama\\x0aok'"},
    {"has_another_activation", config(R"({"hidden_act": "mish"})"),
     "config.json: 'hidden_act': expected gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or "
     "silu, found 'mish'"},
    {"scales_logits", config(R"({"logit_scale": 0.0625})"),
     "config.json: 'logit_scale': 0.0625 is not supported"},
    {"multiplies_embeddings", config(R"({"embedding_multiplier": 12})"),
     "config.json: 'embedding_multiplier': 12 is not supported"},
    {"caps_logits", config(R"({"final_logit_softcapping": 30.0})"),
     "config.json: 'final_logit_softcapping': 30.0 is not supported"},
    {"is_quantised",
     config(R"({"quantization_config": {"quant_method": "bitsandbytes", "bits": 4}})"),
     "config.json: quantization_config: 'quant_method': expected 'awq', 'compressed-tensors', "
     "'fp8', 'gptq' or 'mxfp4', found \"bitsandbytes\""},
    {"has_experts", config(R"({"num_local_experts": 8})"),
     "config.json: 'num_local_experts': 8 is not supported"},
    {"sees_the_future", config(R"({"is_causal": false})"),
     "config.json: 'is_causal': false is not supported"},
    {"changes_from_layer_to_layer", config(R"({"per_layer_config": {"1": {"head_dim": 8}}})"),
     "config.json: 'per_layer_config': an object is not supported"},
};

INSTANTIATE_TEST_SUITE_P(BadConfig, RefusedModel, ::testing::ValuesIn(kBadConfigs), row_name);

}  // namespace
}  // namespace stagecraft
