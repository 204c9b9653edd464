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
    if (tensor == nullptr || tensor->shape != weight.shape) {
      throw Error("{}: tensor '{}': expected {}, found {}", tensors.where(), name,
                  shape_text(weight.shape), tensor == nullptr ? "none" : shape_text(tensor->shape));
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

std::vector<float> read_vector(const Weight& weight, const StoredTensor& stored) {
  StoredTensor row = stored;
  row.shape = {1, weight.shape.front()};
  std::vector<float> values(weight.shape.front());
  read_row(row, 0, values);
  for (float& value : values) value += weight.plus;
  return values;
}

}  // namespace stagecraft
