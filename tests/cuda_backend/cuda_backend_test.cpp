// The CUDA backend on the emulator. Compares every kind of step with its formula in double
// precision, and every tiny model with PyTorch. cuda_backend_test.py runs this program and reads
// the findings of the emulator's checker.
#include "backends/cuda/cuda_backend.h"
#include "checkpoint/model_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "backends/cuda/cuda_bytes.h"
#include "backends/cuda/device_memory.h"
#include "backends/cuda/device_weights.h"
#include "backends/large_model.h"
#include "backends/textbook/textbook_backend.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/gguf/writer.h"
#include "generation/sampler.h"
#include "inspection/trace_file.h"
#include "model/description.h"
#include "model/placement.h"
#include "model/plan_split.h"
#include "model/plan_writer.h"
#include "operators/cuda/device.h"
#include "operators/cuda/operators.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"
#include "tests/backends/conformance_cases.h"
#include "tests/backends/plan_oracle.h"
#include "tests/support/error_of.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr DType kTypes[] = {DType::F32,  DType::F16,  DType::BF16,
                            DType::Q8_0, DType::Q4_0, DType::Q4_1};

// One step for each kernel that reads weights.
const std::vector<std::string> kReadWeights = {"embed", "linear", "experts", "short conv"};

EngineOptions options(KvType kv_type = KvType::F32) { return {BackendKind::Cuda, 1, kv_type}; }

TEST(CudaConformance, EveryStepIsItsFormulaAndARowDoesNotDependOnOthers) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "case.gguf";
  for (const std::string& step : conformance_steps()) {
    for (const DType dtype : kTypes) {
      const bool reads = std::ranges::find(kReadWeights, step) != kReadWeights.end();
      const CacheFormat* kept = cache_format(has_cache(step) ? dtype : DType::F32);
      if (step == "short conv" && is_quantized(dtype)) continue;  // its rows are not whole blocks
      if (kept == nullptr || !kept->on_gpu || (dtype != DType::F32 && !reads && !has_cache(step)))
        continue;
      std::mt19937 random(1);
      double worst = 0.0;
      // Four shapes together have every feature of a step. F32 runs all four, each other format one
      // of them. Checked kernels are slow, so after the first shape, 5 rows are enough: a tile of
      // linear.cu and one more.
      constexpr std::size_t kLongestPrompt = 40;
      const auto type = static_cast<std::size_t>(std::ranges::find(kTypes, dtype) - kTypes);
      const std::size_t first = dtype == DType::F32 ? 0 : type % 4;
      for (std::size_t i = first; i < (dtype == DType::F32 ? 4 : first + 1); ++i) {
        ConformanceCase one = make_case(step, dtype, i, random, file);
        while (first_pass(one.plan, one.tokens) > kLongestPrompt) {  // cannot be cut into passes
          one = make_case(step, dtype, i, random, file);
        }
        const std::size_t enough =
            std::max<std::size_t>(i == 0 ? 12 : 5, first_pass(one.plan, one.tokens));
        one.tokens.resize(std::min(one.tokens.size(), enough));
        const Checkpoint checkpoint = Checkpoint::open(file);
        const auto backend = make_cuda_backend(one.plan, checkpoint, kept->type);
        const auto all = backend->make_sequence(one.tokens.size(), 0);
        const auto some = backend->make_sequence(one.tokens.size(), 0);
        const auto got = in_cuts(one, random, [&](std::span<const TokenId> tokens, auto logits) {
          const Input scored{all.get(), tokens, tokens.size()};
          backend->forward({&scored, 1}, logits);
          const std::size_t n = random() % (tokens.size() + 1);
          const Input fewer{some.get(), tokens, n};
          Matrix<float> last(n, logits.cols());
          backend->forward({&fewer, 1}, last.view());
          for (std::size_t r = 0; r < n; ++r) {
            EXPECT_TRUE(same_bits(last.view().row(r), logits.row(tokens.size() - n + r)))
                << step << ", " << one.shape;
          }
        });
        const PlanWeights weights = load_weights(one.plan, checkpoint);
        const double error =
            relative_error(got, run_oracle(one.plan, weights, one.tokens, {}, *kept->on_gpu));
        EXPECT_LE(error, 1.0) << step << ", " << dtype_name(dtype) << ", " << one.shape;
        worst = std::max(worst, error);
      }
      fmt::print("{:<16} {:<5} error {:.3f}\n", step, dtype_name(dtype), worst);
    }
  }
}

// The logits of a text, computed in passes of these lengths.
std::vector<float> in_passes(Engine& engine, std::span<const TokenId> ids,
                             const std::vector<std::size_t>& passes) {
  const auto sequence = engine.make_sequence(ids.size());
  Matrix<float> logits(ids.size(), engine.plan().vocab_size);
  for (const std::size_t n : passes) {
    const std::size_t first = sequence->length();
    const Input input{sequence.get(), ids.subspan(first, n), n};
    engine.forward({&input, 1}, logits.view().row_range(first, n));
  }
  return {logits.data(), logits.data() + logits.rows() * logits.cols()};
}

// The bits of the numbers as F16 or BF16.
std::vector<std::uint16_t> halves(cuda::WeightType type, std::span<const float> values) {
  std::vector<std::uint16_t> bits(values.size());
  type == cuda::WeightType::F16 ? f32_to_f16(values, bits) : f32_to_bf16(values, bits);
  return bits;
}
std::vector<float> rounded(cuda::WeightType type, std::span<const float> values) {
  const std::vector<std::uint16_t> bits = halves(type, values);
  std::vector<float> result(bits.size());
  type == cuda::WeightType::F16 ? f16_to_f32(bits, result) : bf16_to_f32(bits, result);
  return result;
}

// A row of activations after the rounding for tensor cores: see round_rows().
std::vector<float> as_multiplied(cuda::WeightType type, std::span<const float> row) {
  const bool is_bf16 = type == cuda::WeightType::BF16;
  float largest = 0.0f;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  const bool is_scaled = !is_bf16 && largest > 0.0f;
  const float power = is_scaled ? std::exp2(std::floor(std::log2(largest))) : 1.0f;
  std::vector<float> scaled(row.begin(), row.end());
  for (float& value : scaled) value /= power;
  scaled = rounded(is_bf16 ? cuda::WeightType::BF16 : cuda::WeightType::F16, scaled);
  for (float& value : scaled) value *= power;
  return scaled;
}

// Random weights in the layout of a DeviceMatrix, and as numbers.
struct Weights {
  std::vector<std::uint8_t> values;
  std::vector<std::uint16_t> scales;
  std::vector<float> numbers;
};
Weights random_weights(cuda::WeightType type, std::size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Weights w;
  w.numbers.resize(n);
  if (type == cuda::WeightType::F16 || type == cuda::WeightType::BF16) {
    for (float& number : w.numbers) number = normal(random);
    const auto bits = halves(type, w.numbers);
    w.values.resize(2 * n);
    std::memcpy(w.values.data(), bits.data(), 2 * n);
    w.numbers = rounded(type, w.numbers);
    return w;
  }
  const bool is_q8 = type == cuda::WeightType::Q8_0, is_q4_1 = type == cuda::WeightType::Q4_1;
  w.values.resize(is_q8 ? n : n / 2);
  for (std::uint8_t& byte : w.values) byte = static_cast<std::uint8_t>(random());
  for (std::size_t block = 0; block < n / 32; ++block) {
    const std::vector<float> pair = rounded(
        cuda::WeightType::F16, std::vector<float>{0.01f * normal(random), 0.1f * normal(random)});
    const auto bits = halves(cuda::WeightType::F16, pair);
    w.scales.push_back(bits[0]);
    if (is_q4_1) w.scales.push_back(bits[1]);
    for (std::size_t i = 32 * block; i < 32 * (block + 1); ++i) {
      if (is_q8) {
        w.numbers[i] = pair[0] * static_cast<float>(static_cast<std::int8_t>(w.values[i]));
        continue;
      }
      const std::size_t at = i % 8, nibble = at / 2 + at % 2 * 4;  // see WeightType::Q4_0
      const int number = w.values[i / 8 * 4 + nibble / 2] >> (nibble % 2 * 4) & 0xf;
      w.numbers[i] = is_q4_1 ? pair[0] * static_cast<float>(number) + pair[1]
                             : pair[0] * static_cast<float>(number - 8);
    }
  }
  return w;
}

