#include "checkpoint/composed_weights.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file_kind.h"
#include "checkpoint/model_source.h"
#include "checkpoint/scaled_integers.h"
#include "operators/dequantize.h"
#include "operators/float8.h"
#include "operators/float_to_half.h"

namespace stagecraft {
namespace {

// Reads fp8 as DeepSeek-V3 and transformers (integrations/finegrained_fp8.py) store it: number *
// scale of its block. The last blocks of a row or a column may be smaller.
//   weight            [outputs, inputs]
//   weight_scale_inv  [blocks of outputs, blocks of inputs], or one number; some files call it
//                     weight_scale
// The scale of activations is not used: this engine does not round activations to fp8.
void read_fp8(MatrixParts& parts, const Quantization& how, StoredTensor& result,
              std::vector<std::byte>& bytes) {
  constexpr DType kFp8[] = {DType::F8_E4M3};
  const StoredTensor& weight = parts.take_matrix("weight", kFp8);
  const std::string_view part = parts.has("weight_scale") ? "weight_scale" : "weight_scale_inv";
  const std::size_t rows = weight.shape[0], columns = weight.shape[1];
  const bool blocks = how.block_rows != 0;
  const std::size_t block_rows = blocks ? how.block_rows : rows;
  const std::size_t block_columns = blocks ? how.block_columns : columns;
  const std::vector<std::size_t> grid = {(rows + block_rows - 1) / block_rows,
                                         (columns + block_columns - 1) / block_columns};
  const auto scales = parts.floats_of(blocks ? parts.take_shaped(part, kFloatTypes, grid)
                                             : parts.take_number(part, kFloatTypes));
  for (const std::string_view unused : {"activation_scale", "input_scale"}) parts.drop(unused);

  std::vector<float> row(columns);
  bytes.resize(rows * columns * sizeof(float));
  for (std::size_t r = 0; r < rows; ++r) {
    f8_e4m3_to_f32(weight.bytes.subspan(r * columns, columns), row);
    const float* of_row = &scales[r / block_rows * grid[1]];
    for (std::size_t c = 0; c < columns; ++c) row[c] *= of_row[c / block_columns];
    std::memcpy(&bytes[r * columns * sizeof(float)], row.data(), columns * sizeof(float));
  }
  result.dtype = DType::F32;
  result.shape = {rows, columns};
}

// Writes rows [n, inputs] of bf16 numbers as the first n columns of `to`, [inputs, outputs].
void write_columns(std::span<const std::uint16_t> rows, std::size_t inputs, std::size_t outputs,
                   std::byte* to) {
  constexpr std::size_t kSize = sizeof(std::uint16_t);
  for (std::size_t k = 0; k < inputs; ++k) {
    for (std::size_t i = 0; i * inputs < rows.size(); ++i) {
      std::memcpy(to + (k * outputs + i) * kSize, &rows[i * inputs + k], kSize);
    }
  }
}

// Reads the matrices of experts as gpt-oss stores them (github.com/openai/gpt-oss, and
// transformers' integrations/mxfp4.py): 4-bit floats. 32 inputs share a scale, which is a power of
// two.
//   blocks  [experts, outputs, inputs / 32, 16]  two inputs per byte, the first in the lower 4 bits
//   scales  [experts, outputs, inputs / 32]      the exponent + 127
// The result is [experts, inputs, outputs].
void read_mxfp4(MatrixParts& parts, StoredTensor& result, std::vector<std::byte>& bytes) {
  constexpr std::size_t kPairs = 16;    // pairs of inputs in a block
  constexpr std::size_t kOutputs = 16;  // read together: the result has them side by side
  constexpr std::byte kNotANumber{255};
  const StoredTensor& blocks = parts.take_matrix("blocks", kByteTypes, 4);
  const std::size_t experts = blocks.shape[0], outputs = blocks.shape[1], n = blocks.shape[2];
  const std::vector<std::size_t> shape = {experts, outputs, n, kPairs};
  if (blocks.shape != shape) parts.refuse("blocks", shape_text(shape), shape_text(blocks.shape));
  const StoredTensor& scales = parts.take_shaped("scales", kByteTypes, {experts, outputs, n});
  if (std::ranges::find(scales.bytes, kNotANumber) != scales.bytes.end()) {
    parts.refuse("scales", "numbers from 0 to 254", "255");
  }

  const DTypeBlock block = dtype_block(DType::MXFP4);  // a scale, then kPairs bytes
  const std::size_t inputs = n * block.elements;
  std::vector<std::byte> stored(n * block.bytes);
  std::vector<float> row(inputs), in_order(inputs);
  const auto read_row = [&](std::size_t r, std::span<std::uint16_t> numbers) {
    for (std::size_t b = 0; b < n; ++b) {
      stored[b * block.bytes] = scales.bytes[r * n + b];
      std::memcpy(&stored[b * block.bytes + 1], &blocks.bytes[(r * n + b) * kPairs], kPairs);
    }
    dequantize(DType::MXFP4, stored, row);
    // A GGUF block has its first 16 inputs in the lower 4 bits of its bytes, the others in the
    // upper 4 bits. Here both inputs of a byte are neighbours.
    for (std::size_t i = 0; i < inputs / 2; ++i) {
      const float* lower = &row[i / kPairs * 2 * kPairs + i % kPairs];
      in_order[2 * i] = lower[0];
      in_order[2 * i + 1] = lower[kPairs];
    }
    f32_to_bf16(in_order, numbers);
  };
  std::vector<std::uint16_t> rows(kOutputs * inputs);
  bytes.resize(experts * inputs * outputs * sizeof(std::uint16_t));
  for (std::size_t r = 0; r < experts * outputs;) {
    const std::size_t expert = r / outputs, output = r % outputs;
    const std::size_t some = std::min(kOutputs, outputs - output);
    const auto of_some = std::span(rows).first(some * inputs);
    for (std::size_t i = 0; i < some; ++i) read_row(r + i, of_some.subspan(i * inputs, inputs));
    write_columns(of_some, inputs, outputs,
                  &bytes[(expert * inputs * outputs + output) * sizeof(std::uint16_t)]);
    r += some;
  }
  result.dtype = DType::BF16;
  result.shape = {experts, inputs, outputs};
}

// Every matrix has one part whose name ends like this.
std::string_view main_part(Quantization::Method method) {
  switch (method) {
    case Quantization::Method::Fp8:
      return ".weight";
    case Quantization::Method::Mxfp4:
      return "_blocks";
    case Quantization::Method::CompressedTensors:
      return ".weight_packed";
    default:
      return ".qweight";
  }
}

// One prefix for each matrix that is stored in parts: the start of the names of its parts, such as
// "model.layers.0.mlp.up_proj.".
std::vector<std::string> prefixes(const Quantization& how, const TensorMap& tensors) {
  const std::string_view part = main_part(how.method);
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors) {
    const bool fp8 = how.method == Quantization::Method::Fp8;
    if (!name.ends_with(part) || (fp8 && tensor->dtype != DType::F8_E4M3)) continue;
    found.push_back(name.substr(0, name.size() - part.size() + 1));
  }
  return found;
}

// "Q4_0 and F32"
std::string types_of(std::span<const StoredTensor> tensors) {
  std::vector<std::string_view> types;
  for (const StoredTensor& tensor : tensors) {
    const std::string_view type = dtype_name(tensor.dtype);
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return fmt::to_string(fmt::join(types, " and "));
}

}  // namespace

ComposedWeights::ComposedWeights(const Quantization& how, TensorMap& tensors,
                                 const std::string& where) {
  const std::vector<std::string> matrices = prefixes(how, tensors);
  if (matrices.empty()) {
    throw Error("{}: expected matrices as 'quantization_config' says ({}), found no tensor '*{}'",
                where, how.text(), main_part(how.method));
  }
  for (const std::string& prefix : matrices) {
    MatrixParts parts(tensors, prefix, where);
    StoredTensor& tensor = tensors_.emplace_back();
    tensor.name = parts.name("weight");
    std::vector<std::byte> bytes;
    if (how.method == Quantization::Method::Fp8) {
      read_fp8(parts, how, tensor, bytes);
    } else if (how.method == Quantization::Method::Mxfp4) {
      tensor.name = prefix.substr(0, prefix.size() - 1);
      read_mxfp4(parts, tensor, bytes);
    } else {
      const bool by_outputs = how.method == Quantization::Method::CompressedTensors;
      const ScaledIntegers m =
          by_outputs ? read_by_outputs(parts, how) : read_by_inputs(parts, how);
      tensor.dtype = m.narrowest_type();
      tensor.shape = {m.outputs, m.inputs};
      bytes = m.bytes_as(tensor.dtype);
    }
    tensor.bytes = keep(std::move(bytes));
    if (tensors.contains(tensor.name)) {
      throw Error("{}: tensor '{}': expected it once, found it both whole and in quantised parts",
                  where, printable(tensor.name));
    }
  }
  text_ = fmt::format("{}; read as {}", how.text(), types_of(tensors_));
}

std::shared_ptr<const ComposedWeights> compose_weights(const ModelSource& folder,
                                                       TensorMap& tensors,
                                                       const std::string& where) {
  const std::filesystem::path path = folder.path() / "config.json";
  if (!is_there(path)) return nullptr;
  const Json config = parse_json_object(folder.config_json(), path.string());
  const std::optional<Quantization> how = parse_quantization(config.root(), path.string());
  return how ? std::make_shared<const ComposedWeights>(*how, tensors, where) : nullptr;
}

}  // namespace stagecraft
