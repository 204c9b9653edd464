#include "checkpoint/quantization.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config_fields.h"

namespace stagecraft {
namespace {

constexpr std::string_view kField = "quantization_config";

// Reads a "quantization_config" and the objects in it. Unknown members are refused, unless they are
// empty.
class QuantizationFields : public ConfigFields {
 public:
  using ConfigFields::ConfigFields;

  // The members of the object `key`, which must be there.
  QuantizationFields needed_object(std::string_view key) const {
    const std::optional<ConfigFields> found = object_of(key);
    if (!found) refuse(key, "an object");
    return {found->object(), found->where()};
  }
  void expect_text(std::string_view key, std::vector<std::string_view> allowed,
                   std::string_view default_value) const {
    if (std::ranges::find(allowed, text_or(key, default_value)) != allowed.end()) return;
    refuse(key, fmt::format("'{}'", fmt::join(allowed, "' or '")));
  }
  void expect_size(std::string_view key, std::size_t expected) const {
    const auto value = find(key);
    if (value && value->is_whole() && value->whole() == expected) return;
    refuse(key, fmt::format("{}", expected));
  }
  void expect_flag(std::string_view key, bool expected, bool default_value) const {
    if (flag_or(key, default_value) != expected) refuse(key, expected ? "true" : "false");
  }
  // 0 if a group is all inputs of an output, which is written as -1 or null.
  std::size_t group_size(std::string_view key) const {
    const auto value = find(key);
    if (!value || (value->is_integer() && value->integer() == -1)) return 0;
    return size(key);
  }
  // Throws Error if there is a member that `known` does not list. A member that is null, false or
  // empty changes nothing and is allowed.
  void refuse_others(std::span<const std::string_view> known) const {
    for (const JsonNode value : object().members()) {
      if (std::ranges::find(known, value.key()) != known.end() || value.is_null()) continue;
      if (value.is_boolean() && !value.boolean()) continue;
      if ((value.is_array() || value.is_object()) && value.size() == 0) continue;
      throw Error("{}: '{}': {} is not supported", where(), printable(value.key()),
                  value.describe());
    }
  }
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const {
    const auto value = find(key);
    if (!value) throw Error("{}: '{}' is missing: expected {}", where(), key, expected);
    throw Error("{}: '{}': expected {}, found {}", where(), key, expected, value->describe());
  }
};

// Fields of GPTQ and AWQ: how the model was quantised, and settings of the programs that run it.
constexpr std::string_view kIntegerFields[] = {
    "quant_method",
    "bits",
    "group_size",
    "sym",
    "zero_point",
    "desc_act",
    "act_group_aware",
    "static_groups",
    "true_sequential",
    "damp_percent",
    "damp_auto_increment",
    "mse",
    "checkpoint_format",
    "format",
    "version",
    "pack_dtype",
    "backend",
    "meta",
    "lm_head",
    "dataset",
    "tokenizer",
    "batch_size",
    "pad_token_id",
    "model_seqlen",
    "max_input_length",
    "model_name_or_path",
    "model_file_base_name",
    "block_name_to_quantize",
    "module_name_preceding_first_block",
    "modules_in_block_to_quantize",
    "modules_to_not_convert",
    "cache_block_outputs",
    "use_cuda_fp16",
    "use_exllama",
    "disable_exllama",
    "exllama_config",
    "do_fuse",
    "fuse_max_seq_len",
    "modules_to_fuse",
};

void parse_integers(const QuantizationFields& fields, Quantization& how) {
  fields.expect_size("bits", 4);
  fields.expect_text("pack_dtype", {"int32"}, "int32");
  if (!fields.find("group_size")) fields.refuse("group_size", "a size or -1");
  how.group_size = fields.group_size("group_size");
  fields.refuse_others(kIntegerFields);
}

Quantization parse_gptq(const QuantizationFields& fields) {
  Quantization how{.method = Quantization::Method::Gptq};
  parse_integers(fields, how);
  for (const std::string_view key : {"checkpoint_format", "format"}) {
    fields.expect_text(key, {"gptq", "gptq_v2"}, "gptq");
  }
  const std::string other = fields.text_or("format", "gptq");
  const std::string format = fields.text_or("checkpoint_format", other);
  if (fields.find("format") && format != other) {
    fields.refuse("format", fmt::format("'{}', as in 'checkpoint_format'", format));
  }
  how.zeros_less_one = format == "gptq";
  how.act_order = fields.flag_or("desc_act", false);
  return how;
}

Quantization parse_awq(const QuantizationFields& fields) {
  Quantization how{.method = Quantization::Method::Awq};
  parse_integers(fields, how);
  for (const std::string_view key : {"version", "format"}) {
    fields.expect_text(key, {"gemm", "GEMM"}, "gemm");
  }
  fields.expect_text("backend", {"auto", "autoawq"}, "auto");
  fields.expect_flag("zero_point", true, true);
  return how;
}

// A scheme of compressed-tensors: how the weights of some modules are stored.
void parse_scheme(const QuantizationFields& scheme, Quantization& how) {
  constexpr std::string_view kSchemeFields[] = {"weights", "targets", "format"};
  constexpr std::string_view kWeightFields[] = {
      "num_bits", "type",     "symmetric",       "strategy",    "group_size",
      "actorder", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"};
  scheme.refuse_others(kSchemeFields);
  scheme.expect_text("format", {"pack-quantized"}, "pack-quantized");
  const QuantizationFields weights = scheme.needed_object("weights");
  weights.refuse_others(kWeightFields);
  weights.expect_size("num_bits", 4);
  weights.expect_text("type", {"int"}, "int");
  weights.expect_text("strategy", {"group", "channel"}, "");
  weights.expect_text("actorder", {"group", "weight", "static"}, "static");
  how.act_order = weights.text_or("actorder", "static") == "group";
  how.has_zeros = !weights.flag_or("symmetric", true);
  how.group_size = weights.group_size("group_size");
  const bool grouped = weights.text_or("strategy", "") == "group";
  if (grouped != (how.group_size != 0)) {
    weights.refuse("group_size", grouped ? "a size for the strategy 'group'"
                                         : "null or -1 for the strategy 'channel'");
  }
}

Quantization parse_compressed_tensors(const QuantizationFields& fields) {
  constexpr std::string_view kKnown[] = {"quant_method",
                                         "format",
                                         "config_groups",
                                         "quantization_status",
                                         "ignore",
                                         "version",
                                         "global_compression_ratio",
                                         "sparsity_config"};
  Quantization how{.method = Quantization::Method::CompressedTensors};
  fields.refuse_others(kKnown);
  fields.expect_text("format", {"pack-quantized"}, "");
  fields.expect_text("quantization_status", {"compressed"}, "compressed");
  if (const auto sparsity = fields.find("sparsity_config"); sparsity && sparsity->size() != 0) {
    fields.needed_object("sparsity_config").expect_text("format", {"dense"}, "dense");
  }
  const QuantizationFields groups = fields.needed_object("config_groups");
  if (groups.object().size() != 1) fields.refuse("config_groups", "one group");
  for (const JsonNode group : groups.object().members()) {
    parse_scheme(groups.needed_object(group.key()), how);
  }
  return how;
}

Quantization parse_fp8(const QuantizationFields& fields) {
  constexpr std::string_view kKnown[] = {"quant_method",
                                         "fmt",
                                         "activation_scheme",
                                         "weight_block_size",
                                         "modules_to_not_convert",
                                         "ignored_layers",
                                         "scale_fmt",
                                         "expert_dtype",
                                         "dequantize"};
  Quantization how{.method = Quantization::Method::Fp8};
  fields.refuse_others(kKnown);
  fields.expect_text("fmt", {"e4m3", "float8_e4m3fn"}, "e4m3");
  fields.expect_text("expert_dtype", {"fp8"}, "fp8");
  // Both schemes store weights in the same way. They differ in how activations are rounded to fp8,
  // and this engine does not do that.
  fields.expect_text("activation_scheme", {"dynamic", "static"}, "dynamic");
  const auto block = fields.find("weight_block_size");
  if (!block) return how;
  if (!block->is_array() || block->size() != 2) {
    fields.refuse("weight_block_size", "[rows, columns]");
  }
  std::vector<std::size_t> sizes;
  for (const JsonNode size : block->elements()) {
    sizes.push_back(json_size(size, fields.where(), "weight_block_size", 1, kMaxDimension));
  }
  how.block_rows = sizes[0];
  how.block_columns = sizes[1];
  return how;
}

// A block of MXFP4 always has 32 elements.
Quantization parse_mxfp4(const QuantizationFields& fields) {
  constexpr std::string_view kKnown[] = {"quant_method", "modules_to_not_convert", "dequantize"};
  fields.refuse_others(kKnown);
  return {.method = Quantization::Method::Mxfp4};
}

}  // namespace

std::string Quantization::text() const {
  if (method == Method::Mxfp4) return "MXFP4, one scale per 32 inputs";
  if (method == Method::Fp8) {
    if (block_rows == 0) return "fp8, one scale per matrix";
    return fmt::format("fp8, one scale per block of {} x {}", block_rows, block_columns);
  }
  const char* name = method == Method::Gptq  ? "GPTQ"
                     : method == Method::Awq ? "AWQ"
                                             : "compressed-tensors";
  if (group_size == 0) return fmt::format("{} int4, one scale per output", name);
  return fmt::format("{} int4, one scale per {} inputs", name, group_size);
}

std::optional<Quantization> parse_quantization(JsonNode config, const std::string& where) {
  const auto value = config.find(kField);
  if (!value) return std::nullopt;
  if (!value->is_object()) {
    throw Error("{}: '{}': expected an object, found {}", where, kField, value->describe());
  }
  const QuantizationFields fields(*value, fmt::format("{}: {}", where, kField));
  const std::string method = fields.text_or("quant_method", "");
  if (method == "gptq") return parse_gptq(fields);
  if (method == "awq") return parse_awq(fields);
  if (method == "compressed-tensors") return parse_compressed_tensors(fields);
  if (method == "fp8") return parse_fp8(fields);
  if (method == "mxfp4") return parse_mxfp4(fields);
  fields.refuse("quant_method", "'awq', 'compressed-tensors', 'fp8', 'gptq' or 'mxfp4'");
}

}  // namespace stagecraft
