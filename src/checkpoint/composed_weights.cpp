#include "checkpoint/composed_weights.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoint/scaled_integers.h"
#include "operators/float8.h"

namespace stagecraft {
namespace {

// As DeepSeek-V3 and transformers (integrations/finegrained_fp8.py) have it: number * scale of its
// block. The last blocks of a row or a column may be smaller.
//   weight            [outputs, inputs]
//   weight_scale_inv  [blocks of outputs, blocks of inputs], or one number; or named weight_scale
// The scale of activations, which are not rounded here, is not needed.
void read_fp8(MatrixParts& parts, const Quantization& how, StoredTensor& result,
              std::vector<std::byte>& bytes) {
  constexpr DType kFp8[] = {DType::F8_E4M3};
  const StoredTensor& weight = parts.matrix("weight", kFp8);
  const std::string_view part = parts.has("weight_scale") ? "weight_scale" : "weight_scale_inv";
  const std::size_t rows = weight.shape[0], columns = weight.shape[1];
  const bool blocks = how.block_rows != 0;
  const std::size_t block_rows = blocks ? how.block_rows : rows;
  const std::size_t block_columns = blocks ? how.block_columns : columns;
  const std::vector<std::size_t> grid = {(rows + block_rows - 1) / block_rows,
                                         (columns + block_columns - 1) / block_columns};
  const auto scales = parts.floats_of(blocks ? parts.of_shape(part, kFloatTypes, grid)
                                             : parts.one_number(part, kFloatTypes));
  for (const std::string_view unused : {"activation_scale", "input_scale"}) parts.leave_out(unused);

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

// The end of the name of the part that every matrix has.
std::string_view main_part(Quantization::Method method) {
  switch (method) {
    case Quantization::Method::Fp8:
      return ".weight";
    case Quantization::Method::CompressedTensors:
      return ".weight_packed";
    default:
      return ".qweight";
  }
}

// "model.layers.0.mlp.up_proj" for each matrix that is stored in parts.
std::vector<std::string> matrix_names(const Quantization& how, const TensorMap& tensors) {
  const std::string_view part = main_part(how.method);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    const bool fp8 = how.method == Quantization::Method::Fp8;
    if (!name.ends_with(part) || (fp8 && tensor->dtype != DType::F8_E4M3)) continue;
    names.push_back(name.substr(0, name.size() - part.size()));
  }
  return names;
}

}  // namespace

ComposedWeights::ComposedWeights(const Quantization& how, TensorMap& tensors,
                                 const std::string& where)
    : how_(how) {
  const std::vector<std::string> names = matrix_names(how, tensors);
  if (names.empty()) {
    throw Error("{}: expected matrices as 'quantization_config' says ({}), found no '{}' of them",
                where, how.text(), main_part(how.method));
  }
  for (const std::string& name : names) {
    MatrixParts parts(tensors, name, where);
    StoredTensor& tensor = tensors_.emplace_back();
    std::vector<std::byte> bytes;
    if (how.method == Quantization::Method::Fp8) {
      read_fp8(parts, how, tensor, bytes);
    } else {
      const bool by_outputs = how.method == Quantization::Method::CompressedTensors;
      const ScaledIntegers m =
          by_outputs ? read_by_outputs(parts, how) : read_by_inputs(parts, how);
      tensor.dtype = m.narrowest_type();
      tensor.shape = {m.outputs, m.inputs};
      bytes = m.bytes_as(tensor.dtype);
    }
    tensor.name = parts.name("weight");
    tensor.bytes = keep(std::move(bytes));
    if (parts.has("weight")) {
      throw Error("{}: tensor '{}': expected it once, found it whole and in parts", where,
                  printable(tensor.name));
    }
  }
}

std::string ComposedWeights::text() const {
  std::vector<std::string_view> types;
  for (const StoredTensor& tensor : tensors_) {
    const std::string_view type = dtype_name(tensor.dtype);
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return fmt::format("{}; read as {}", how_.text(), fmt::join(types, " and "));
}

}  // namespace stagecraft
