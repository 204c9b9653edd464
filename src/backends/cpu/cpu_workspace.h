#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/cpu/fused_plan.h"
#include "base/round_up.h"
#include "base/thread_pool.h"
#include "operators/kernels/kernels.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Up to this many rows, each thread prepares all of them for itself: that takes less time than
// waiting for the others.
constexpr std::size_t kFewRows = 4;

// From row to row of bf16 numbers: an odd number of cache lines. The rows of a tile (amx_tiles.h)
// then lie in different sets of the first cache; 16 rows of 3,072 bytes share four of its 64 sets.
constexpr std::size_t bf16_stride(std::size_t width) {
  constexpr std::size_t kLine = 32;
  return (round_up(width, kLine) / kLine | 1) * kLine;
}

// Rows of activations in the rounded formats that kernels ask for.
struct RoundedRows {
  RoundedRows() = default;
  RoundedRows(std::size_t rows, std::size_t width);

  Matrix<std::uint16_t> bf16;  // bf16_stride(width) from row to row
  Matrix<std::int8_t> q8;
  Matrix<float> scales;    // of q8, [rows, width / 32]
  Matrix<BlockSums> sums;  // of the same blocks
};

// And as floats.
struct PreparedRows : RoundedRows {
  PreparedRows() = default;
  PreparedRows(std::size_t rows, std::size_t width) : RoundedRows(rows, width), f32(rows, width) {}

  Matrix<float> f32;
};

// What softmax knows of some positions, per query: its largest score, and the sums of e^(score -
// largest) and of the values times that.
struct AttentionSums {
  AttentionSums() = default;
  AttentionSums(std::size_t queries, std::size_t width)
      : largest(queries), total(queries), weighted(queries, width) {}

  std::vector<float> largest, total;
  Matrix<float> weighted;  // [queries, head_dim, rounded up to 32]
};

// Which rows go to which experts. A row has one slot per expert that it goes to; the slots of an
// expert follow each other, so that its weights are read once for all of its rows.
struct Slots {
  struct Expert {
    std::size_t index, first, end;  // slots [first, end)
  };
  std::vector<std::uint32_t> rows;  // by slot
  std::vector<Expert> experts;      // that have any
};

// Everything that a pass writes on its way, allocated once.
struct CpuWorkspace {
  CpuWorkspace(const Plan& plan, const FusedPlan& fused, const Kernels& table, std::size_t rows,
               std::size_t n_threads);

  const Kernels& kernels;
  std::size_t max_rows;
  std::vector<Matrix<float>> buffers;  // by BufferId, [max_rows, width]; empty where not stored
  struct Rotation {                    // of each row's position
    Matrix<float> cos, sin;            // [max_rows, head_dim / 2]
  };
  std::vector<Rotation> rotations;  // by FrequenciesId
  PreparedRows prepared;            // of a long pass, each thread prepares its share
  RoundedRows gated;                // the results of FusedGate that have `readers`
  Matrix<float> hidden;             // what is inside experts: a row per slot, see Slots

  static constexpr std::size_t kScores = 256;  // per query: positions of one step of softmax
  // From query to query: an odd number of cache lines. At 1,024 bytes, all rows of a tile would be
  // written to four sets of the first cache.
  static constexpr std::size_t kScoreStride = kScores + 16;
  struct Scratch {                 // a thread's own
    PreparedRows prepared;         // of a short pass: each thread prepares all rows for itself
    Slots slots;                   // of the experts that are computed now
    Matrix<float> tile;            // [2 * 12, 32]: the output of kernels
    PreparedRows queries;          // [tile rows, head_dim, rounded up to 32]: zeros behind it
    PreparedRows scores;           // [tile rows, kScores], kScoreStride apart
    AttentionSums segment, whole;  // [tile rows], of a part of the text and of all of it
  };
  std::vector<Scratch> scratch;
  std::vector<std::atomic<std::size_t>> next_task;  // of each attention of the plan
  // Of a pass over few texts, whose segments the threads share.
  AttentionSums joined;                  // [kFewRows * heads]
  std::vector<ThreadPool::Count> turns;  // [kFewRows * key heads]: segments that are in `joined`
  std::size_t alone = 0;  // short passes that one thread is still to do, see cpu_pass.cpp

  ThreadPool threads;
};

// The memory in bytes of a workspace with one thread.
double cpu_workspace_bytes(const Plan& plan, const FusedPlan& fused, std::size_t max_rows);

}  // namespace stagecraft