constexpr cuda::WeightType kTensorTypes[] = {cuda::WeightType::F16, cuda::WeightType::BF16,
                                             cuda::WeightType::Q8_0, cuda::WeightType::Q4_0,
                                             cuda::WeightType::Q4_1};

// Each row has the same bits as in a pass of its own, and is the product with rounded activations.
// Two products share the launch. The second one is added to numbers that are already in `out`.
TEST(CudaTensorCores, MultiplyRoundedRowsAndARowDoesNotDependOnOthers) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const std::size_t kShapes[][3] = {{70, 40, 96}, {17, 16, 40}, {33, 150, 320}, {3, 33, 7}};
  for (const auto type : kTensorTypes) {
    for (const auto& [n_rows, n_outputs, n_inputs] : kShapes) {
      const std::size_t stride = cuda::padded(n_inputs), out_stride = cuda::padded(n_outputs);
      std::vector<float> x(n_rows * stride), bias(n_outputs), before(n_rows * out_stride);
      for (float& value : bias) value = normal(random);
      for (float& value : before) value = normal(random);
      for (std::size_t r = 0; r < n_rows; ++r) {
        const float size = r == 1 ? 0.0f : r == 2 ? 1e7f : 1.0f;  // 1e7 > 65504
        for (std::size_t i = 0; i < n_inputs; ++i) x[r * stride + i] = size * normal(random);
      }
      const Weights w = random_weights(type, n_outputs * stride, random);
      const cuda::DeviceMemory device_x{std::span<const float>(x)};
      const cuda::DeviceMemory device_bias{std::span<const float>(bias)};
      const cuda::DeviceMemory device_w{std::span<const std::uint8_t>(w.values)};
      const cuda::DeviceMemory device_scales{std::span<const std::uint16_t>(w.scales)};
      const cuda::DeviceMemory values(n_rows * stride * 2), powers(n_rows * 4),
          sums(n_rows * stride / 32 * 4);
      const auto size = [](std::size_t n) { return static_cast<unsigned>(n); };
      const cuda::DeviceMatrix matrix{type,         size(n_outputs),     size(n_inputs),
                                      size(stride), device_w.as<void>(), device_scales.as<void>(),
                                      true};
      // The results of both products for rows [first, first + n), one behind the other.
      const auto product = [&](std::size_t first, std::size_t n) {
        const cuda::DeviceMemory out(n * out_stride * sizeof(float));
        const cuda::DeviceMemory added{
            std::span<const float>(before).subspan(first * out_stride, n * out_stride)};
        const auto rows = [&](const cuda::DeviceMemory& memory) {
          return cuda::Rows{memory.as<float>(), size(n), size(n_outputs), size(out_stride)};
        };
        const cuda::Rows in{device_x.as<float>() + first * stride, size(n), size(n_inputs),
                            size(stride)};
        const cuda::HalfRows rounded_in{
            values.as<unsigned short>(),   powers.as<float>(), sums.as<float>(), size(n), in.stride,
            type == cuda::WeightType::BF16};
        cuda::round_rows(rounded_in, in);
        cuda::tensor_linear({{{matrix, device_bias.as<float>(), rows(out), false},
                              {matrix, nullptr, rows(added), true}},
                             2},
                            rounded_in);
        std::vector<float> all;
        for (const cuda::DeviceMemory* memory : {&out, &added}) {
          for (std::size_t r = 0; r < n; ++r) {
            std::vector<float> row(n_outputs);
            cuda::download(row.data(), memory->as<float>() + r * out_stride, 4 * n_outputs);
            all.insert(all.end(), row.begin(), row.end());
          }
        }
        return all;
      };
      const std::vector<float> got = product(0, n_rows);
      const auto result = [&](std::size_t which, std::size_t r) {
        return std::span(got).subspan((which * n_rows + r) * n_outputs, n_outputs);
      };
      for (const std::size_t n : {std::size_t{1}, std::min<std::size_t>(n_rows, 9)}) {
        for (const std::size_t r : {std::size_t{0}, n_rows / 2, n_rows - n}) {
          if (r + n > n_rows) continue;
          const std::vector<float> fewer = product(r, n);
          for (std::size_t i = 0; i < 2 * n; ++i) {
            EXPECT_TRUE(same_bits(std::span(fewer).subspan(i * n_outputs, n_outputs),
                                  result(i / n, r + i % n)))
                << r << ", " << n;
          }
        }
      }
      for (std::size_t r = 0; r < n_rows; ++r) {
        const auto row = as_multiplied(type, std::span(x).subspan(r * stride, n_inputs));
        for (std::size_t o = 0; o < n_outputs; ++o) {
          double sum = 0.0, terms = 0.0;
          for (std::size_t i = 0; i < n_inputs; ++i) {
            const double term = static_cast<double>(row[i]) * w.numbers[o * stride + i];
            sum += term;
            terms += std::fabs(term);
          }
          // Like relative_error in plan_oracle.h. In Q4_1, the minimum is multiplied by a sum of
          // activations, so the terms of the sum are larger than the products of the weights.
          const double spread = type == cuda::WeightType::Q4_1 ? 4.0 : 1.0;
          const double unit =
              0x1p-23 * spread * (2.0 + 0.5 * std::sqrt(static_cast<double>(n_inputs) + 1.0));
          const double sums_before[] = {bias[o], before[r * out_stride + o]};
          for (std::size_t which = 0; which < 2; ++which) {
            EXPECT_NEAR(result(which, r)[o], sum + sums_before[which],
                        unit * (terms + std::fabs(sums_before[which])))
                << static_cast<int>(type) << ", " << r << ", " << o;
          }
        }
      }
    }
  }
}

