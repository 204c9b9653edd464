// Steps 3 and 4 of stage 10, compiled with its flags. Step 5 is src/operators/q8_0.cpp. The call
// "nothing" measures the time that a worker spends on everything else.
#include <algorithm>
#include <bit>

#include "course/worker/calls.h"
#include "course/worker/chain.h"
#include "operators/half_to_float.h"
#include "operators/q8_0.h"

namespace stagecraft::stages {
namespace {

float by_call(std::uint16_t bits) {
  float value = 0.0f;
  f16_to_f32({&bits, 1}, {&value, 1});
  return value;
}

// Right for every finite f16.
float by_bits(std::uint16_t bits) {
  const float size = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  return (bits & 0x8000u) != 0 ? -size : size;
}

template <float (*kScale)(std::uint16_t)>
float dot(std::span<const BlockQ8_0> a, std::span<const BlockQ8_0> b) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    int whole = 0;
    for (std::size_t j = 0; j < BlockQ8_0::kSize; ++j) whole += a[i].q[j] * b[i].q[j];
    sum += kScale(a[i].scale) * kScale(b[i].scale) * static_cast<float>(whole);
  }
  return sum;
}

std::vector<BlockQ8_0> weight(Arguments& args) {
  const auto scales = args.vector("b scales");
  const auto q = args.vector("b q");
  std::vector<BlockQ8_0> blocks(scales.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].scale = static_cast<std::uint16_t>(scales[i]);
    std::transform(q.begin() + i * BlockQ8_0::kSize, q.begin() + (i + 1) * BlockQ8_0::kSize,
                   blocks[i].q, [](float number) { return static_cast<std::int8_t>(number); });
  }
  return blocks;
}

template <float (*kScale)(std::uint16_t)>
void call_step(Arguments& args) {
  std::vector<BlockQ8_0> b = weight(args);
  run_chain_of_blocks(args, b, dot<kScale>);
}

void call_nothing(Arguments& args) {
  const std::vector<BlockQ8_0> b = weight(args);
  run_chain(args, args.vector("noise"), args.size("width"),
            [](MatrixView<const float>, MatrixView<float>) {});
}

const Callable kQuantizationSteps{{"step 3 of quantization, again and again", call_step<by_call>},
                                  {"step 4 of quantization, again and again", call_step<by_bits>},
                                  {"nothing of blocks, again and again", call_nothing}};

}  // namespace

}  // namespace stagecraft::stages
