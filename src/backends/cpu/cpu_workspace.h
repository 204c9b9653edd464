#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "backends/cpu/fused_plan.h"
#include "base/round_up.h"
#include "base/thread_pool.h"
#include "operators/kernels/kernels.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Up to this many rows, each thread prepares all rows for itself: this takes less time than waiting
// for the other threads.
constexpr std::size_t kFewRows = 4;

// The strides of rows, in elements: odd numbers of cache lines (a Q8KBlock has seven). Then the
// rows that a kernel multiplies at a time lie in different sets of the L1 cache. Rows of 8,192
// bytes would all lie in one of its 64 sets, which has room for only 8 to 12 of them: so 12 rows of
// floats were multiplied 10% slower on a Zen 4.
constexpr std::size_t odd_lines(std::size_t width, std::size_t per_line) {
  return (round_up(width, per_line) / per_line | 1) * per_line;
}
constexpr std::size_t f32_stride(std::size_t width) { return odd_lines(width, 16); }
constexpr std::size_t bf16_stride(std::size_t width) { return odd_lines(width, 32); }
constexpr std::size_t q8_stride(std::size_t width) { return odd_lines(width, 64); }
constexpr std::size_t q8_k_stride(std::size_t width) {
  const std::size_t blocks = width / Q8KBlock::kSize;
  return blocks == 0 ? 0 : blocks | 1;
}

// The stride of rows of `width` activations, in elements of TileArgs::rows.
constexpr std::size_t row_stride(ActivationType type, std::size_t width) {
  const std::size_t strides[kActivationTypes] = {f32_stride(width), bf16_stride(width),
                                                 q8_stride(width), q8_k_stride(width)};
  return strides[static_cast<std::size_t>(type)];
}

// A matrix of floats whose stride is f32_stride(width).
class FloatRows {
 public:
  FloatRows() = default;
  FloatRows(std::size_t rows, std::size_t width)
      : memory_(rows, f32_stride(width)), width_(width) {}

  MatrixView<float> view() { return memory_.view().col_range(0, width_); }

 private:
  Matrix<float> memory_;
  std::size_t width_ = 0;
};

struct RowsSize {
  std::size_t rows, width;
};

// Memory for rows of activations in the rounded formats that kernels need: enough for any one of
// the sizes.
struct RoundedRows {
  RoundedRows() = default;
  RoundedRows(const Kernels& kernels, std::initializer_list<RowsSize> sizes);

  Matrix<std::uint16_t> bf16;  // stride: bf16_stride(width)
  Matrix<std::int8_t> q8;      // stride: q8_stride(width)
  Matrix<float> scales;        // of q8; stride: width / 32
  Matrix<BlockSums> sums;      // of the same blocks
  Matrix<Q8KBlock> q8_k;       // stride: q8_k_stride(width); empty if the kernels do not need it
};

// The same rows also as floats.
struct PreparedRows : RoundedRows {
  PreparedRows() = default;
  PreparedRows(const Kernels& kernels, std::initializer_list<RowsSize> sizes);

  Matrix<float> f32;  // stride: f32_stride(width)
};

// The state of online softmax after some positions, per query: the largest score, the sum of
// 2^(score - largest), and the sum of the values times 2^(score - largest). The scores were
// multiplied by log2(e) first.
struct AttentionSums {
  AttentionSums() = default;
  AttentionSums(std::size_t queries, std::size_t width)
      : largest(queries), total(queries), weighted(queries, width) {}

  std::vector<float> largest, total;
  Matrix<float> weighted;  // [queries, head_dim, rounded up to 32]
};

// Which rows go to which experts. A row has one slot per expert that it goes to. The slots of an
// expert follow each other, so that its weights are read once for all of its rows.
struct ExpertSlots {
  struct Expert {
    std::size_t index, first, end;  // slots [first, end)
  };
  std::vector<std::uint32_t> rows;  // by slot
  std::vector<Expert> experts;      // with at least one slot
};

// The memory that passes write, allocated once.
struct CpuWorkspace {
  CpuWorkspace(const Plan& plan, const FusedPlan& fused, const Kernels& table, std::size_t rows,
               std::size_t n_threads);

  MatrixView<float> buffer(BufferId id) { return buffers[static_cast<std::size_t>(id)].view(); }

  const Kernels& kernels;
  std::size_t max_rows;
  std::vector<FloatRows> buffers;  // by BufferId, [max_rows, width]; empty if not stored
  struct Rotation {                // by the position of each row
    Matrix<float> cos, sin;        // [max_rows, head_dim / 2]
  };
  std::vector<Rotation> rotations;  // by FrequenciesId
  PreparedRows prepared;            // of more than kFewRows rows: a slice per thread
  RoundedRows gated;                // results of FusedGate that are only needed rounded
  Matrix<float> hidden;             // inside experts: one row per slot; stride: f32_stride(width)

  static constexpr std::size_t kScores = 256;  // positions per step of online softmax
  static constexpr std::size_t kScoreStride = f32_stride(kScores);  // from query to query
  struct Scratch {                                                  // of one thread
    PreparedRows prepared;         // of at most kFewRows rows, or of one thread alone
    ExpertSlots slots;             // of the current FusedExperts
    Matrix<float> tile;            // [2 * kMostTileRows, 32]: the output of kernels
    PreparedRows queries;          // [queries, head_dim, rounded up to 32], padded with zeros
    PreparedRows scores;           // [queries, kScores], stride: kScoreStride
    AttentionSums segment, whole;  // [queries], of one segment and of all segments
  };
  std::vector<Scratch> scratch;
  std::vector<std::atomic<std::size_t>> next_task;  // per attention of the plan
  // For a pass over one token each of few texts: the threads share the segments of a text.
  AttentionSums joined;  // [kFewRows * heads]
  // [kFewRows * key heads]: how many segments are in `joined` already
  std::vector<ThreadPool::Count> n_joined;
  // How many of the next short passes one thread computes: see kShortPass.
  std::size_t single_thread_passes = 0;

  ThreadPool threads;
};

// The memory in bytes of a workspace with one thread and the kernels of this processor.
double cpu_workspace_bytes(const Plan& plan, const FusedPlan& fused, std::size_t max_rows);

}  // namespace stagecraft
