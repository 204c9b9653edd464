#include "backends/cuda/device_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "backends/large_model.h"
#include "model/plan_weights.h"
#include "operators/dequantize.h"
#include "operators/float_to_half.h"
#include "operators/read_row.h"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kBlock = 32;  // this many numbers share a scale

WeightType type_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::IQ4_XS:
      return WeightType::F32;
    case DType::F16:
      return WeightType::F16;
    case DType::Q8_0:
    case DType::Q5_0:
    case DType::IQ4_NL:
      return WeightType::Q8_0;
    case DType::Q4_0:
      return WeightType::Q4_0;
    case DType::Q4_1:
      return WeightType::Q4_1;
    default:
      return WeightType::BF16;
  }
}

struct Sizes {
  std::size_t values, scales;  // bytes per row
};

Sizes row_sizes(WeightType type, std::size_t stride) {
  const std::size_t blocks = stride / kBlock;
  switch (type) {
    case WeightType::F32:
      return {stride * 4, 0};
    case WeightType::F16:
    case WeightType::BF16:
      return {stride * 2, 0};
    case WeightType::Q8_0:
      return {stride, blocks * 2};
    case WeightType::Q4_0:
      return {stride / 2, blocks * 2};
    case WeightType::Q4_1:
      return {stride / 2, blocks * 4};
  }
  return {};
}

// A block in a file begins with its scale (or scale and minimum). On the GPU, integers and scales
// are stored apart, so that both are aligned.
void split_q8(const std::byte* block, std::byte* values, std::byte* scale) {
  std::memcpy(scale, block, 2);
  std::memcpy(values, block + 2, kBlock);
}

// In a file, byte i holds numbers i and 16 + i of a block. On the GPU, a word holds eight
// neighbouring numbers, in the order of WeightType::Q4_0. head: bytes of scale and minimum.
void split_q4(const std::byte* block, std::size_t head, std::byte* values, std::byte* scales) {
  std::memcpy(scales, block, head);
  for (std::size_t first = 0; first < kBlock; first += 8) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t n = first + i;
      const auto byte = std::to_integer<std::uint32_t>(block[head + n % 16]);
      const std::uint32_t number = n < 16 ? byte & 0xf : byte >> 4;
      word |= number << (4 * (i / 2) + 16 * (i % 2));
    }
    std::memcpy(values + first / 2, &word, sizeof word);
  }
}

// Writes row `row` of a stored matrix in the layout of a DeviceMatrix. Does not write the padding.
void write_row(const StoredTensor& stored, std::size_t row, std::byte* values, std::byte* scales) {
  const std::size_t inputs = stored.shape[1];
  const std::size_t row_bytes = stored.bytes.size() / stored.shape[0];
  const std::byte* from = stored.bytes.data() + row * row_bytes;
  if (!is_quantized(stored.dtype)) {
    std::memcpy(values, from, row_bytes);
    return;
  }
  const WeightType type = type_of(stored.dtype);
  if (type == WeightType::F32 || type == WeightType::BF16) {
    std::vector<float> numbers(inputs);
    read_row(stored, row, numbers);
    if (type == WeightType::F32) {
      std::memcpy(values, numbers.data(), 4 * inputs);
      return;
    }
    std::vector<std::uint16_t> rounded(inputs);
    f32_to_bf16(numbers, rounded);
    std::memcpy(values, rounded.data(), 2 * inputs);
    return;
  }
  std::vector<std::byte> as_q8_0;
  DType dtype = stored.dtype;
  if (fits_q8_0(dtype)) {
    as_q8_0.resize(inputs / kBlock * dtype_block(DType::Q8_0).bytes);
    blocks_as_q8_0(dtype, {from, row_bytes}, as_q8_0);
    from = as_q8_0.data();
    dtype = DType::Q8_0;
  }
  const std::size_t block_bytes = dtype_block(dtype).bytes;
  for (std::size_t b = 0; b < inputs / kBlock; ++b) {
    const std::byte* block = from + b * block_bytes;
    if (dtype == DType::Q8_0) split_q8(block, values + 32 * b, scales + 2 * b);
    if (dtype == DType::Q4_0) split_q4(block, 2, values + 16 * b, scales + 2 * b);
    if (dtype == DType::Q4_1) split_q4(block, 4, values + 16 * b, scales + 4 * b);
  }
}

}  // namespace

