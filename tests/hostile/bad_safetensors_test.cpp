// The error message for a wrong model.safetensors.
#include "tests/hostile/refused_model.h"

namespace stagecraft {
namespace {

constexpr const char* kSafetensors = "model.safetensors";

const std::string kShapeOfThousands = [] {
  std::string shape = "1";
  for (int i = 1; i < 5000; ++i) shape += ",1";
  return R"({"w": {"dtype": "F32", "shape": [)" + shape + R"(], "data_offsets": [0, 4]}})";
}();

const BadModel kBadSafetensors[] = {
    // The file.
    {"is_a_folder", a_folder(kSafetensors), "model.safetensors: expected a file, found a folder"},
    {"is_a_fifo", a_fifo(kSafetensors), "model.safetensors: expected a regular file, found a FIFO"},
    {"is_endless", a_link(kSafetensors, "/dev/zero"),
     "model.safetensors: expected a regular file, found a device"},
    {"is_a_link_to_nothing", a_link(kSafetensors, "../blobs/7f3a"),
     "model.safetensors: is a link to '../blobs/7f3a', which does not exist"},
    {"may_not_be_read", unreadable(kSafetensors),
     "model.safetensors: cannot be opened: Permission denied"},
    {"is_empty", text(kSafetensors, ""),
     "model.safetensors: expected a safetensors file, found a file of 0 bytes"},
    {"has_7_bytes", cut(kSafetensors, 7),
     "model.safetensors: expected a safetensors file, found a file of 7 bytes"},
    {"is_a_git_lfs_pointer",
     text(kSafetensors,
          "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 538090408\n"),
     "model.safetensors: is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'"},
    {"is_a_web_page", text(kSafetensors, "<!DOCTYPE html><html>Not found</html>"),
     "model.safetensors: header length: expected at most 29 bytes, found 5789751444030890300: "
     "the file is cut short, or not a safetensors file"},

    // The header's length.
    {"has_a_header_of_0_bytes", header_length(0),
     "model.safetensors: header: expected JSON, found nothing"},
    {"has_a_header_beyond_its_end", header_length(1'000'000),
     "model.safetensors: header length: expected at most 50184 bytes, found 1000000: the file is "
     "cut short, or not a safetensors file"},
    {"has_a_header_of_2_to_the_63", header_length(std::uint64_t{1} << 63),
     "model.safetensors: header length: expected at most 50184 bytes, found 9223372036854775808: "
     "the file is cut short, or not a safetensors file"},
    {"has_a_header_whose_end_wraps_around", header_length(UINT64_MAX),
     "model.safetensors: header length: expected at most 50184 bytes, found 18446744073709551615: "
     "the file is cut short, or not a safetensors file"},
    {"has_a_header_that_stops_early", header_length(2000),
     "model.safetensors: header: not valid JSON: it ends too early"},
    {"is_cut_in_the_header", cut(kSafetensors, 1000),
     "model.safetensors: header length: expected at most 992 bytes, found 2088: the file is cut "
     "short, or not a safetensors file"},
    {"is_cut_in_the_data", cut(kSafetensors, 50'000),
     "model.safetensors: tensor 'lm_head.weight': 'data_offsets': expected a range within the "
     "47904 bytes of data, found [41856, 48096]"},
    {"has_a_byte_too_many", appended(kSafetensors, "x"),
     "model.safetensors: expected 48096 bytes of data, as the tensors need, found 48097"},

    // The header's JSON.
    {"has_a_header_that_is_no_json", header_text("{'w': 1}"),
     "model.safetensors: header: not valid JSON: line 1, column 2: invalid literal"},
    {"has_a_header_padded_with_zero_bytes", header_text(std::string("{}\0\0", 4)),
     "model.safetensors: header: not valid JSON: a zero byte at line 1, column 3"},
    {"has_an_array_for_a_header", header_text("[]"),
     "model.safetensors: header: expected an object, found an array of 0"},
    {"has_a_header_that_nests_too_deep", header_text(std::string(1000, '[')),
     "model.safetensors: header: nested deeper than 64 levels"},
    {"has_an_empty_header", header_text("{}"),
     "model.safetensors: expected 0 bytes of data, as the tensors need, found 48096"},
    {"has_a_tensor_twice",
     header_text(R"({"w": {"dtype": "F32", "shape": [6012], "data_offsets": [0, 24048]},
                     "w": {"dtype": "F32", "shape": [6012], "data_offsets": [24048, 48096]}})"),
     "model.safetensors: header: 'w' is given twice"},
    {"has_metadata_that_is_no_object", header(R"({"__metadata__": "pt"})"),
     "model.safetensors: '__metadata__': expected an object, found \"pt\""},
    {"has_metadata_that_is_no_text", header(R"({"__metadata__": {"version": 2}})"),
     "model.safetensors: __metadata__: 'version': expected a string, found 2"},

    // One tensor's entry.
    {"has_a_number_for_a_tensor", header(R"({"lm_head.weight": 7})"),
     "model.safetensors: tensor 'lm_head.weight': expected an object, found 7"},
    {"lacks_a_dtype", header(R"({"lm_head.weight": {"dtype": null}})"),
     "model.safetensors: tensor 'lm_head.weight': expected exactly 'dtype', 'shape' and "
     "'data_offsets', found 'data_offsets', 'shape'"},
    {"has_a_field_too_many", header(R"({"lm_head.weight": {"scale": 2}})"),
     "model.safetensors: tensor 'lm_head.weight': expected exactly 'dtype', 'shape' and "
     "'data_offsets', found 'data_offsets', 'dtype', 'scale', 'shape'"},
    {"has_an_unknown_dtype", header(R"({"lm_head.weight": {"dtype": "Q4_K"}})"),
     "model.safetensors: tensor 'lm_head.weight': 'dtype': 'Q4_K' is not supported"},
    {"has_a_number_for_a_dtype", header(R"({"lm_head.weight": {"dtype": 32}})"),
     "model.safetensors: tensor 'lm_head.weight': 'dtype': expected a string, found 32"},
    {"has_a_number_for_a_shape", header(R"({"lm_head.weight": {"shape": 1560}})"),
     "model.safetensors: tensor 'lm_head.weight': 'shape': expected an array of at most 8 sizes, "
     "found 1560"},
    {"has_a_negative_size", header(R"({"lm_head.weight": {"shape": [-65, -24]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'shape': expected a whole number of at least 0, "
     "found -65"},
    {"has_a_fractional_size", header(R"({"lm_head.weight": {"shape": [65.0, 24]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'shape': expected a whole number of at least 0, "
     "found 65.0"},
    {"has_sizes_that_multiply_past_64_bits",
     header(R"({"lm_head.weight": {"shape": [4294967296, 4294967296]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'shape': [4294967296, 4294967296] takes more "
     "bytes than 64 bits can count"},
    {"has_bytes_that_multiply_past_64_bits",
     header(R"({"lm_head.weight": {"shape": [4611686018427387904]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'shape': [4611686018427387904] takes more bytes "
     "than 64 bits can count"},
    {"has_5000_dimensions", header_text(kShapeOfThousands),
     "model.safetensors: tensor 'w': 'shape': expected an array of at most 8 sizes, found an array "
     "of 5000"},
    {"has_a_name_with_control_characters",
     header(R"({"\u001b[2Jlm\nhead": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}})"),
     "model.safetensors: tensor '\\x1b[2Jlm\\x0ahead': F32 [1] takes 4 bytes, 'data_offsets' give "
     "8"},
    {"has_a_name_of_a_megabyte",
     [](TinyModel& model) { header("{\"" + std::string(1'000'000, 'w') + "\": 1}")(model); },
     "model.safetensors: tensor '" + std::string(80, 'w') + "...': expected an object, found 1"},

    // Offsets.
    {"has_one_offset", header(R"({"lm_head.weight": {"data_offsets": [41856]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'data_offsets': expected [begin, end], found an "
     "array of 1"},
    {"has_a_negative_offset", header(R"({"lm_head.weight": {"data_offsets": [-6240, 0]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'data_offsets': expected a whole number of at "
     "least 0, found -6240"},
    {"has_offsets_reversed", header(R"({"lm_head.weight": {"data_offsets": [48096, 41856]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'data_offsets': expected a range within the "
     "48096 bytes of data, found [48096, 41856]"},
    {"has_offsets_beyond_the_data",
     header(R"({"lm_head.weight": {"data_offsets": [41856, 18446744073709551615]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'data_offsets': expected a range within the "
     "48096 bytes of data, found [41856, 18446744073709551615]"},
    {"has_offsets_beyond_64_bits",
     header(R"({"lm_head.weight": {"data_offsets": [41856, 18446744073709551616]}})"),
     "model.safetensors: tensor 'lm_head.weight': 'data_offsets': expected a whole number of at "
     "least 0, found 1.8446744073709552e+19"},
    {"has_offsets_that_the_shape_contradicts",
     header(R"({"lm_head.weight": {"data_offsets": [41856, 48092]}})"),
     "model.safetensors: tensor 'lm_head.weight': F32 [65, 24] takes 6240 bytes, 'data_offsets' "
     "give 6236"},
    {"has_tensors_that_overlap", header(R"({"lm_head.weight": {"data_offsets": [0, 6240]}})"),
     "model.safetensors: tensor 'model.embed_tokens.weight': expected to begin at byte 6240 of the "
     "data, found 0 (an overlap)"},
    {"has_a_hole", header(R"({"model.norm.weight": null})"),
     "model.safetensors: tensor 'lm_head.weight': expected to begin at byte 41760 of the data, "
     "found 41856 (a hole)"},

    // Tensors that contradict config.json.
    {"lacks_the_head", without_tensor("lm_head.weight"),
     "model.safetensors: tensor 'lm_head.weight': expected [65, 24], found none"},
    {"lacks_a_norm", without_tensor("model.layers.1.post_attention_layernorm.weight"),
     "model.safetensors: tensor 'model.layers.1.post_attention_layernorm.weight': expected [24], "
     "found none"},
    {"has_a_matrix_transposed", header(R"({"lm_head.weight": {"shape": [24, 65]}})"),
     "model.safetensors: tensor 'lm_head.weight': expected [65, 24], found [24, 65]"},
    {"has_a_matrix_laid_flat", header(R"({"lm_head.weight": {"shape": [1560]}})"),
     "model.safetensors: tensor 'lm_head.weight': expected [65, 24], found [1560]"},
    {"has_a_norm_without_dimensions", with_tensor("model.norm.weight", DType::F32, {}),
     "model.safetensors: tensor 'model.norm.weight': expected [24], found []"},
    {"has_an_empty_tensor", with_tensor("model.norm.weight", DType::F32, {0}),
     "model.safetensors: tensor 'model.norm.weight': expected [24], found [0]"},
    {"has_integers", with_tensor("model.norm.weight", DType::I64, {24}),
     "model.safetensors: tensor 'model.norm.weight': expected F32, F16 or BF16, found I64"},
    {"has_doubles", with_tensor("model.norm.weight", DType::F64, {24}),
     "model.safetensors: tensor 'model.norm.weight': expected F32, F16 or BF16, found F64"},
    {"has_a_bias_that_config_does_not_announce",
     with_tensor("model.layers.0.self_attn.q_proj.bias", DType::F32, {24}),
     "model.safetensors: tensor 'model.layers.0.self_attn.q_proj.bias' [24] is not part of the "
     "model that config.json describes"},
    {"has_a_tensor_nobody_knows", with_tensor("model.layers.0.mlp.router.weight", DType::F32, {8}),
     "model.safetensors: tensor 'model.layers.0.mlp.router.weight' [8] is not part of the model "
     "that config.json describes"},
};

INSTANTIATE_TEST_SUITE_P(BadSafetensors, RefusedModel, ::testing::ValuesIn(kBadSafetensors),
                         row_name);

}  // namespace
}  // namespace stagecraft
