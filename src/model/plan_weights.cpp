#include "model/plan_weights.h"

#include <algorithm>

#include "base/error.h"
#include "model/named_tensors.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {
namespace {

bool is_readable(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 || is_quantized(dtype);
}

// The shape of the tensor that holds the weight.
std::vector<std::size_t> stored_shape(const Weight& weight) {
  std::vector<std::size_t> shape = weight.shape;
  if (weight.of_rows != 0) shape.front() = weight.of_rows;
  if (weight.transposed) std::swap(shape[0], shape[1]);
  if (weight.taps) shape.insert(shape.end() - 1, 1);
  if (weight.folded_rows != 0) shape = {weight.folded_rows, shape[0] / weight.folded_rows};
  return shape;
}

// Row i of a transposed matrix is column i of the stored one.
void copy_columns(const Weight& weight, const StoredTensor& stored, std::size_t first,
                  std::size_t count, std::vector<std::byte>& to) {
  const std::size_t inputs = weight.shape[1];
  const std::size_t columns = weight.of_rows != 0 ? weight.of_rows : weight.shape[0];
  const std::size_t size = stored.bytes.size() / (inputs * columns);  // of a number
  to.resize(count * inputs * size);
  for (std::size_t k = 0; k < inputs; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from = k * columns + weight.stored_row(first + i);
      std::copy_n(&stored.bytes[from * size], size, &to[(i * inputs + k) * size]);
    }
  }
}

}  // namespace

std::vector<const StoredTensor*> find_weights(const Plan& plan, const Checkpoint& checkpoint) {
  NamedTensors tensors(checkpoint);
  // The name under which the file has the tensor.
  const auto stored_name = [&](const std::string& name) {
    const std::string& prefix = plan.optional_prefix;
    const bool shorter = !prefix.empty() && name.starts_with(prefix) && !tensors.has(name) &&
                         tensors.has(name.substr(prefix.size()));
    return shorter ? name.substr(prefix.size()) : name;
  };
  std::vector<const StoredTensor*> found;
  for (const Weight& weight : plan.weights) {
    std::string name = stored_name(weight.name);
    if (!weight.or_name.empty() && !tensors.has(name)) {
      const std::string other = stored_name(weight.or_name);
      if (tensors.has(other)) name = other;
    }
    const StoredTensor* tensor = tensors.take(name);
    const std::vector<std::size_t> shape = stored_shape(weight);
    if (tensor == nullptr || tensor->shape != shape) {
      throw Error("{}: tensor '{}': expected {}, found {}", tensors.where(), name,
                  shape_text(shape), tensor == nullptr ? "none" : shape_text(tensor->shape));
    }
    if (!is_readable(tensor->dtype) || (weight.transposed && is_quantized(tensor->dtype))) {
      throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", tensors.where(), name,
                  dtype_name(tensor->dtype));
    }
    found.push_back(tensor);
  }
  tensors.refuse_leftovers(plan.unused);
  return found;
}

StoredTensor stored_weight(const Weight& weight, const StoredTensor& stored) {
  StoredTensor part = stored;
  part.shape = weight.shape;
  if (!weight.is_contiguous() || weight.of_rows == 0) return part;
  const std::size_t row_bytes = stored.bytes.size() / weight.of_rows;
  part.bytes = stored.bytes.subspan(weight.first_row * row_bytes, weight.shape.front() * row_bytes);
  return part;
}

StoredTensor weight_rows(const Weight& weight, const StoredTensor& stored, std::size_t first,
                         std::size_t count, std::vector<std::byte>& memory) {
  StoredTensor rows = stored;
  rows.shape.front() = count;
  if (weight.transposed) {
    copy_columns(weight, stored, first, count, memory);
    rows.bytes = memory;
    return rows;
  }
  const std::size_t stored_rows = weight.is_contiguous() ? weight.shape.front() : weight.of_rows;
  const std::size_t row_bytes = stored.bytes.size() / stored_rows;
  if (weight.is_contiguous()) {
    rows.bytes = stored.bytes.subspan(first * row_bytes, count * row_bytes);
    return rows;
  }
  memory.resize(count * row_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = stored.bytes.subspan(weight.stored_row(first + i) * row_bytes, row_bytes);
    std::ranges::copy(row, &memory[i * row_bytes]);
  }
  rows.bytes = memory;
  return rows;
}

std::vector<float> read_vector(const Weight& weight, const StoredTensor& stored) {
  std::vector<std::byte> memory;
  StoredTensor row =
      weight_rows(weight, stored_weight(weight, stored), 0, weight.shape.front(), memory);
  row.shape = {1, weight.shape.front()};
  std::vector<float> values(weight.shape.front());
  read_row(row, 0, values);
  for (float& value : values) value += weight.plus;
  return values;
}

}  // namespace stagecraft
