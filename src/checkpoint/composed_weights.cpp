#include "checkpoint/composed_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/alternatives.h"
#include "base/error.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/rope_pairs.h"
#include "operators/float8.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

constexpr std::size_t kPerWord = 8;  // integers of 4 bits in a word of 32, the lowest bits first
constexpr std::size_t kBlock = 32;   // of Q4_0 and Q8_0
constexpr DType kFloats[] = {DType::F32, DType::F16, DType::BF16};
constexpr DType kWords[] = {DType::I32};

using Shape = std::vector<std::size_t>;

unsigned integer_of(std::uint32_t word, std::size_t i) { return word >> (4 * i) & 15u; }

std::string dtype_names(std::span<const DType> dtypes) {
  std::vector<std::string_view> names;
  for (const DType dtype : dtypes) names.push_back(dtype_name(dtype));
  return alternatives(std::move(names));
}

// The tensors of one matrix. Each that is asked for is taken out of the map.
class Parts {
 public:
  Parts(TensorMap& tensors, std::string_view matrix, const std::string& where)
      : tensors_(tensors), matrix_(matrix), where_(where) {}

  bool has(std::string_view part) const { return tensors_.contains(name(part)); }

  // A part with two sizes, which give the size of the matrix.
  const StoredTensor& matrix(std::string_view part, std::span<const DType> dtypes) {
    const StoredTensor& tensor = take(part, dtypes);
    const Shape& shape = tensor.shape;
    if (shape.size() == 2 && shape[0] != 0 && shape[1] != 0) return tensor;
    refuse(part, "two sizes of at least 1", shape_text(shape));
  }
  const StoredTensor& of_shape(std::string_view part, std::span<const DType> dtypes,
                               const Shape& shape) {
    const StoredTensor& tensor = take(part, dtypes);
    if (tensor.shape == shape) return tensor;
    refuse(part, shape_text(shape), shape_text(tensor.shape));
  }
  // One number: PyTorch writes it as [], as [1] or as [1, 1].
  const StoredTensor& one_number(std::string_view part, std::span<const DType> dtypes) {
    const StoredTensor& tensor = take(part, dtypes);
    if (element_count(tensor) == 1) return tensor;
    refuse(part, "one number", shape_text(tensor.shape));
  }
  // A part that is known and changes nothing.
  void leave_out(std::string_view part) { tensors_.erase(name(part)); }

  [[noreturn]] void refuse(std::string_view part, std::string_view expected,
                           std::string_view found) const {
    throw Error("{}: tensor '{}': expected {}, found {}", where_, printable(name(part)), expected,
                found);
  }
  std::string name(std::string_view part) const { return fmt::format("{}.{}", matrix_, part); }
  const std::string& where() const { return where_; }

 private:
  const StoredTensor& take(std::string_view part, std::span<const DType> dtypes) {
    const auto found = tensors_.find(name(part));
    if (found == tensors_.end()) refuse(part, dtype_names(dtypes), "none");
    const StoredTensor& tensor = *found->second;
    if (std::ranges::find(dtypes, tensor.dtype) == dtypes.end()) {
      refuse(part, dtype_names(dtypes), dtype_name(tensor.dtype));
    }
    tensors_.erase(found);
    return tensor;
  }

  TensorMap& tensors_;
  std::string matrix_;
  const std::string& where_;
};