// Queries of two texts in one pass. The result of a row does not depend on the other rows, and is
// that of attention, apart from the rounding of queries and exponentials to f16.
TEST(CudaTensorCores, AttendToWhatEachRowSees) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  struct Shape {
    std::size_t n_heads, n_kv_heads, head_dim, window;
    float soft_cap;
    bool has_sinks;
  };
  for (const Shape& shape : {Shape{6, 2, 64, 0, 0.0f, false}, Shape{4, 4, 40, 9, 5.0f, true},
                             Shape{18, 1, 128, 0, 0.0f, true}}) {
    constexpr std::size_t kCapacity = 96, kRows = 75,
                          kOther = 5;  // kOther: rows of the second text
    const std::size_t n = shape.head_dim, width = shape.n_heads * n, stride = cuda::padded(width);
    const std::size_t kept = kCapacity * shape.n_kv_heads * n;
    const auto size = [](std::size_t value) { return static_cast<unsigned>(value); };
    std::vector<float> kv[2], x(kRows * stride), slopes(shape.n_heads), sinks(shape.n_heads);
    std::vector<cuda::DeviceMemory> memory;
    std::vector<cuda::SequenceSlot> slots;
    for (auto& one : kv) {
      one.resize(2 * kept);
      for (float& value : one) value = normal(random);
      memory.emplace_back(std::span<const std::uint16_t>(halves(cuda::WeightType::F16, one)));
      slots.push_back({memory.back().as<void>(), nullptr, kCapacity});
      one = rounded(cuda::WeightType::F16, one);
    }
    for (float& value : x) value = normal(random);
    for (float& value : slopes) value = 0.01f * normal(random);
    for (float& value : sinks) value = normal(random);
    std::vector<int> positions, seen, sequences;
    for (std::size_t r = 0; r < kRows; ++r) {
      sequences.push_back(r >= kRows - kOther);
      positions.push_back(
          static_cast<int>(r >= kRows - kOther ? r - (kRows - kOther) + 60 : r + 20));
      seen.push_back(positions.back() + 1);
    }
    const cuda::DeviceMemory table{std::span<const cuda::SequenceSlot>(slots)};
    const cuda::DeviceMemory device_x{std::span<const float>(x)};
    const cuda::DeviceMemory device_slopes{std::span<const float>(slopes)};
    const cuda::DeviceMemory device_sinks{std::span<const float>(sinks)};
    const cuda::DeviceMemory tables[] = {cuda::DeviceMemory(std::span<const int>(positions)),
                                         cuda::DeviceMemory(std::span<const int>(seen)),
                                         cuda::DeviceMemory(std::span<const int>(sequences))};
    const cuda::Cache cache{table.as<cuda::SequenceSlot>(), cuda::CacheType::F16,
                            size(shape.n_kv_heads), size(n), 0};
    cuda::AttentionOptions with;
    with.n_heads = size(shape.n_heads);
    with.window = size(shape.window);
    with.scale = 0.3f;
    with.soft_cap = shape.soft_cap;
    with.slopes = device_slopes.as<float>();
    with.sinks = shape.has_sinks ? device_sinks.as<float>() : nullptr;
    with.tensor_cores = true;
    const auto attend = [&](std::size_t first, std::size_t count) {
      const cuda::DeviceMemory out(count * stride * sizeof(float));
      const auto rows = [&](float* values) {
        return cuda::Rows{values, size(count), size(width), size(stride)};
      };
      cuda::attention(rows(out.as<float>()), rows(device_x.as<float>() + first * stride), cache,
                      {nullptr, tables[0].as<int>() + first, tables[1].as<int>() + first,
                       tables[2].as<int>() + first},
                      with);
      std::vector<float> all;
      for (std::size_t r = 0; r < count; ++r) {
        std::vector<float> row(width);
        cuda::download(row.data(), out.as<float>() + r * stride, 4 * width);
        all.insert(all.end(), row.begin(), row.end());
      }
      return all;
    };
    const std::vector<float> got = attend(0, kRows);
    for (const auto& [first, count] :
         {std::pair<std::size_t, std::size_t>{0, 1}, {36, 7}, {66, 9}}) {
      EXPECT_TRUE(
          same_bits(attend(first, count), std::span(got).subspan(first * width, count * width)));
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto& held = kv[sequences[r]];
      const auto position = static_cast<std::size_t>(positions[r]);
      const bool cut = shape.window != 0 && position >= shape.window;
      for (std::size_t h = 0; h < shape.n_heads; ++h) {
        const std::size_t kv_head = h / (shape.n_heads / shape.n_kv_heads);
        const auto at = [&](std::size_t which, std::size_t p) {
          return held.data() + which * kept + (p * shape.n_kv_heads + kv_head) * n;
        };
        std::vector<double> mixed(n);
        double total = shape.has_sinks ? std::exp(static_cast<double>(sinks[h])) : 0.0;
        for (std::size_t p = cut ? position - shape.window + 1 : 0; p <= position; ++p) {
          double score = 0.0;
          for (std::size_t i = 0; i < n; ++i)
            score += double{x[r * stride + h * n + i]} * at(0, p)[i];
          score *= with.scale;
          if (with.soft_cap != 0.0f) score = with.soft_cap * std::tanh(score / with.soft_cap);
          score += slopes[h] * (static_cast<double>(p) - static_cast<double>(position));
          total += std::exp(score);
          for (std::size_t i = 0; i < n; ++i) mixed[i] += std::exp(score) * at(1, p)[i];
        }
        for (std::size_t i = 0; i < n; ++i) {
          EXPECT_NEAR(got[r * width + h * n + i], mixed[i] / total, 0.01) << r << ", " << h;
        }
      }
    }
  }
}

// Rows from the fifth on do not see the first position, whose value is infinite. In a pass of few
// rows, a tile has one token. So 0 * infinity must not reach these rows.
TEST(CudaTensorCores, AnInfiniteValueDoesNotReachRowsThatDoNotSeeIt) {
  constexpr unsigned kHeadDim = 32, kCapacity = 96, kRows = 8, kWindow = 4;
  std::vector<float> kv(std::size_t{2} * kCapacity * kHeadDim, 0.5f), x(kRows * kHeadDim, 0.1f);
  kv[kCapacity * kHeadDim] = INFINITY;
  std::vector<int> positions, seen;
  for (int p = 0; p < static_cast<int>(kRows); ++p) {
    positions.push_back(p);
    seen.push_back(p + 1);
  }
  const cuda::DeviceMemory device_kv{
      std::span<const std::uint16_t>(halves(cuda::WeightType::F16, kv))};
  const cuda::DeviceMemory device_x{std::span<const float>(x)};
  const std::vector<cuda::SequenceSlot> slots{{device_kv.as<void>(), nullptr, kCapacity}};
  const cuda::DeviceMemory table{std::span<const cuda::SequenceSlot>(slots)};
  const cuda::DeviceMemory tables[] = {
      cuda::DeviceMemory(std::span<const int>(positions)),
      cuda::DeviceMemory(std::span<const int>(seen)),
      cuda::DeviceMemory(std::span<const int>(std::vector<int>(kRows)))};
  cuda::AttentionOptions with;
  with.n_heads = 1;
  with.window = kWindow;
  with.scale = 1.0f;
  for (const bool tensor_cores : {false, true}) {
    with.tensor_cores = tensor_cores;
    const cuda::DeviceMemory out(x.size() * sizeof(float));
    cuda::attention({out.as<float>(), kRows, kHeadDim, kHeadDim},
                    {device_x.as<float>(), kRows, kHeadDim, kHeadDim},
                    {table.as<cuda::SequenceSlot>(), cuda::CacheType::F16, 1, kHeadDim, 0},
                    {nullptr, tables[0].as<int>(), tables[1].as<int>(), tables[2].as<int>()}, with);
    std::vector<float> got(x.size());
    cuda::download(got.data(), out.as<float>(), got.size() * sizeof(float));
    for (unsigned r = 0; r < kRows; ++r) {
      const float expected = r < kWindow ? INFINITY : 0.5f;
      EXPECT_EQ(got[r * kHeadDim], expected) << tensor_cores << ", " << r;
      EXPECT_EQ(got[r * kHeadDim + 1], 0.5f) << tensor_cores << ", " << r;
    }
  }
}

