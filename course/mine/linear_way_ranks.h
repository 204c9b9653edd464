#pragma once

#include <cstddef>

#include "model/linear_ways.h"

namespace stagecraft {

// The ways in which linear() of a --mine program can multiply, the preferred one first. A way
// exists if its stage is the student's. With stages 9 and 10, stage 10 computes the layers and
// stage 9 the output head: the logits decide which token is chosen, so engines commonly store the
// head more precisely (llama.cpp's Q4_K_M stores it in Q6_K).
enum WayRank { kOnGpu, kPackedHead, kQuantized, kPacked };

// The speed of the kernels of stages 9 and 10, relative to stage 3: ./stage bench --mine 0-10 shows
// 6 to 10 times as many tokens per second.
constexpr std::size_t kTimesAsFast = 8;

// The rows of the open model's output head: its vocabulary size.
inline std::size_t head_rows = 0;

}  // namespace stagecraft