template <class T>
std::vector<T> copy_of(const StoredTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

std::vector<float> floats_of(const StoredTensor& tensor, const std::string& where) {
  std::vector<float> values;
  convert_tensor(tensor, DType::F32, where, [&](std::span<const std::byte> piece) {
    const std::size_t at = values.size();
    values.resize(at + piece.size() / sizeof(float));
    std::memcpy(&values[at], piece.data(), piece.size());
  });
  return values;
}

// ---- integers with a scale per group ------------------------------------------------------------

struct ScaledIntegers {
  std::size_t outputs = 0, inputs = 0, n_groups = 0;
  std::vector<std::size_t> group_of;  // [inputs]
  std::vector<std::int8_t> zeros;     // [outputs, n_groups]
  std::vector<float> scales;          // [outputs, n_groups]
  std::vector<std::int8_t> q;         // [outputs, inputs], less their zeros

  std::size_t group(std::size_t output, std::size_t input) const {
    return output * n_groups + group_of[input];
  }
};

// The group of each input: `part` of the file says it, or they follow one another.
void set_groups(ScaledIntegers& m, const Quantization& how, Parts& parts, std::string_view integers,
                std::string_view part) {
  const std::size_t size = how.group_size == 0 ? m.inputs : how.group_size;
  if (m.inputs % size != 0) {
    parts.refuse(integers, fmt::format("a multiple of 'group_size' {} inputs", size),
                 fmt::format("{}", m.inputs));
  }
  m.n_groups = m.inputs / size;
  m.group_of.resize(m.inputs);
  for (std::size_t k = 0; k < m.inputs; ++k) m.group_of[k] = k / size;
  if (part.empty() || (!how.act_order && !parts.has(part))) return;
  const auto groups = copy_of<std::int32_t>(parts.of_shape(part, kWords, {m.inputs}));
  for (std::size_t k = 0; k < m.inputs; ++k) {
    if (groups[k] < 0 || static_cast<std::size_t>(groups[k]) >= m.n_groups) {
      parts.refuse(part, fmt::format("groups from 0 to {}", m.n_groups - 1),
                   fmt::format("{}", groups[k]));
    }
    m.group_of[k] = static_cast<std::size_t>(groups[k]);
  }
}

// q less its zero, for all: `stored` is what the file has. A few outputs at a time, because in some
// files those of one input lie side by side.
template <class Stored>
void set_integers(ScaledIntegers& m, Stored stored) {
  constexpr std::size_t kOutputs = 16;
  m.q.resize(m.outputs * m.inputs);
  for (std::size_t first = 0; first < m.outputs; first += kOutputs) {
    const std::size_t last = std::min(m.outputs, first + kOutputs);
    for (std::size_t k = 0; k < m.inputs; ++k) {
      for (std::size_t o = first; o < last; ++o) {
        const int zero = m.zeros[m.group(o, k)];
        m.q[o * m.inputs + k] = static_cast<std::int8_t>(static_cast<int>(stored(o, k)) - zero);
      }
    }
  }
}

// GPTQ (Frantar et al. 2022) as AutoGPTQ and GPTQModel write it, and AWQ (Lin et al. 2023) as
// AutoAWQ does. Inputs are rows:
//   qweight  GPTQ [inputs / 8, outputs]: a word has 8 inputs of an output
//            AWQ  [inputs, outputs / 8]: a word has 8 outputs of an input, in AWQ's order
//   qzeros   [groups, outputs / 8], in the same order of outputs
//   scales   [groups, outputs]
//   g_idx    GPTQ [inputs]: the group of each
ScaledIntegers read_by_inputs(Parts& parts, const Quantization& how) {
  constexpr std::array<std::size_t, kPerWord> kInOrder = {0, 1, 2, 3, 4, 5, 6, 7};
  constexpr std::array<std::size_t, kPerWord> kAwqOrder = {0, 4, 1, 5, 2, 6, 3, 7};
  const bool awq = how.method == Quantization::Method::Awq;
  const auto& place = awq ? kAwqOrder : kInOrder;
  const StoredTensor& integers = parts.matrix("qweight", kWords);
  ScaledIntegers m;
  m.inputs = integers.shape[0] * (awq ? 1 : kPerWord);
  m.outputs = integers.shape[1] * (awq ? kPerWord : 1);
  if (m.outputs % kPerWord != 0) {
    parts.refuse("qweight", "a multiple of 8 outputs", fmt::format("{}", m.outputs));
  }
  set_groups(m, how, parts, "qweight", awq ? "" : "g_idx");

  const std::size_t words = m.outputs / kPerWord;
  const auto zeros = copy_of<std::uint32_t>(parts.of_shape("qzeros", kWords, {m.n_groups, words}));
  const auto scales =
      floats_of(parts.of_shape("scales", kFloats, {m.n_groups, m.outputs}), parts.where());
  const std::uint32_t less = how.zeros_less_one ? 0x11111111u : 0u;
  m.zeros.resize(m.outputs * m.n_groups);
  m.scales.resize(m.zeros.size());
  for (std::size_t o = 0; o < m.outputs; ++o) {
    for (std::size_t g = 0; g < m.n_groups; ++g) {
      const std::uint32_t word = zeros[g * words + o / kPerWord] + less;
      const unsigned zero = integer_of(word, place[o % kPerWord]);
      m.zeros[o * m.n_groups + g] = static_cast<std::int8_t>(zero);
      m.scales[o * m.n_groups + g] = scales[g * m.outputs + o];
    }
  }
  const auto q = copy_of<std::uint32_t>(integers);
  if (awq) {
    set_integers(m, [&](std::size_t o, std::size_t k) {
      return integer_of(q[k * words + o / kPerWord], place[o % kPerWord]);
    });
  } else {
    set_integers(m, [&](std::size_t o, std::size_t k) {
      return integer_of(q[k / kPerWord * m.outputs + o], k % kPerWord);
    });
  }
  return m;
}

// "pack-quantized" of compressed-tensors (github.com/vllm-project/compressed-tensors). Integers are
// stored + 8:
//   weight_packed      [outputs, inputs / 8], the last word filled up
//   weight_shape       [2]: outputs and inputs
//   weight_scale       [outputs, groups]
//   weight_zero_point  [outputs / 8, groups], the last word filled up: a word has 8 outputs
//   weight_g_idx       [inputs]: the group of each
ScaledIntegers read_by_outputs(Parts& parts, const Quantization& how) {
  const auto in_words = [](std::size_t n) { return n / kPerWord + (n % kPerWord != 0 ? 1 : 0); };
  constexpr DType kSizes[] = {DType::I64};
  const StoredTensor& integers = parts.matrix("weight_packed", kWords);
  const auto sizes = copy_of<std::int64_t>(parts.of_shape("weight_shape", kSizes, {2}));
  ScaledIntegers m;
  m.outputs = integers.shape[0];
  if (sizes[0] != static_cast<std::int64_t>(m.outputs) || sizes[1] <= 0 ||
      in_words(static_cast<std::size_t>(sizes[1])) != integers.shape[1]) {
    parts.refuse("weight_shape",
                 fmt::format("[{}, {} to {}]", m.outputs, integers.shape[1] * kPerWord - 7,
                             integers.shape[1] * kPerWord),
                 fmt::format("[{}, {}]", sizes[0], sizes[1]));
  }
  m.inputs = static_cast<std::size_t>(sizes[1]);
  set_groups(m, how, parts, "weight_packed", "weight_g_idx");

  m.scales =
      floats_of(parts.of_shape("weight_scale", kFloats, {m.outputs, m.n_groups}), parts.where());
  m.zeros.assign(m.outputs * m.n_groups, 8);
  if (how.has_zeros) {
    const Shape shape = {in_words(m.outputs), m.n_groups};
    const auto zeros = copy_of<std::uint32_t>(parts.of_shape("weight_zero_point", kWords, shape));
    for (std::size_t o = 0; o < m.outputs; ++o) {
      for (std::size_t g = 0; g < m.n_groups; ++g) {
        const unsigned zero = integer_of(zeros[o / kPerWord * m.n_groups + g], o % kPerWord);
        m.zeros[o * m.n_groups + g] = static_cast<std::int8_t>(zero);
      }
    }
  }
  const auto q = copy_of<std::uint32_t>(integers);
  const std::size_t words = integers.shape[1];
  set_integers(m, [&](std::size_t o, std::size_t k) {
    return integer_of(q[o * words + k / kPerWord], k % kPerWord);
  });
  return m;
}

bool are_halves(std::span<const float> values) {
  std::vector<std::uint16_t> halves(values.size());
  std::vector<float> again(values.size());
  f32_to_f16(values, halves);
  f16_to_f32(halves, again);
  return std::memcmp(again.data(), values.data(), values.size_bytes()) == 0;
}

DType narrowest_type(const ScaledIntegers& m) {
  if (m.inputs % kBlock != 0 || !are_halves(m.scales)) return DType::F32;
  for (std::size_t k = 0; k < m.inputs; ++k) {
    if (m.group_of[k] != m.group_of[k / kBlock * kBlock]) return DType::F32;
  }
  const auto [least, most] = std::ranges::minmax(m.q);
  return least >= -8 && most <= 7 ? DType::Q4_0 : DType::Q8_0;
}

// A block's scale and its integers, q: of 4 bits in the order of Q4_0, or of 8.
void write_block(float scale, std::span<const std::int8_t> q, bool four_bits, std::byte* to) {
  std::uint16_t half = 0;
  f32_to_f16({&scale, 1}, {&half, 1});
  std::memcpy(to, &half, sizeof half);
  to += sizeof half;
  if (!four_bits) {
    std::memcpy(to, q.data(), q.size());
    return;
  }
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    to[i] = static_cast<std::byte>((q[i] + 8) | (q[kBlock / 2 + i] + 8) << 4);
  }
}