std::size_t& tensor_core_bytes() {
  static std::size_t bytes = kLargeModelBytes;
  return bytes;
}

template <class T>
T* DeviceWeights::keep(std::span<const T> values) {
  return memory_.emplace_back(values).template as<T>();
}

void DeviceWeights::add_matrix(const Weight& weight, const StoredTensor& stored,
                               DeviceMatrix& matrix) {
  matrix.type = type_of(stored.dtype);
  matrix.outputs = static_cast<unsigned>(weight.shape[0]);
  matrix.inputs = static_cast<unsigned>(weight.shape[1]);
  matrix.stride = padded(matrix.inputs);
  matrix.tensor_cores = matrix.type != WeightType::F32 && rounds_rows_ && !weight.exact;
  const Sizes sizes = row_sizes(matrix.type, matrix.stride);
  std::vector<std::byte> values(matrix.outputs * sizes.values), memory;
  std::vector<std::byte> scales(matrix.outputs * sizes.scales);
  const StoredTensor rows = weight.stored.is_contiguous()
                                ? stored
                                : weight_rows(weight, stored, 0, matrix.outputs, memory);
  for (std::size_t r = 0; r < matrix.outputs; ++r) {
    write_row(rows, r, values.data() + r * sizes.values, scales.data() + r * sizes.scales);
  }
  matrix.values = keep(std::span<const std::byte>(values));
  matrix.scales = scales.empty() ? nullptr : keep(std::span<const std::byte>(scales));
}

DeviceWeights::DeviceWeights(const Plan& plan, const Checkpoint& checkpoint)
    : rounds_rows_(is_large(checkpoint, tensor_core_bytes())),
      matrices_(plan.weights.size()),
      vectors_(plan.weights.size()) {
  const std::vector<const StoredTensor*> stored = find_weights(plan, checkpoint);
  const std::vector<bool> is_read = weights_of_steps(plan);
  std::set<const StoredTensor*> of_others;  // tensors that the other part of a split model reads
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!is_read[i]) of_others.insert(stored[i]);
  }
  std::map<const StoredTensor*, std::size_t> whole;  // weights that are a whole tensor
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!is_read[i]) continue;
    const Weight& weight = plan.weights[i];
    if (weight.is_matrix()) {
      // A tensor that is both the embedding table and the head is uploaded once.
      if (weight.stored == Storage{}) {
        const auto [same, is_first] = whole.try_emplace(stored[i], i);
        if (!is_first) {
          matrices_[i] = matrices_[same->second];
          continue;
        }
      }
      add_matrix(weight, stored_weight(weight, *stored[i]), matrices_[i]);
      checkpoint.release_pages();
    } else {
      const std::vector<float> values = read_vector(weight, *stored[i]);
      vectors_[i] = keep(std::span<const float>(values));
    }
  }
  for (const StoredTensor* tensor : stored) {
    if (!of_others.contains(tensor)) checkpoint.drop_copy(*tensor);
  }
  for (const Step& step : plan.steps) {
    if (const auto* heads = std::get_if<HeadsLinearStep>(&step.kind)) {
      std::vector<DeviceMatrix> matrices;
      for (const WeightId id : heads->weights) matrices.push_back(matrix(id));
      heads_[heads] = keep(std::span<const DeviceMatrix>(matrices));
    }
    const auto* experts = std::get_if<ExpertsStep>(&step.kind);
    if (experts == nullptr) continue;
    using Expert = ExpertsStep::Expert;
    const auto table = [&](WeightId Expert::*part, WeightId Expert::*bias) {
      std::vector<DeviceMatrix> matrices;
      std::vector<const float*> biases;
      for (const Expert& expert : experts->experts) {
        matrices.push_back(matrix(expert.*part));
        if (expert.*bias != kNone) biases.push_back(vector(expert.*bias));
      }
      return DeviceExperts{keep(std::span<const DeviceMatrix>(matrices)),
                           keep(std::span<const float* const>(biases))};
    };
    experts_[experts] = {table(&Expert::gate, &Expert::gate_bias),
                         table(&Expert::up, &Expert::up_bias),
                         table(&Expert::down, &Expert::down_bias)};
  }
}

}  // namespace stagecraft::cuda
