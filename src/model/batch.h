#pragma once

#include <span>
#include <vector>

#include "model/fast_forward.h"
#include "model/model.h"

namespace stagecraft {

// A prompt goes through the fast layers in pieces of this many tokens: enough that each weight
// fetched from memory serves many rows, few enough that the workspace stays small.
constexpr std::size_t kFastRows = 512;

// Several sequences that go through the fast layers together: a weight that is fetched from memory
// serves them all. Each has what it computed so far; each pass may take any of them.
class Batch {
 public:
  // context: in positions, for each sequence. max_rows: the most tokens of a pass, over all. The
  // model must have been opened for the fast layers, and outlive this. Throws std::bad_alloc, or
  // Error if the system starts not as many threads.
  Batch(const Model& model, std::size_t n_sequences, std::size_t context, std::size_t max_rows,
        std::size_t n_threads);

  struct Part {
    std::size_t sequence;
    std::span<const TokenId> tokens;
    std::size_t n_logits;  // after so many of the last tokens
  };
  // The next tokens of some sequences, each named once. See fast_forward().
  void forward(std::span<const Part> parts, MatrixView<float> logits);

  std::size_t length(std::size_t sequence) const { return caches_[sequence].length(); }
  void truncate(std::size_t sequence, std::size_t length) { caches_[sequence].truncate(length); }

  std::size_t vocab_size() const { return model_.config.vocab_size; }
  std::size_t size() const { return caches_.size(); }
  std::size_t context() const { return caches_.front().capacity(); }
  std::size_t max_rows() const { return workspace_.max_rows; }
  std::size_t n_threads() const { return workspace_.threads.size(); }

 private:
  const Model& model_;
  std::vector<PanelCache> caches_;
  FastWorkspace workspace_;
  std::vector<SequenceTokens> tokens_;
};

// The bytes that the keys and values of one sequence come to use.
double cache_bytes(const Config& config, KvType type, std::size_t context);

}  // namespace stagecraft
