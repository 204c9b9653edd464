#pragma once

#include "backends/engine_options.h"
#include "model/plan.h"
#include "operators/cuda/operators.h"

// How much memory the CUDA backend needs. sequence_bytes() asks for it in every program, also in
// those without CUDA: they link cuda_bytes.cpp, but none of the files that call kernels.
namespace stagecraft {

namespace cuda {
// How many numbers one row of a pass needs in each array of PassWorkspace.
struct RowSizes {
  std::size_t buffers = 0;   // all buffers of the plan together
  std::size_t selected = 0;  // the second buffer of SelectStep::x
  std::size_t input = 0;     // the widest input of a linear step, as halves (HalfRows)
  std::size_t chosen = 0;    // the list of the row's experts
  std::size_t inside = 0;    // `gate`: the middle rows of these experts; `up` has the same size
  std::size_t down = 0;      // the results of these experts, before they are added up
};
RowSizes sizes_of_row(const Plan& plan);
inline constexpr std::size_t kRowTables = 7;  // tables of ints; see PassRows

CacheType cache_type(KvType type);  // throws Error for BF16
}  // namespace cuda

// Bytes in the GPU's memory. workspace: for passes of the usual number of rows (kMostRows). Throws
// Error for BF16.
SequenceBytes cuda_bytes(const Plan& plan, KvType type, std::size_t context);

}  // namespace stagecraft
