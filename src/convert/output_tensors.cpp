#include "convert/output_tensors.h"

#include <algorithm>
#include <set>

#include "checkpoint/convert_tensor.h"
#include "checkpoint/rope_pairs.h"
#include "model/plan_weights.h"

namespace stagecraft {
namespace {

bool are_equal(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype == b.dtype && std::ranges::equal(a.bytes, b.bytes);
}

}  // namespace

std::vector<OutputTensor> output_tensors(const Plan& plan, const Checkpoint& checkpoint) {
  const std::vector<const StoredTensor*> stored = find_weights(plan, checkpoint);
  std::vector<OutputTensor> tensors;
  std::set<const StoredTensor*> seen;
  const StoredTensor* embedding = nullptr;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Weight& weight = plan.weights[i];
    // The one table of a tied model is written once, as the embedding, which comes first.
    const bool tied = !weight.or_name.empty();
    const bool again = tied && embedding != nullptr && are_equal(*stored[i], *embedding);
    if (tied && embedding == nullptr) embedding = stored[i];
    // Several weights may be parts of one tensor.
    if (!again && seen.insert(stored[i]).second) {
      tensors.push_back({weight.name, stored[i], stored[i]->dtype, weight.exact});
    }
  }
  return tensors;
}

void write_tensor(const OutputTensor& tensor, const Checkpoint& checkpoint, ThreadPool& threads,
                  AtomicFile& file, const std::function<void()>& check) {
  StoredTensor stored = *tensor.stored;
  std::vector<std::byte> reordered;
  if (tensor.pairs != 0) {
    reordered = pairs_from_halves(stored.bytes, stored.shape.front(), tensor.pairs);
    stored.bytes = reordered;
  }
  const auto write = [&](std::span<const std::byte> piece) {
    if (check) check();
    file.write(piece);
  };
  convert_tensor(stored, tensor.dtype, checkpoint.name(), write, &threads);
  checkpoint.release_pages();
}

}  // namespace stagecraft
