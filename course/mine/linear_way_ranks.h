#pragma once

#include <cstddef>

#include "model/linear_ways.h"

namespace stagecraft {

// The ways in which linear() of a --mine program multiplies, the preferred one first. Each is there
// if its stage is the student's. With stages 9 and 10, stage 10 has the weights of the layers and
// stage 9 the head: the logits decide which token is chosen, so engines commonly keep the head at a
// higher precision (llama.cpp's Q4_K_M has it in Q6_K).
enum WayRank { kOnGpu, kPackedHead, kQuantized, kPacked };

// How the kernels of stages 9 and 10 compare with stage 3's: ./stage bench --mine 0-10 shows 6 to
// 10 times as many tokens per second.
constexpr std::size_t kTimesAsFast = 8;

// The rows of the head of the model that is open: its vocabulary.
inline std::size_t head_rows = 0;

}  // namespace stagecraft