TEST(CudaTensorCores, AreForLargeModels) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "case.gguf";
  std::size_t n_used = 0;
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q8_0}) {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < 4; ++i) {
      ConformanceCase one = make_case("linear", dtype, i, random, file);
      one.tokens.resize(std::min<std::size_t>(one.tokens.size(), 20));
      const Checkpoint checkpoint = Checkpoint::open(file);
      for (const std::size_t bytes : {kLargeModelBytes, std::size_t{0}}) {
        cuda::tensor_core_bytes() = bytes;
        const cuda::DeviceWeights weights(one.plan, checkpoint);
        for (std::size_t id = 0; id < one.plan.weights.size(); ++id) {
          const Weight& weight = one.plan.weights[id];
          if (!weight.is_matrix()) continue;
          const DType stored = checkpoint.find(weight.name)->dtype;
          const bool fits = stored != DType::F32 && !weight.exact;
          EXPECT_EQ(weights.matrix(static_cast<WeightId>(id)).tensor_cores, bytes == 0 && fits);
          n_used += bytes == 0 && fits;
        }
      }
      const auto backend = make_cuda_backend(one.plan, checkpoint, KvType::F32);
      const auto all = backend->make_sequence(one.tokens.size(), 0);
      const auto again = backend->make_sequence(one.tokens.size(), 0);
      const auto run = [&](Sequence& sequence) {
        return in_cuts(one, random, [&](std::span<const TokenId> tokens, auto logits) {
          const Input scored{&sequence, tokens, tokens.size()};
          backend->forward({&scored, 1}, logits);
        });
      };
      EXPECT_TRUE(same_bits(run(*all), run(*again))) << one.shape;
      cuda::tensor_core_bytes() = kLargeModelBytes;
    }
  }
  EXPECT_GT(n_used, 0u);
}

// A plan of no real architecture: rows of 40 numbers, three tokens, random weights in f32 or f16.
class SmallPlan {
 public:
  SmallPlan() {
    plan.model_type = "small";
    plan.vocab_size = kWidth;
    plan.max_seq_len = 16;
    x = w.buffer("x", kWidth);
    w.step("embedding", EmbedStep{x, w.weight({"table", {kWidth, kWidth}})});
  }

  BufferId buffer(const char* name, std::size_t width = kWidth) { return w.buffer(name, width); }
  void linear(BufferId out, BufferId in, const std::string& name, bool is_f16 = false) {
    const std::size_t outputs = plan.buffer(out).width, inputs = plan.buffer(in).width;
    w.step(name, LinearStep{out, in, w.weight({name, {outputs, inputs}})});
    if (is_f16) in_f16_.push_back(name);
  }
  // Ends the plan: the logits are a product with y.
  void show(BufferId y) {
    w.step("", SelectStep{y});
    plan.logits = buffer("logits");
    linear(plan.logits, y, "head");
  }

  // The largest difference between the backend's logits and those of the formulas, divided by the
  // largest logit.
  double error(std::size_t tensor_core_bytes) const {
    const Checkpoint checkpoint = write();
    const std::vector<TokenId> tokens = {1, 2, 3};
    cuda::tensor_core_bytes() = tensor_core_bytes;
    const auto backend = make_cuda_backend(plan, checkpoint, KvType::F32);
    cuda::tensor_core_bytes() = kLargeModelBytes;
    const auto sequence = backend->make_sequence(tokens.size(), 0);
    Matrix<float> logits(tokens.size(), kWidth);
    const Input input{sequence.get(), tokens, tokens.size()};
    backend->forward({&input, 1}, logits.view());
    const auto expected = run_oracle(plan, load_weights(plan, checkpoint), tokens).logits;
    double largest = 0.0, error = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::fabs(expected[i]));
      error = std::max(error, std::fabs(logits.data()[i] - expected[i]));
    }
    return error / largest;
  }

  Checkpoint write() const {
    const fs::path file = folder_.path() / "small.gguf";
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    GgufWriter writer;
    writer.add("general.architecture", "small");
    std::string data;
    for (const Weight& weight : plan.weights) {
      const bool is_f16 = std::ranges::find(in_f16_, weight.name) != in_f16_.end();
      std::vector<float> numbers(weight.elements());
      for (float& number : numbers) number = uniform(random);
      const std::vector<std::uint16_t> bits = halves(cuda::WeightType::F16, numbers);
      const auto bytes =
          is_f16 ? std::as_bytes(std::span(bits)) : std::as_bytes(std::span(numbers));
      writer.add_tensor(weight.name, is_f16 ? DType::F16 : DType::F32, weight.shape);
      data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      data += GgufWriter::padding(data.size());
    }
    std::ofstream(file, std::ios::binary) << writer.header() << data;
    return Checkpoint::open(file);
  }

  static constexpr std::size_t kWidth = 40;
  Plan plan;
  PlanWriter w{plan};
  BufferId x;

 private:
  TemporaryFolder folder_;
  std::vector<std::string> in_f16_;
};

// a = A x, b = B x, a += b. The two products must not be one launch, because both write a. The
// checker would find a race.
TEST(CudaPlans, ASumIsTheOnlyProductOfItsLaunch) {
  SmallPlan one;
  const BufferId a = one.buffer("a"), b = one.buffer("b");
  one.linear(a, one.x, "A");
  one.linear(b, one.x, "B");
  one.w.step("sum", AddStep{a, b});
  one.show(a);
  EXPECT_LE(one.error(kLargeModelBytes), 1e-5);
}

// Both products with n must round n, because a product in f32 writes n between them.
TEST(CudaPlans, RowsThatAProductWritesAreRoundedAgain) {
  SmallPlan one;
  const BufferId n = one.buffer("n"), y = one.buffer("y"), z = one.buffer("z");
  one.linear(n, one.x, "N");
  one.linear(y, n, "Y", true);
  one.linear(n, one.x, "M");
  one.linear(z, n, "Z", true);
  one.w.step("sum", AddStep{z, y});
  one.show(z);
  EXPECT_LE(one.error(0), 0.01);
}

// The kernel reads the last four numbers of a row of `up`. It must read nothing behind them.
TEST(CudaPlans, AnActivationWithColumnsUpToTheEndOfARow) {
  SmallPlan one;
  const BufferId gate = one.buffer("gate", 4), up = one.buffer("up", 32), y = one.buffer("y");
  one.linear(gate, one.x, "gate");
  one.linear(up, one.x, "up");
  one.w.step("activation", ActivateStep{gate, gate, up, ActivateStep::Function::Silu, 28});
  one.linear(y, gate, "y", true);
  one.show(y);
  EXPECT_LE(one.error(0), 0.01);
}

// A sigmoid below 1 / FLT_MAX is 0. If all chosen routing weights are 0, so is their sum: no
// division by it.
TEST(CudaPlans, SharesThatAreAllZeroStayZero) {
  SmallPlan one;
  const BufferId r = one.buffer("r");
  one.linear(r, one.x, "router");
  one.w.step("", ActivateStep{r, r, kNone, ActivateStep::Function::Sigmoid});
  one.w.step("", MapStep{r, -1000.0f});
  one.w.step("routing_weights", RouteStep{r, 2, true, RouteStep::Score::Sigmoid});
  one.w.step("sum", AddStep{one.x, r});
  one.show(one.x);
  const Checkpoint checkpoint = one.write();
  const std::vector<TokenId> tokens = {1, 2, 3};
  std::vector<std::vector<float>> scores;
  for (const auto& backend : {make_cuda_backend(one.plan, checkpoint, KvType::F32),
                              make_walking_backend(one.plan, checkpoint, 1)}) {
    const auto sequence = backend->make_sequence(tokens.size(), 0);
    Matrix<float> logits(tokens.size(), SmallPlan::kWidth);
    const Input input{sequence.get(), tokens, tokens.size()};
    backend->forward({&input, 1}, logits.view());
    scores.emplace_back(logits.data(), logits.data() + logits.rows() * logits.cols());
  }
  for (std::size_t i = 0; i < scores[0].size(); ++i) {
    EXPECT_NEAR(scores[0][i], scores[1][i], 1e-4f) << i;  // NaN is near nothing
  }
}

