#include "model/plan_weights.h"

#include <algorithm>

#include "base/error.h"
#include "model/named_tensors.h"
#include "operators/read_row.h"

namespace stagecraft {
namespace {

// Whether the file stores several weights of this tensor one after the other as rows of one matrix,
// although the plan expects one more dimension.
bool is_one_matrix(const Weight& weight, const std::vector<std::size_t>& shape,
                   const std::vector<std::size_t>& found) {
  if (weight.stored.of_slices == 0 || shape.size() != 3 || found.size() != 2) return false;
  return found[0] == shape[0] * shape[1] && found[1] == shape[2];
}

// Row i of a transposed matrix is column i of the stored one.
void copy_columns(const Weight& weight, const StoredTensor& stored, std::size_t first,
                  std::size_t count, std::vector<std::byte>& to) {
  const Storage& in = weight.stored;
  const std::size_t inputs = weight.shape[1];
  const std::size_t columns = in.of_rows != 0 ? in.of_rows : weight.shape[0];
  const std::size_t stored_inputs = in.of_inputs != 0 ? in.of_inputs : inputs;
  const std::size_t size = stored.bytes.size() / (stored_inputs * columns);  // bytes per number
  to.resize(count * inputs * size);
  for (std::size_t k = 0; k < inputs; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from = (in.first_input + k) * columns + in.row(first + i);
      std::copy_n(&stored.bytes[from * size], size, &to[(i * inputs + k) * size]);
    }
  }
}

}  // namespace

std::vector<std::size_t> stored_shape(const Weight& weight) {
  const Storage& in = weight.stored;
  std::vector<std::size_t> shape = weight.shape;
  if (in.of_rows != 0) shape.front() = in.of_rows;
  if (in.of_inputs != 0) shape.back() = in.of_inputs;
  if (in.transposed) std::swap(shape[0], shape[1]);
  if (in.taps) shape.insert(shape.end() - 1, 1);
  if (in.folded_rows != 0) shape = {in.folded_rows, shape[0] / in.folded_rows};
  if (in.of_slices != 0) shape.insert(shape.begin(), in.of_slices);
  return shape;
}

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
    if (tensor == nullptr ||
        (tensor->shape != shape && !is_one_matrix(weight, shape, tensor->shape))) {
      throw Error("{}: tensor '{}': expected {}, found {}", tensors.where(),
                  checkpoint.stored_name(name), shape_text(shape),
                  tensor == nullptr ? "none" : shape_text(tensor->shape));
    }
    // Blocks cannot be cut: these are read number by number.
    const bool by_number =
        weight.stored.transposed || weight.stored.of_inputs != 0 || !weight.is_matrix();
    if (!is_readable(tensor->dtype) || (by_number && is_quantized(tensor->dtype))) {
      throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", tensors.where(),
                  checkpoint.stored_name(name), dtype_name(tensor->dtype));
    }
    found.push_back(tensor);
  }
  tensors.refuse_leftovers(plan.unused);
  return found;
}

StoredTensor stored_weight(const Weight& weight, const StoredTensor& stored) {
  const Storage& in = weight.stored;
  StoredTensor part = stored;
  part.shape = weight.shape;
  if (in.of_slices != 0) {
    const std::size_t bytes = stored.bytes.size() / in.of_slices;
    part.bytes = stored.bytes.subspan(in.slice * bytes, bytes);
  }
  if (!in.is_contiguous() || in.of_rows == 0) return part;
  const std::size_t row_bytes = part.bytes.size() / in.of_rows;
  part.bytes = part.bytes.subspan(in.first_row * row_bytes, weight.shape.front() * row_bytes);
  return part;
}

StoredTensor weight_rows(const Weight& weight, const StoredTensor& stored, std::size_t first,
                         std::size_t count, std::vector<std::byte>& memory) {
  const Storage& in = weight.stored;
  StoredTensor rows = stored;
  rows.shape.front() = count;
  if (in.transposed) {
    copy_columns(weight, stored, first, count, memory);
    rows.bytes = memory;
    return rows;
  }
  const bool whole = in.is_contiguous() || in.of_rows == 0;
  const std::size_t row_bytes = stored.bytes.size() / (whole ? weight.shape.front() : in.of_rows);
  if (in.is_contiguous()) {
    rows.bytes = stored.bytes.subspan(first * row_bytes, count * row_bytes);
    return rows;
  }
  const std::size_t number = in.of_inputs == 0 ? 0 : row_bytes / in.of_inputs;
  const std::size_t bytes = number == 0 ? row_bytes : weight.shape[1] * number;
  memory.resize(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = in.row(first + i) * row_bytes + in.first_input * number;
    std::ranges::copy(stored.bytes.subspan(from, bytes), &memory[i * bytes]);
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
