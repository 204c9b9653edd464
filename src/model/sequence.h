#pragma once

#include <memory>

#include "model/model.h"
#include "model/workspace.h"

namespace stagecraft {

// A sequence of tokens as the model sees it: what has been computed of it so far, the layers that
// compute more, and all the memory and threads that they will need. There are two kinds: one with
// the textbook's layers, whose functions are those of the stages, and one with the fast ones. Both
// compute the same formulas.
class Sequence {
 public:
  virtual ~Sequence() = default;

  // Computes the next tokens, at most max_rows() of them; logits [n, vocab_size] gets the scores
  // after each of the last n. See forward() and fast_forward().
  virtual void forward(std::span<const TokenId> tokens, MatrixView<float> logits) = 0;
  virtual void truncate(std::size_t length) = 0;  // forgets all positions from `length` on

  virtual std::size_t capacity() const = 0;  // in positions
  virtual std::size_t max_rows() const = 0;  // tokens a call
  virtual std::size_t n_threads() const = 0;

  // Sees every intermediate result from now on. Throws Error if the layers are the fast ones, which
  // have no such names for what they compute.
  virtual void set_probe(Workspace::Probe probe) = 0;
};

// The layers are those that the model was opened for; it must outlive the sequence. context: in
// positions. Throws std::bad_alloc, or Error if the system starts not as many threads.
std::unique_ptr<Sequence> make_sequence(const Model& model, std::size_t context,
                                        std::size_t n_threads);

// The memory in bytes that it comes to use. Pages that are never reached cost nothing.
struct SequenceBytes {
  double cache;  // keys and values
  double workspace;
};
SequenceBytes sequence_bytes(const Config& config, Layers layers, KvType kv_type,
                             std::size_t context);

}  // namespace stagecraft