TEST(CudaBytes, CountAllThatAPassAllocates) {
  SmallPlan one;
  const BufferId r = one.buffer("r", 3), y = one.buffer("y");
  one.linear(r, one.x, "router");
  one.w.step("routing_weights", RouteStep{r, 2});
  ExpertsStep experts{y, one.x, r, {}};
  for (const char* name : {"0", "1", "2"}) {
    const auto weight = [&](const char* part, std::size_t outputs, std::size_t inputs) {
      return one.w.weight({std::string(name) + part, {outputs, inputs}});
    };
    experts.experts.push_back(
        {weight("gate", 33, 40), weight("up", 33, 40), weight("down", 40, 33)});
  }
  one.w.step("experts", experts);
  one.show(y);
  const std::size_t buffers = 64 + 32 + 64 + 64, selected = 64;  // x, r, y and logits
  const std::size_t experts_of_row = 2 * (64 + 64 + 64) + 2;     // gate, up and down; chosen
  const std::size_t halves = 64 / 2 + 1 + 2;                     // halves; a power; sums
  const std::size_t tables = 7 + 1;                              // tables; the likeliest token
  const SequenceBytes bytes = cuda_bytes(one.plan, KvType::F32, 5);
  EXPECT_EQ(bytes.cache, 0.0);
  EXPECT_EQ(bytes.workspace,
            4.0 * 5.0 * static_cast<double>(buffers + selected + experts_of_row + halves + tables));
}

// sequence_bytes() counts only memory of the host. What is on a GPU does not count; what is on the
// emulator does.
TEST(CudaBytes, OfASequenceAreThoseOfTheHost) {
  const Plan plan = describe_model(ModelSource(fs::path(TEST_DATA "/models/llama-gqa2"))).plan;
  const SequenceBytes on_gpu = cuda_bytes(plan, KvType::F16, 100);
  const bool is_emulated = cuda_backend_name() == "cuda-emulator";
  const auto bytes_of = [&](std::size_t layers) {
    return sequence_bytes(plan, {BackendKind::Cuda, 1, KvType::F16, layers}, 100);
  };
  EXPECT_EQ(bytes_of(plan.n_layers).cache, is_emulated ? on_gpu.cache : 0.0);
  EXPECT_EQ(bytes_of(plan.n_layers).workspace, is_emulated ? on_gpu.workspace : 0.0);
  const EngineOptions cpu{BackendKind::Cpu, 1, KvType::F16};
  EXPECT_EQ(bytes_of(0).cache, sequence_bytes(plan, cpu, 100).cache);
  const SplitPlan parts = split_plan(plan, 1);
  EXPECT_EQ(bytes_of(1).cache,
            sequence_bytes(parts.front, cpu, 100).cache +
                (is_emulated ? cuda_bytes(parts.back, KvType::F16, 100).cache : 0.0));
}

class CudaReference : public testing::TestWithParam<std::string> {};

// Models of a family are split and multiplied alike, and checked kernels are slow: some tests run
// one model per family.
bool is_first_of_family(const std::string& model) {
  const auto family = [](const std::string& name) { return name.substr(0, name.find('-')); };
  const std::vector<std::string> names = tiny_model_names();
  return *std::ranges::find(names, family(model), family) == model;
}

void expect_agreement_with_pytorch(const std::string& model, const EngineOptions& options) {
  const fs::path folder = fs::path(TEST_DATA "/models") / model;
  const TraceFile oracle(folder / "trace.safetensors");
  const std::vector<TokenId> ids = ids_of(oracle);
  const nlohmann::json tolerances = nlohmann::json::parse(oracle.metadata().at("tolerance"));
  Engine engine = Engine::open(folder, options);

  const std::vector<float> whole = in_passes(engine, ids, {ids.size()});
  const StoredTensor& expected = oracle.tensor("logits");
  const StoredTensor got{"logits", DType::F32, expected.shape, std::as_bytes(std::span(whole))};
  const Comparison result =
      compare_tensors(expected, got, {0.0, tolerances.at("logits").get<double>()});
  EXPECT_EQ(result.nan_a + result.nan_b, 0u);
  EXPECT_EQ(result.differing, 0u);
}

TEST_P(CudaReference, LogitsAgreeWithPyTorch) {
  expect_agreement_with_pytorch(GetParam(), options());
}

// The last half of the layers runs on the CUDA backend, the other layers on the CPU backend.
TEST_P(CudaReference, LogitsOfHalfOfTheLayersAgreeWithPyTorch) {
  if (!is_first_of_family(GetParam())) GTEST_SKIP() << "tested with another of its family";
  const Plan plan = describe_model(ModelSource(fs::path(TEST_DATA "/models") / GetParam())).plan;
  const std::size_t half = plan.n_layers / 2;
  if (half == 0) GTEST_SKIP() << "one layer";
  if (!can_split(plan, half)) GTEST_SKIP() << "its layers share more than the residual stream";
  EngineOptions some = options();
  some.gpu_layers = half;
  expect_agreement_with_pytorch(GetParam(), some);
}

// With tensor cores, activations are rounded to f16, or to bf16 if the weights are bf16. A text
// that is cut into passes has the same bits as in one pass.
void expect_nearly_pytorch_with_tensor_cores(const fs::path& folder) {
  const TraceFile oracle(folder / "trace.safetensors");
  const std::vector<TokenId> ids = ids_of(oracle);
  cuda::tensor_core_bytes() = 0;
  Engine engine = Engine::open(folder, options(KvType::F16));
  cuda::tensor_core_bytes() = kLargeModelBytes;
  const auto whole = in_passes(engine, ids, {ids.size()});
  const std::size_t first = std::max<std::size_t>(1, first_pass(engine.plan(), ids));
  std::vector<std::size_t> passes = {first};
  if (first < ids.size()) passes.push_back(1);
  if (first + 1 < ids.size()) passes.push_back(ids.size() - first - 1);
  EXPECT_TRUE(same_bits(in_passes(engine, ids, passes), whole));

  const StoredTensor& logits = oracle.tensor("logits");
  ASSERT_EQ(logits.dtype, DType::F64);
  std::vector<double> expected(whole.size());
  ASSERT_EQ(logits.bytes.size(), expected.size() * sizeof(double));
  std::memcpy(expected.data(), logits.bytes.data(), logits.bytes.size());
  double squares = 0.0, errors = 0.0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    squares += expected[i] * expected[i];
    errors += (whole[i] - expected[i]) * (whole[i] - expected[i]);
  }
  EXPECT_LE(std::sqrt(errors / squares), 0.02);
}

