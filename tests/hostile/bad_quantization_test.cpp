// The error message for a folder whose quantised matrices have parts that do not fit together, or
// whose config.json has settings that are not supported.
#include <span>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "tests/hostile/refused_model.h"

namespace stagecraft {
namespace {

// Breaks a folder of tests/data/formats/quantized.
Break stored_as(const std::string& name, Break how) {
  return [=](TinyModel& model) {
    model.use("../formats/quantized/" + name);
    how(model);
  };
}

Break says(const std::string& name, const std::string& members) {
  return stored_as(name, config("{\"quantization_config\": " + members + "}"));
}

// Replaces every 32-bit word of this tensor.
Break filled(std::string name, std::uint32_t word) {
  return [=](TinyModel& model) {
    const SafetensorsFile file(model.file("model.safetensors"));
    std::vector<StoredTensor> tensors = file.tensors();
    std::vector<std::uint32_t> words;
    for (StoredTensor& tensor : tensors) {
      if (tensor.name != name) continue;
      words.assign(tensor.bytes.size() / sizeof word, word);
      tensor.bytes = std::as_bytes(std::span(words));
    }
    write_safetensors(model.file("model.safetensors"), tensors, file.metadata());
  };
}

const std::string kDownProj = "model.layers.0.mlp.down_proj.";
const std::string kExperts = "model.layers.0.mlp.experts.down_proj";
std::string experts(const std::string& part, const std::string& rest) {
  return "model.safetensors: tensor '" + kExperts + part + "': " + rest;
}
std::string down(const std::string& part, const std::string& rest) {
  return "model.safetensors: tensor '" + kDownProj + part + "': " + rest;
}

const BadModel kBadQuantizations[] = {
    {"of_a_method_that_is_not_read", says("gptq", R"({"quant_method": "bitsandbytes"})"),
     "config.json: quantization_config: 'quant_method': expected 'awq', 'compressed-tensors', "
     "'fp8', 'gptq' or 'mxfp4', found \"bitsandbytes\""},
    {"without_a_method", says("gptq", R"({"quant_method": null})"),
     "config.json: quantization_config: 'quant_method' is missing: expected 'awq', "
     "'compressed-tensors', 'fp8', 'gptq' or 'mxfp4'"},
    {"that_is_a_text", says("gptq", R"("gptq")"),
     "config.json: 'quantization_config': expected an object, found \"gptq\""},
    {"of_eight_bits", says("gptq", R"({"bits": 8})"),
     "config.json: quantization_config: 'bits': expected 4, found 8"},
    {"without_bits", says("awq", R"({"bits": null})"),
     "config.json: quantization_config: 'bits' is missing: expected 4"},
    {"with_bits_per_layer", says("gptq", R"({"dynamic": {"lm_head": {"bits": 8}}})"),
     "config.json: quantization_config: 'dynamic': an object is not supported"},
    {"with_a_field_that_nobody_knows", says("awq", R"({"rotation": "hadamard"})"),
     "config.json: quantization_config: 'rotation': \"hadamard\" is not supported"},
    {"with_a_flag_that_nobody_knows", says("awq", R"({"off": false, "on": true})"),
     "config.json: quantization_config: 'on': true is not supported"},
    {"without_a_group_size", says("gptq", R"({"group_size": null})"),
     "config.json: quantization_config: 'group_size' is missing: expected a size or -1"},
    {"with_groups_of_0", says("gptq", R"({"group_size": 0})"),
     "config.json: quantization_config: 'group_size': expected a whole number from 1 to 16777216, "
     "found 0"},
    {"with_groups_of_minus_2", says("awq", R"({"group_size": -2})"),
     "config.json: quantization_config: 'group_size': expected a whole number from 1 to 16777216, "
     "found -2"},
    {"of_another_format", says("gptq", R"({"checkpoint_format": "marlin"})"),
     "config.json: quantization_config: 'checkpoint_format': expected 'gptq' or 'gptq_v2', found "
     "\"marlin\""},
    {"of_two_formats", says("gptq", R"({"checkpoint_format": "gptq_v2", "format": "gptq"})"),
     "config.json: quantization_config: 'format': expected 'gptq_v2', as in 'checkpoint_format', "
     "found \"gptq\""},
    {"with_words_of_another_size", says("gptq", R"({"pack_dtype": "int64"})"),
     "config.json: quantization_config: 'pack_dtype': expected 'int32', found \"int64\""},
    {"of_another_version_of_awq", says("awq", R"({"version": "gemv"})"),
     "config.json: quantization_config: 'version': expected 'gemm' or 'GEMM', found \"gemv\""},
    {"of_awq_without_zeros", says("awq", R"({"zero_point": false})"),
     "config.json: quantization_config: 'zero_point': expected true, found false"},
    {"of_awq_by_another_program", says("awq", R"({"backend": "llm-awq"})"),
     "config.json: quantization_config: 'backend': expected 'auto' or 'autoawq', found "
     "\"llm-awq\""},
    {"of_another_compressor", says("packed", R"({"format": "int-quantized"})"),
     "config.json: quantization_config: 'format': expected 'pack-quantized', found "
     "\"int-quantized\""},
    {"that_was_not_compressed", says("packed", R"({"quantization_status": "frozen"})"),
     "config.json: quantization_config: 'quantization_status': expected 'compressed', found "
     "\"frozen\""},
    {"with_a_rounded_cache", says("packed", R"({"kv_cache_scheme": {"num_bits": 8}})"),
     "config.json: quantization_config: 'kv_cache_scheme': an object is not supported"},
    {"with_two_schemes", says("packed", R"({"config_groups": {"group_1": {}}})"),
     "config.json: quantization_config: 'config_groups': expected one group, found an object"},
    {"without_schemes", says("packed", R"({"config_groups": null})"),
     "config.json: quantization_config: 'config_groups' is missing: expected an object"},
    {"with_rounded_activations",
     says("packed", R"({"config_groups": {"group_0": {"input_activations": {"num_bits": 8}}}})"),
     "config.json: quantization_config: config_groups: group_0: 'input_activations': an object is "
     "not supported"},
    {"of_eight_packed_bits",
     says("packed", R"({"config_groups": {"group_0": {"weights": {"num_bits": 8}}}})"),
     "config.json: quantization_config: config_groups: group_0: weights: 'num_bits': expected 4, "
     "found 8"},
    {"of_packed_floats",
     says("packed", R"({"config_groups": {"group_0": {"weights": {"type": "float"}}}})"),
     "config.json: quantization_config: config_groups: group_0: weights: 'type': expected 'int', "
     "found \"float\""},
    {"with_another_strategy",
     says("packed", R"({"config_groups": {"group_0": {"weights": {"strategy": "block"}}}})"),
     "config.json: quantization_config: config_groups: group_0: weights: 'strategy': expected "
     "'group' or 'channel', found \"block\""},
    {"with_groups_of_no_size",
     says("packed", R"({"config_groups": {"group_0": {"weights": {"group_size": null}}}})"),
     "config.json: quantization_config: config_groups: group_0: weights: 'group_size' is missing: "
     "expected a size for the strategy 'group'"},
    {"that_is_sparse", says("packed", R"({"sparsity_config": {"format": "sparse-24-bitmask"}})"),
     "config.json: quantization_config: sparsity_config: 'format': expected 'dense', found "
     "\"sparse-24-bitmask\""},
    {"of_fp8_with_more_exponent", says("fp8-blocks", R"({"fmt": "e5m2"})"),
     "config.json: quantization_config: 'fmt': expected 'e4m3' or 'float8_e4m3fn', found \"e5m2\""},
    {"of_fp8_with_experts_in_fp4", says("fp8-blocks", R"({"expert_dtype": "fp4"})"),
     "config.json: quantization_config: 'expert_dtype': expected 'fp8', found \"fp4\""},
    {"of_mxfp4_with_a_field_that_is_not_known", says("mxfp4", R"({"scale_bits": 8})"),
     "config.json: quantization_config: 'scale_bits': 8 is not supported"},
    {"with_blocks_of_one_size", says("fp8-blocks", R"({"weight_block_size": [128]})"),
     "config.json: quantization_config: 'weight_block_size': expected [rows, columns], found an "
     "array of 1"},
    {"with_blocks_of_0_rows", says("fp8-blocks", R"({"weight_block_size": [0, 128]})"),
     "config.json: quantization_config: 'weight_block_size': expected a whole number from 1 to "
     "16777216, found 0"},
    {"of_an_older_name", config(R"({"compression_config": {"format": "pack-quantized"}})"),
     "config.json: 'compression_config': an object is not supported"},
};

const BadModel kBadParts[] = {
    {"without_scales", stored_as("gptq", without_tensor(kDownProj + "scales")),
     down("scales", "expected BF16, F16 or F32, found none")},
    {"without_zeros", stored_as("awq", without_tensor(kDownProj + "qzeros")),
     down("qzeros", "expected I32, found none")},
    {"without_integers", stored_as("gptq", without_tensor(kDownProj + "qweight")),
     "model.safetensors: tensor 'model.layers.0.mlp.down_proj.weight': expected [32, 64], found "
     "none"},
    {"with_integers_of_another_type",
     stored_as("gptq", with_tensor(kDownProj + "qweight", DType::I64, {8, 32})),
     down("qweight", "expected I32, found I64")},
    {"with_integers_of_three_sizes",
     stored_as("gptq", with_tensor(kDownProj + "qweight", DType::I32, {8, 32, 1})),
     down("qweight", "expected 2 dimensions of at least 1, found [8, 32, 1]")},
    {"with_no_inputs", stored_as("awq", with_tensor(kDownProj + "qweight", DType::I32, {0, 4})),
     down("qweight", "expected 2 dimensions of at least 1, found [0, 4]")},
    {"with_a_part_of_a_word_of_outputs",
     stored_as("gptq", with_tensor(kDownProj + "qweight", DType::I32, {8, 31})),
     down("qweight", "expected a number of outputs that is a multiple of 8, found 31")},
    {"with_scales_of_fewer_groups",
     stored_as("gptq", with_tensor(kDownProj + "scales", DType::F16, {1, 32})),
     down("scales", "expected [2, 32], found [1, 32]")},
    {"with_whole_scales", stored_as("awq", with_tensor(kDownProj + "scales", DType::I32, {2, 32})),
     down("scales", "expected BF16, F16 or F32, found I32")},
    {"with_zeros_of_fewer_outputs",
     stored_as("awq", with_tensor(kDownProj + "qzeros", DType::I32, {2, 3})),
     down("qzeros", "expected [2, 4], found [2, 3]")},
    {"with_groups_that_do_not_divide", says("awq", R"({"group_size": 48})"),
     down("qweight",
          "expected a number of inputs that is a multiple of 'group_size' 48, found 64")},
    {"with_groups_longer_than_a_row", says("gptq", R"({"group_size": 128})"),
     down("qweight",
          "expected a number of inputs that is a multiple of 'group_size' 128, found 64")},
    {"without_the_groups_of_act_order",
     stored_as("gptq-act-order", without_tensor(kDownProj + "g_idx")),
     down("g_idx", "expected I32, found none")},
    {"with_groups_of_fewer_inputs",
     stored_as("gptq", with_tensor(kDownProj + "g_idx", DType::I32, {63})),
     down("g_idx", "expected [64], found [63]")},
    {"with_a_negative_group", stored_as("gptq", filled(kDownProj + "g_idx", 0xffffffff)),
     down("g_idx", "expected groups from 0 to 1, found -1")},
    {"with_a_group_that_is_not_there", stored_as("gptq-act-order", filled(kDownProj + "g_idx", 4)),
     down("g_idx", "expected groups from 0 to 3, found 4")},
    {"without_a_shape", stored_as("packed", without_tensor(kDownProj + "weight_shape")),
     down("weight_shape", "expected I64, found none")},
    {"with_a_shape_of_zeros",
     stored_as("packed", with_tensor(kDownProj + "weight_shape", DType::I64, {2})),
     down("weight_shape", "expected [32, 57 to 64], found [0, 0]")},
    {"with_a_negative_shape", stored_as("packed", filled(kDownProj + "weight_shape", 0xffffffff)),
     down("weight_shape", "expected [32, 57 to 64], found [-1, -1]")},
    {"with_zeros_that_config_denies",
     says("packed-zeros", R"({"config_groups": {"group_0": {"weights": {"symmetric": true}}}})"),
     "model.safetensors: tensor 'model.layers.0.mlp.down_proj.weight_zero_point' [4, 1] is not "
     "part of the model that config.json describes"},
    {"without_the_zeros_that_config_asserts",
     stored_as("packed-zeros", without_tensor(kDownProj + "weight_zero_point")),
     down("weight_zero_point", "expected I32, found none")},
    {"without_packed_groups",
     stored_as("packed-act-order", without_tensor(kDownProj + "weight_g_idx")),
     down("weight_g_idx", "expected I32, found none")},
    {"of_fp8_without_a_scale",
     stored_as("fp8-blocks", without_tensor(kDownProj + "weight_scale_inv")),
     down("weight_scale_inv", "expected BF16, F16 or F32, found none")},
    {"of_fp8_with_other_blocks", says("fp8-blocks", R"({"weight_block_size": [16, 16]})"),
     down("weight_scale_inv", "expected [2, 4], found [2, 2]")},
    {"of_fp8_with_blocks_where_one_number_is_expected",
     says("fp8-blocks", R"({"weight_block_size": null})"),
     down("weight_scale_inv", "expected one number, found [2, 2]")},
    {"of_mxfp4_without_scales", stored_as("mxfp4", without_tensor(kExperts + "_scales")),
     experts("_scales", "expected U8, found none")},
    {"of_mxfp4_with_fewer_scales",
     stored_as("mxfp4", with_tensor(kExperts + "_scales", DType::U8, {3, 32, 1})),
     experts("_scales", "expected [3, 32, 2], found [3, 32, 1]")},
    {"of_mxfp4_with_a_scale_that_is_no_number",
     stored_as("mxfp4", filled(kExperts + "_scales", 0xffffffff)),
     experts("_scales", "expected numbers from 0 to 254, found 255")},
    {"of_mxfp4_with_half_a_block",
     stored_as("mxfp4", with_tensor(kExperts + "_blocks", DType::U8, {3, 32, 4, 8})),
     experts("_blocks", "expected [3, 32, 4, 16], found [3, 32, 4, 8]")},
    {"of_mxfp4_with_blocks_of_one_matrix",
     stored_as("mxfp4", with_tensor(kExperts + "_blocks", DType::U8, {32, 2, 16})),
     experts("_blocks", "expected 4 dimensions of at least 1, found [32, 2, 16]")},
    {"of_mxfp4_with_signed_blocks",
     stored_as("mxfp4", with_tensor(kExperts + "_blocks", DType::I8, {3, 32, 2, 16})),
     experts("_blocks", "expected U8, found I8")},
    {"of_mxfp4_twice", stored_as("mxfp4", with_tensor(kExperts, DType::BF16, {3, 64, 32})),
     experts("", "expected it once, found it both whole and in quantised parts")},
    {"of_mxfp4_with_more_experts", stored_as("mxfp4", config(R"({"num_local_experts": 4})")),
     "model.safetensors: tensor 'model.layers.0.mlp.router.weight': expected [4, 32], found "
     "[3, 32]"},
    {"of_mxfp4_with_fewer_experts",
     stored_as("mxfp4", all_of({with_tensor(kExperts + "_blocks", DType::U8, {2, 32, 2, 16}),
                                with_tensor(kExperts + "_scales", DType::U8, {2, 32, 2})})),
     experts("", "expected [3, 64, 32], found [2, 64, 32]")},
    {"of_fp8_without_a_config",
     stored_as("fp8-one-scale", config(R"({"quantization_config": null})")),
     "model.safetensors: tensor 'model.layers.0.self_attn.k_proj.weight': expected F32, F16 or "
     "BF16, "
     "found F8_E4M3"},
    {"of_gptq_without_a_config", stored_as("gptq", config(R"({"quantization_config": null})")),
     "model.safetensors: tensor 'model.layers.0.self_attn.k_proj.weight': expected [16, 32], found "
     "none"},
    {"that_are_not_there", config(R"({"quantization_config": {"quant_method": "fp8"}})"),
     "model.safetensors: expected matrices as 'quantization_config' says (fp8, one scale per "
     "matrix), found no tensor '*.weight'"},
};

INSTANTIATE_TEST_SUITE_P(BadQuantization, RefusedModel, ::testing::ValuesIn(kBadQuantizations),
                         row_name);
INSTANTIATE_TEST_SUITE_P(BadParts, RefusedModel, ::testing::ValuesIn(kBadParts), row_name);

}  // namespace
}  // namespace stagecraft
