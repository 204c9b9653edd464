#include "checkpoint/scaled_integers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

constexpr std::size_t kPerWord = 8;  // 4-bit integers in a 32-bit word, the lowest bits first
constexpr std::size_t kBlock = 32;   // elements in a block of Q4_0 and Q8_0

unsigned integer_of(std::uint32_t word, std::size_t i) { return word >> (4 * i) & 15u; }

// Sets n_groups and group_of: from the tensor `part` if the file has it, otherwise groups of
// consecutive inputs. `integers` is the part that an error about the number of inputs names.
void set_groups(ScaledIntegers& m, const Quantization& how, MatrixParts& parts,
                std::string_view integers, std::string_view part) {
  const std::size_t size = how.group_size == 0 ? m.inputs : how.group_size;
  if (m.inputs % size != 0) {
    parts.refuse(integers,
                 fmt::format("a number of inputs that is a multiple of 'group_size' {}", size),
                 fmt::format("{}", m.inputs));
  }
  m.n_groups = m.inputs / size;
  m.group_of.resize(m.inputs);
  for (std::size_t k = 0; k < m.inputs; ++k) m.group_of[k] = k / size;
  if (part.empty() || (!how.act_order && !parts.has(part))) return;
  const auto groups = copy_of<std::int32_t>(parts.take_shaped(part, kWordTypes, {m.inputs}));
  for (std::size_t k = 0; k < m.inputs; ++k) {
    if (groups[k] < 0 || static_cast<std::size_t>(groups[k]) >= m.n_groups) {
      parts.refuse(part, fmt::format("groups from 0 to {}", m.n_groups - 1),
                   fmt::format("{}", groups[k]));
    }
    m.group_of[k] = static_cast<std::size_t>(groups[k]);
  }
}

// Sets m.q to stored(o, k), the integer in the file, minus its zero. Works on 16 outputs at a time,
// because in some files the outputs of one input are neighbours.
template <class Stored>
void set_integers(ScaledIntegers& m, Stored stored) {
  constexpr std::size_t kOutputs = 16;
  m.q.resize(m.outputs * m.inputs);
  for (std::size_t first = 0; first < m.outputs; first += kOutputs) {
    const std::size_t last = std::min(m.outputs, first + kOutputs);
    for (std::size_t k = 0; k < m.inputs; ++k) {
      for (std::size_t o = first; o < last; ++o) {
        const int zero = m.zeros[m.scale_index(o, k)];
        m.q[o * m.inputs + k] = static_cast<std::int8_t>(static_cast<int>(stored(o, k)) - zero);
      }
    }
  }
}

bool are_halves(std::span<const float> values) {
  std::vector<std::uint16_t> halves(values.size());
  std::vector<float> again(values.size());
  f32_to_f16(values, halves);
  f16_to_f32(halves, again);
  return std::memcmp(again.data(), values.data(), values.size_bytes()) == 0;
}

// Writes one block: the scale as f16, then the integers q, as 4 bits each in the order of Q4_0 or
// as 8 bits each.
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

}  // namespace

ScaledIntegers read_by_inputs(MatrixParts& parts, const Quantization& how) {
  constexpr std::array<std::size_t, kPerWord> kInOrder = {0, 1, 2, 3, 4, 5, 6, 7};
  constexpr std::array<std::size_t, kPerWord> kAwqOrder = {0, 4, 1, 5, 2, 6, 3, 7};
  const bool awq = how.method == Quantization::Method::Awq;
  const auto& place = awq ? kAwqOrder : kInOrder;
  const StoredTensor& integers = parts.take_matrix("qweight", kWordTypes);
  ScaledIntegers m;
  m.inputs = integers.shape[0] * (awq ? 1 : kPerWord);
  m.outputs = integers.shape[1] * (awq ? kPerWord : 1);
  if (m.outputs % kPerWord != 0) {
    parts.refuse("qweight", "a number of outputs that is a multiple of 8",
                 fmt::format("{}", m.outputs));
  }
  set_groups(m, how, parts, "qweight", awq ? "" : "g_idx");

  const std::size_t words = m.outputs / kPerWord;
  const auto zeros =
      copy_of<std::uint32_t>(parts.take_shaped("qzeros", kWordTypes, {m.n_groups, words}));
  const auto scales =
      parts.floats_of(parts.take_shaped("scales", kFloatTypes, {m.n_groups, m.outputs}));
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

ScaledIntegers read_by_outputs(MatrixParts& parts, const Quantization& how) {
  const auto in_words = [](std::size_t n) { return n / kPerWord + (n % kPerWord != 0 ? 1 : 0); };
  constexpr DType kSizes[] = {DType::I64};
  const StoredTensor& integers = parts.take_matrix("weight_packed", kWordTypes);
  const auto sizes = copy_of<std::int64_t>(parts.take_shaped("weight_shape", kSizes, {2}));
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
      parts.floats_of(parts.take_shaped("weight_scale", kFloatTypes, {m.outputs, m.n_groups}));
  m.zeros.assign(m.outputs * m.n_groups, 8);
  if (how.has_zeros) {
    const std::vector<std::size_t> shape = {in_words(m.outputs), m.n_groups};
    const auto zeros =
        copy_of<std::uint32_t>(parts.take_shaped("weight_zero_point", kWordTypes, shape));
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

DType ScaledIntegers::narrowest_type() const {
  if (inputs % kBlock != 0 || !are_halves(scales)) return DType::F32;
  for (std::size_t k = 0; k < inputs; ++k) {
    if (group_of[k] != group_of[k / kBlock * kBlock]) return DType::F32;
  }
  const auto [least, most] = std::ranges::minmax(q);
  return least >= -8 && most <= 7 ? DType::Q4_0 : DType::Q8_0;
}

std::vector<std::byte> ScaledIntegers::bytes_as(DType dtype) const {
  const DTypeBlock block = dtype_block(dtype);
  std::vector<std::byte> bytes(q.size() / block.elements * block.bytes);
  std::byte* to = bytes.data();
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t k = 0; k < inputs; k += block.elements, to += block.bytes) {
      const float scale = scales[scale_index(o, k)];
      const auto some = std::span(q).subspan(o * inputs + k, block.elements);
      if (dtype == DType::F32) {
        const float value = static_cast<float>(some[0]) * scale;
        std::memcpy(to, &value, sizeof value);
      } else {
        write_block(scale, some, dtype == DType::Q4_0, to);
      }
    }
  }
  return bytes;
}

}  // namespace stagecraft