TEST_P(CudaReference, LogitsWithTensorCoresAreNearlyThoseOfPyTorch) {
  if (!is_first_of_family(GetParam())) GTEST_SKIP() << "tested with another of its family";
  expect_nearly_pytorch_with_tensor_cores(fs::path(TEST_DATA "/models") / GetParam());
}

// The weights of gate are bf16, those of up f16. Both read the same rows, which are rounded for
// each.
TEST(CudaTensorCores, RoundRowsForEachTypeThatReadsThem) {
  const TemporaryFolder folder;
  fs::copy(TEST_DATA "/models/llama-mixed-dtypes", folder.path(), fs::copy_options::recursive);
  const fs::path path = folder.path() / "model.safetensors";
  std::ifstream in(path, std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), {}};
  in.close();
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  auto header = nlohmann::json::parse(file.substr(8, size));
  for (auto& [name, tensor] : header.items()) {
    if (name.find("up_proj") == std::string::npos) continue;
    ASSERT_EQ(tensor["dtype"], "BF16");
    tensor["dtype"] = "F16";
    const auto first = tensor["data_offsets"][0].get<std::size_t>();
    const auto last = tensor["data_offsets"][1].get<std::size_t>();
    std::vector<std::uint16_t> bits((last - first) / 2);
    std::memcpy(bits.data(), &file[8 + size + first], last - first);
    std::vector<float> numbers(bits.size());
    bf16_to_f32(bits, numbers);
    f32_to_f16(numbers, bits);
    std::memcpy(&file[8 + size + first], bits.data(), last - first);
  }
  std::string text = header.dump();
  ASSERT_LE(text.size(), size);
  text.resize(size, ' ');
  std::ofstream(path, std::ios::binary) << file.replace(8, size, text);
  expect_nearly_pytorch_with_tensor_cores(folder.path());
}

