#include "model/plan_weights.h"

#include "base/error.h"
#include "model/named_tensors.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {
namespace {

bool is_readable(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 || is_quantized(dtype);
}

}  // namespace

std::vector<const StoredTensor*> find_weights(const Plan& plan, const Checkpoint& checkpoint) {
  NamedTensors tensors(checkpoint);
  std::vector<const StoredTensor*> found;
  for (const Weight& weight : plan.weights) {
    const bool other = !weight.or_name.empty() && !tensors.has(weight.name);
    const std::string& name = other && tensors.has(weight.or_name) ? weight.or_name : weight.name;
    const StoredTensor* tensor = tensors.take(name);
    std::vector<std::size_t> shape = weight.shape;
    if (weight.of_rows != 0) shape.front() = weight.of_rows;
    if (tensor == nullptr || tensor->shape != shape) {
      throw Error("{}: tensor '{}': expected {}, found {}", tensors.where(), name,
                  shape_text(shape), tensor == nullptr ? "none" : shape_text(tensor->shape));
    }
    if (!is_readable(tensor->dtype)) {
      throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", tensors.where(), name,
                  dtype_name(tensor->dtype));
    }
    found.push_back(tensor);
  }
  tensors.refuse_leftovers();
  return found;
}

StoredTensor stored_weight(const Weight& weight, const StoredTensor& stored) {
  StoredTensor part = stored;
  if (weight.of_rows == 0) return part;
  const std::size_t row_bytes = stored.bytes.size() / weight.of_rows;
  part.shape = weight.shape;
  part.bytes = stored.bytes.subspan(weight.first_row * row_bytes, weight.shape.front() * row_bytes);
  return part;
}

std::vector<float> read_vector(const Weight& weight, const StoredTensor& stored) {
  StoredTensor row = stored_weight(weight, stored);
  row.shape = {1, weight.shape.front()};
  std::vector<float> values(weight.shape.front());
  read_row(row, 0, values);
  for (float& value : values) value += weight.plus;
  return values;
}

}  // namespace stagecraft