std::vector<std::byte> bytes_as(const ScaledIntegers& m, DType dtype) {
  const DTypeBlock block = dtype_block(dtype);
  std::vector<std::byte> bytes(m.q.size() / block.elements * block.bytes);
  for (std::size_t i = 0; i < m.q.size(); i += block.elements) {
    const float scale = m.scales[m.group(i / m.inputs, i % m.inputs)];
    std::byte* to = &bytes[i / block.elements * block.bytes];
    if (dtype == DType::F32) {
      const float value = static_cast<float>(m.q[i]) * scale;
      std::memcpy(to, &value, sizeof value);
    } else {
      write_block(scale, std::span(m.q).subspan(i, kBlock), dtype == DType::Q4_0, to);
    }
  }
  return bytes;
}

// ---- fp8 ----------------------------------------------------------------------------------------

// As DeepSeek-V3 and transformers (integrations/finegrained_fp8.py) have it: number * scale of its
// block. The last blocks of a row or a column may be smaller.
//   weight            [outputs, inputs]
//   weight_scale_inv  [blocks of outputs, blocks of inputs], or one number; also called
//   weight_scale
// The scale of activations, which are not rounded here, is not needed.
void read_fp8(Parts& parts, const Quantization& how, StoredTensor& result,
              std::vector<std::byte>& bytes) {
  constexpr DType kFp8[] = {DType::F8_E4M3};
  const StoredTensor& weight = parts.matrix("weight", kFp8);
  const std::string_view part = parts.has("weight_scale") ? "weight_scale" : "weight_scale_inv";
  const std::size_t rows = weight.shape[0], columns = weight.shape[1];
  const bool blocks = how.block_rows != 0;
  const std::size_t block_rows = blocks ? how.block_rows : rows;
  const std::size_t block_columns = blocks ? how.block_columns : columns;
  const Shape grid = {(rows + block_rows - 1) / block_rows,
                      (columns + block_columns - 1) / block_columns};
  const auto scales =
      floats_of(blocks ? parts.of_shape(part, kFloats, grid) : parts.one_number(part, kFloats),
                parts.where());
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
    Parts parts(tensors, name, where);
    StoredTensor& tensor = tensors_.emplace_back();
    std::vector<std::byte>& bytes = copies_.emplace_back();
    if (how.method == Quantization::Method::Fp8) {
      read_fp8(parts, how, tensor, bytes);
    } else {
      const bool by_outputs = how.method == Quantization::Method::CompressedTensors;
      const ScaledIntegers m =
          by_outputs ? read_by_outputs(parts, how) : read_by_inputs(parts, how);
      tensor.dtype = narrowest_type(m);
      tensor.shape = {m.outputs, m.inputs};
      bytes = bytes_as(m, tensor.dtype);
    }
    tensor.name = parts.name("weight");
    tensor.bytes = bytes;
    if (parts.has("weight")) {
      throw Error("{}: tensor '{}': expected it once, found it whole and in parts", where,
                  printable(tensor.name));
    }
  }
}

std::size_t ComposedWeights::copied_bytes() const { return total_size(copies_); }

std::string ComposedWeights::text() const {
  std::vector<std::string_view> types;
  for (const StoredTensor& tensor : tensors_) {
    const std::string_view type = dtype_name(tensor.dtype);
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return fmt::format("{}; read as {}", how_.text(), fmt::join(types, " and "));
}

}  // namespace stagecraft