INSTANTIATE_TEST_SUITE_P(EveryModel, CudaReference, testing::ValuesIn(tiny_model_names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

constexpr const char* kModel = TEST_DATA "/models/llama-gqa2";
const std::vector<TokenId> kText = {1, 5, 9, 2, 33, 7, 12};

// The last three rows of logits of kText, in a pass of two texts: `a` already has four tokens and
// gets the fifth; `b` is new and gets all tokens, the last two of which are scored.
Matrix<float> unequal_lengths_in_a_pass(Engine& engine, Sequence& a, Sequence& b) {
  const std::span<const TokenId> text(kText);
  Matrix<float> none(0, 65), logits(3, 65);
  const Input begin{&a, text.first(4), 0};
  engine.forward({&begin, 1}, none.view());
  const Input both[] = {{&a, text.subspan(4, 1), 1}, {&b, text, 2}};
  engine.forward(both, logits.view());
  return logits;
}

TEST(CudaBackend, SequencesOfUnequalLengthsShareAPass) {
  for (const KvType type : {KvType::F32, KvType::F16, KvType::Q8_0}) {
    Engine engine = Engine::open(kModel, options(type));
    const std::span<const TokenId> text(kText);
    const auto alone = in_passes(engine, text, {text.size()});
    const auto a = engine.make_sequence(8), b = engine.make_sequence(16);
    const Matrix<float> logits = unequal_lengths_in_a_pass(engine, *a, *b);
    const std::span<const float> expected(alone);
    EXPECT_TRUE(same_bits(logits.view().row(0), expected.subspan(4 * 65, 65)));
    EXPECT_TRUE(same_bits(logits.view().row(1), expected.subspan(5 * 65, 65)));
    EXPECT_TRUE(same_bits(logits.view().row(2), expected.subspan(6 * 65, 65)));
  }
}

TEST(CudaBackend, ASequenceIsCutAndCopied) {
  Engine engine = Engine::open(kModel, options());
  const std::span<const TokenId> text(kText);
  const auto expected = in_passes(engine, text, {text.size()});
  const auto a = engine.make_sequence(8), b = engine.make_sequence(32);
  Matrix<float> logits(7, 65), last(2, 65);
  const Input whole{a.get(), text, 7};
  engine.forward({&whole, 1}, logits.view());
  ASSERT_TRUE(b->copy(*a, 5));
  EXPECT_EQ(a->truncate(5), 5u);
  for (Sequence* one : {a.get(), b.get()}) {
    const Input rest{one, text.subspan(5), 2};
    engine.forward({&rest, 1}, last.view());
    EXPECT_TRUE(same_bits(last.view().row(1), std::span(expected).subspan(6 * 65, 65)));
  }
  EXPECT_FALSE(b->copy(*a, 8));
}

// Each token overwrites the states, so only the states after the last token are known.
TEST(CudaBackend, StatesBelongToTheirSequenceAndAreCopiedWhole) {
  for (const char* name : {"lfm2-biases", "qwen3_5-long-keys"}) {
    Engine engine = Engine::open(fs::path(TEST_DATA "/models") / name, options());
    const std::size_t n_ids = engine.plan().vocab_size;
    const std::span<const TokenId> text(kText);
    const auto expected = in_passes(engine, text, {text.size()});
    const auto a = engine.make_sequence(8), b = engine.make_sequence(16);
    const auto row = [&](std::size_t i) { return std::span(expected).subspan(i * n_ids, n_ids); };
    Matrix<float> none(0, n_ids), logits(2, n_ids), last(1, n_ids);
    const Input begin{a.get(), text.first(4), 0};
    engine.forward({&begin, 1}, none.view());
    const Input both[] = {{a.get(), text.subspan(4, 2), 1}, {b.get(), text.first(5), 1}};
    engine.forward(both, logits.view());
    EXPECT_TRUE(same_bits(logits.view().row(0), row(5))) << name;
    EXPECT_TRUE(same_bits(logits.view().row(1), row(4))) << name;

    EXPECT_FALSE(b->copy(*a, 5)) << name;
    ASSERT_TRUE(b->copy(*a, 6)) << name;
    const Input rest{b.get(), text.subspan(6), 1};
    engine.forward({&rest, 1}, last.view());
    EXPECT_TRUE(same_bits(last.view().row(0), row(6))) << name;
    EXPECT_EQ(b->truncate(6), 0u) << name;
    const Input again{b.get(), text, 1};
    engine.forward({&again, 1}, last.view());
    EXPECT_TRUE(same_bits(last.view().row(0), row(6))) << name;
  }
}

// Appends the likeliest token, n times.
std::vector<TokenId> greedy(Engine& engine, std::vector<TokenId> text, std::size_t n) {
  const auto sequence = engine.make_sequence(text.size() + n);
  Matrix<float> logits(1, engine.plan().vocab_size);
  while (n-- > 0) {
    const Input rest{sequence.get(), std::span(text).subspan(sequence->length()), 1};
    engine.forward({&rest, 1}, logits.view());
    const auto row = logits.view().row(0);
    text.push_back(static_cast<TokenId>(std::ranges::max_element(row) - row.begin()));
  }
  return text;
}

TEST(CudaBackend, TellsTheStoryThatTheCpuTells) {
  const fs::path story = REPOSITORY "/models/story";
  if (!fs::exists(story / "config.json")) GTEST_SKIP() << "no models/story";
  Engine cuda = Engine::open(story, options()),
         cpu = Engine::open(story, {BackendKind::Cpu, 0, KvType::F32});
  const std::vector<TokenId> prompt = {440, 345};
  EXPECT_EQ(greedy(cuda, prompt, 2), greedy(cpu, prompt, 2));
}

EngineOptions gpu_layers(std::size_t n, KvType kv_type = KvType::F32) {
  return {BackendKind::Cuda, 1, kv_type, n};
}

// A model with states, and a model with experts.
TEST(CudaLayers, SomeOfThemWriteTheTextOfAllOfThem) {
  for (const char* name : {"qwen3_5-interval", "mixtral-2-of-5"}) {
    const fs::path model = fs::path(TEST_DATA "/models") / name;
    for (const KvType type : {KvType::F16, KvType::Q8_0}) {
      Engine cpu = Engine::open(model, {BackendKind::Cpu, 1, type});
      const std::vector<TokenId> prompt = {1, 5, 9, 2}, expected = greedy(cpu, prompt, 4);
      for (std::size_t n = 0; n <= cpu.plan().n_layers; ++n) {
        Engine some = Engine::open(model, gpu_layers(n, type));
        EXPECT_EQ(greedy(some, prompt, 4), expected) << name << ", " << n << " layers";
      }
    }
  }
}

TEST(CudaLayers, SequencesOfUnequalLengthsShareAPassAndAreCutAndCopied) {
  Engine engine = Engine::open(kModel, gpu_layers(1));
  const std::span<const TokenId> text(kText);
  const auto expected = in_passes(engine, text, {text.size()});
  const auto row = [&](std::size_t i) { return std::span(expected).subspan(i * 65, 65); };
  const auto a = engine.make_sequence(8), b = engine.make_sequence(16);
  Matrix<float> logits = unequal_lengths_in_a_pass(engine, *a, *b);
  EXPECT_TRUE(same_bits(logits.view().row(0), row(4)));
  EXPECT_TRUE(same_bits(logits.view().row(1), row(5)));
  EXPECT_TRUE(same_bits(logits.view().row(2), row(6)));
  ASSERT_TRUE(a->copy(*b, 6));
  EXPECT_EQ(b->truncate(5), 5u);
  const Input rest[] = {{b.get(), text.subspan(5), 1}, {a.get(), text.subspan(6), 1}};
  TokenId tokens[2];
  engine.forward_greedy(rest, logits.top_rows(2), tokens);
  for (const TokenId token : tokens) {
    EXPECT_EQ(token, std::ranges::max_element(row(6)) - row(6).begin());
  }
}

// The CPU's rows are uploaded again for each pass, also if the pass repeats a record.
TEST(CudaLayers, ARepeatedPassReadsTheNewRows) {
  Engine engine = Engine::open(kModel, gpu_layers(1));
  const auto whole = in_passes(engine, kText, {7});
  const std::size_t before = cuda::n_repeated_passes();
  EXPECT_TRUE(same_bits(in_passes(engine, kText, {1, 1, 1, 1, 1, 1, 1}), whole));
  EXPECT_EQ(cuda::n_repeated_passes() - before, 6u);
}

// The token that sample() chooses with temperature 0; -1 if it throws.
TokenId sampled(std::span<const float> logits) {
  std::vector<TokenProbability> scratch(logits.size());
  try {
    return sample(logits, {0.0f, 0, 1.0f}, 0.0f, scratch);
  } catch (const Error&) {
    return -1;
  }
}

TEST(CudaBackend, ChoosesTheTokenThatTheSamplerChooses) {
  std::mt19937 random(1);
  for (const std::size_t width : {1u, 2u, 31u, 65u, 513u, 1600u}) {
    std::vector<std::vector<float>> rows(1, std::vector<float>(width, -INFINITY));  // none
    rows.emplace_back(width, 0.0f);  // all are equal: the first is chosen
    rows.back().front() = -0.0f;     // is equal to 0, too
    rows.emplace_back(width, -1e30f);
    for (int more = 0; more < 6; ++more) {  // only 4 values, so that many are equal
      rows.emplace_back(width);
      for (float& value : rows.back()) value = static_cast<float>(random() % 4) - 6.0f;
    }
    const auto with = [&](std::size_t at, float value) {
      rows.push_back(rows[3]);
      rows.back()[at] = value;
    };
    with(width - 1, 9.0f);
    with(width / 2, -INFINITY);
    with(width - 1, INFINITY);
    with(width / 2, NAN);
    with(0, -NAN);
    const std::size_t stride = cuda::padded(width);
    std::vector<float> all(rows.size() * stride, 100.0f);  // 100 behind each row: must not be read
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::ranges::copy(rows[r], all.begin() + static_cast<std::ptrdiff_t>(r * stride));
    }
    const cuda::DeviceMemory logits{std::span<const float>(all)};
    const cuda::DeviceMemory chosen(rows.size() * sizeof(int));
    cuda::likeliest({logits.as<float>(), static_cast<unsigned>(rows.size()),
                     static_cast<unsigned>(width), static_cast<unsigned>(stride)},
                    chosen.as<int>());
    std::vector<int> found(rows.size());
    cuda::download(found.data(), chosen.as<int>(), found.size() * sizeof(int));
    for (std::size_t r = 0; r < rows.size(); ++r) {
      EXPECT_EQ(found[r], sampled(rows[r])) << width << ", row " << r;
    }
  }
}

// A repeated pass does so, too. A pass that brings logits is of another kind.
TEST(CudaBackend, BringsTokensAndNoLogits) {
  Engine engine = Engine::open(kModel, options());
  const std::vector<float> expected = in_passes(engine, kText, {7});
  const auto sequence = engine.make_sequence(8);
  const std::span<const TokenId> text(kText);
  const std::size_t before = cuda::n_repeated_passes();
  for (std::size_t i = 0; i < text.size(); ++i) {
    Matrix<float> logits(1, 65);
    std::ranges::fill(logits.view().row(0), 7.0f);
    TokenId token = -1;
    const Input next{sequence.get(), text.subspan(i, 1), 1};
    const auto row = std::span(expected).subspan(i * 65, 65);
    if (i == 3) {
      engine.forward({&next, 1}, logits.view());
      EXPECT_TRUE(same_bits(logits.view().row(0), row));
      continue;
    }
    engine.forward_greedy({&next, 1}, logits.view(), {&token, 1});
    EXPECT_EQ(token, sampled(row)) << i;
    EXPECT_EQ(std::ranges::count(logits.view().row(0), 7.0f), 65) << i;
  }
  EXPECT_EQ(cuda::n_repeated_passes() - before, 5u);  // all but the first pass of each kind

  const auto a = engine.make_sequence(16), b = engine.make_sequence(16);
  const Input both[] = {{a.get(), text, 2}, {b.get(), text.first(3), 1}};
  Matrix<float> logits(3, 65);
  std::vector<TokenId> tokens(3, -1);
  engine.forward_greedy(both, logits.view(), tokens);
  for (std::size_t r = 0; r < 3; ++r) {
    const std::size_t at = std::array<std::size_t, 3>{5, 6, 2}[r];
    EXPECT_EQ(tokens[r], sampled(std::span(expected).subspan(at * 65, 65))) << r;
  }
}

// If no token can be chosen, the sampler gets the logits, and reports what is wrong with them.
TEST(CudaBackend, BringsLogitsThatAreNaN) {
  const TemporaryFolder folder;
  fs::copy(kModel, folder.path(), fs::copy_options::recursive);
  const fs::path file = folder.path() / "model.safetensors";
  std::string bytes = read_text_file(file, std::size_t{1} << 24);
  {
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    const auto norm = checkpoint.find("model.norm.weight")->bytes;
    const std::string_view weight(reinterpret_cast<const char*>(norm.data()), norm.size());
    const std::size_t at = bytes.find(weight);
    ASSERT_NE(at, std::string::npos);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4, char(0xff));
  }
  std::ofstream(file, std::ios::binary) << bytes;
  Engine engine = Engine::open(folder.path(), options());
  const auto sequence = engine.make_sequence(8);
  Matrix<float> logits(1, 65);
  TokenId token = 3;
  const Input whole{sequence.get(), kText, 1};
  engine.forward_greedy({&whole, 1}, logits.view(), {&token, 1});
  EXPECT_EQ(token, -1);
  EXPECT_TRUE(std::isnan(logits.view().row(0)[0]));
}

TEST(CudaBackend, HalvesInTheCacheAreNearlyTheSame) {
  Engine exact = Engine::open(kModel, options()),
         halves = Engine::open(kModel, options(KvType::F16));
  const auto a = in_passes(exact, kText, {7}), b = in_passes(halves, kText, {7});
  EXPECT_FALSE(same_bits(a, b));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.01f);
}

// Passes with the same numbers of rows are recorded once and then repeated.
TEST(CudaBackend, ARepeatedPassHasTheBitsOfOneThatWasLaunched) {
  for (const KvType type : {KvType::F32, KvType::Q8_0}) {
    Engine engine = Engine::open(kModel, options(type));
    const auto whole = in_passes(engine, kText, {7});
    std::size_t before = cuda::n_repeated_passes();
    const auto alone = in_passes(engine, kText, {1, 1, 1, 1, 1, 1, 1});
    EXPECT_EQ(cuda::n_repeated_passes() - before, 6u);  // all but the first
    EXPECT_TRUE(same_bits(alone, whole));

    // A new sequence moves the table of slots, and maybe the workspace, so the records are
    // forgotten.
    before = cuda::n_repeated_passes();
    EXPECT_TRUE(same_bits(in_passes(engine, kText, {2, 1, 2, 1, 1}), whole));
    EXPECT_EQ(cuda::n_repeated_passes() - before, 3u);

    // The same number of rows, for other sequences and positions: a record must not contain these.
    const auto a = engine.make_sequence(8), b = engine.make_sequence(8);
    const std::span<const TokenId> text(kText);
    Matrix<float> logits(1, 65);
    before = cuda::n_repeated_passes();
    for (std::size_t i = 0; i < text.size(); ++i) {
      for (Sequence* sequence : {a.get(), b.get()}) {
        const Input next{sequence, text.subspan(i, 1), 1};
        engine.forward({&next, 1}, logits.view());
        EXPECT_TRUE(
            same_bits(logits.view().row(0), std::span<const float>(whole).subspan(i * 65, 65)));
      }
    }
    EXPECT_EQ(cuda::n_repeated_passes() - before, 13u);
  }
}

TEST(CudaBackend, GoesOnWithoutMemoryForRecords) {
  if (cuda_backend_name() != "cuda-emulator") GTEST_SKIP() << "a GPU has the memory";
  Engine engine = Engine::open(kModel, options(KvType::F32));
  const auto whole = in_passes(engine, kText, {7});
  ::setenv("CUDA_EMULATOR_NO_GRAPHS", "1", 1);
  const std::size_t before = cuda::n_repeated_passes();
  const auto sequence = engine.make_sequence(8);
  Matrix<float> logits(1, 65);
  for (std::size_t i = 0; i < 6; i += 2) {  // the second pass of a kind is the one to be recorded
    const Input next{sequence.get(), std::span(kText).subspan(i, 2), 1};
    engine.forward({&next, 1}, logits.view());
    const auto expected = std::span<const float>(whole).subspan((i + 1) * 65, 65);
    EXPECT_TRUE(same_bits(logits.view().row(0), expected)) << i;
  }
  EXPECT_EQ(cuda::n_repeated_passes(), before);
  ::unsetenv("CUDA_EMULATOR_NO_GRAPHS");
}

// The failed launch would be missing in the record.
TEST(CudaBackend, DoesNotRepeatAPassInWhichALaunchFailed) {
  cuda::Recorder recorder;
  std::size_t n = 0;
  // To record a stream that is being recorded fails. CUDA keeps the error, as after a failed
  // launch.
  const auto launch = [&] {
    if (n++ == 0) return;
    EXPECT_NE(error_of([] { cuda::begin_record(cuda::current_stream()); }), "");
  };
  EXPECT_FALSE(recorder.run({1, 1, false}, launch));
  const std::string error = error_of([&] { recorder.run({1, 1, false}, launch); });
  EXPECT_EQ(error.find(fmt::format("{}: launch of a kernel: ", cuda_backend_name())), 0u) << error;
  EXPECT_EQ(cuda::current_stream(), nullptr);
  cuda::finish();  // does not throw: the error was cleared
}

TEST(CudaBackend, RefusesWhatItCannotDoAndStaysAsItWas) {
  Engine engine = Engine::open(kModel, options());
  const auto a = engine.make_sequence(8), b = engine.make_sequence(8);
  const std::vector<TokenId> wrong = {65}, long_text(9, 1);
  Matrix<float> logits(2, 65);
  const Input refused[] = {{a.get(), kText, 1}, {b.get(), wrong, 1}};
  EXPECT_EQ(error_of([&] { engine.forward(refused, logits.view()); }),
            "forward: token id: expected 0 to 64, found 65");
  const Input too_long{a.get(), long_text, 1};
  EXPECT_EQ(error_of([&] {
              engine.forward({&too_long, 1}, logits.top_rows(1));
            }),
            "forward: expected at most 8 more tokens in the context, found 9");
  EXPECT_EQ(a->length(), 0u);
}

TEST(CudaLayers, AreRefusedWhereTheModelCannotBeSplit) {
  const auto refusal = [](const char* name, std::size_t n) {
    return error_of([&] { Engine::open(fs::path(TEST_DATA "/models") / name, gpu_layers(n)); });
  };
  EXPECT_EQ(refusal("llama-gqa2", 3),
            "GPU layers: expected at most 2 (the model's layers), found 3");
  EXPECT_EQ(refusal("gemma4-shared-caches", 2),
            "GPU layers: expected one of 0, 5, found 2: at another layer, the two parts of the "
            "model would share more than the residual stream");
  EXPECT_EQ(refusal("gemma4-shared-caches", 0), "");
}

TEST(CudaBackend, SaysHowMuchMemoryIsMissing) {
  const std::string error = error_of([] { cuda::allocate(std::size_t{1} << 50); });
  const std::string begin = fmt::format(
      "{}: memory of the GPU: expected 1125899.91 GB more, found ", cuda_backend_name());
  EXPECT_EQ(error.find(begin), 0u) << error;
  EXPECT_EQ(error.substr(error.size() - 8), " GB free");
  // The error was cleared: the next pass is computed.
  Engine engine = Engine::open(kModel, options());
  EXPECT_EQ(in_passes(engine, kText, {7}).size(), 7u * 65);
}

TEST(CudaBackend, RefusesAGpuThatIsTooOld) {
  EXPECT_EQ(error_of([] {
              cuda::check_capability({7, 5});
            }),
            fmt::format("{}: GPU: expected compute capability 8.0 or higher, found 7.5",
                        cuda_backend_name()));
  EXPECT_EQ(error_of([] { cuda::check_capability({8, 0}); }), "");
  EXPECT_EQ(error_of([] { cuda::check_capability({12, 1}); }), "");
}

}  // namespace
}  // namespace stagecraft
