#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/token.h"
#include "tensor/matrix.h"

namespace stagecraft {

// One text on a backend: it keeps what outlives a pass, such as the keys and values of every
// position.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual std::size_t length() const = 0;    // positions computed
  virtual std::size_t capacity() const = 0;  // the largest possible length

  // Forgets every position from `length` on. Returns the new length. It is less than `length` if
  // the sequence cannot be cut there: then the caller must feed the missing tokens again.
  virtual std::size_t truncate(std::size_t length) = 0;

  // Becomes a copy of the first `length` positions of `other`, another sequence of this backend.
  // Returns false if that is impossible: for example, if there is no memory, or if `other` no
  // longer has the states of that position. Then this sequence has not changed, or it is empty.
  virtual bool copy(const Sequence& /*other*/, std::size_t /*length*/) { return false; }

  // Makes room for `length` positions, at most capacity(). Returns false if the sequence shares
  // memory (make_sequences) and other sequences hold too much of it: they must be cut first.
  virtual bool reserve(std::size_t /*length*/) { return true; }
};

// The next tokens of one sequence in a pass. If the plan has a PromptRule, the positions of a
// text's tokens, and what they attend to, depend on the text's first pass, which must contain the
// whole prompt (model/placement.h).
struct Input {
  Sequence* sequence = nullptr;
  std::span<const TokenId> tokens;
  std::size_t n_logits = 0;  // the last n_logits tokens are scored
  // One row per token, only for a plan that reads rows instead of tokens (model/plan_split.h).
  MatrixView<const float> rows = {};
};

// Called with every named intermediate result of a pass; layer is -1 outside the layers. A value
// has one row per token of the pass. Only kAttentionProbs, the probabilities of attention, has one
// per head and token, [n_heads * q_len, kv_len]: all tokens of a head, then those of the next.
inline constexpr std::string_view kAttentionProbs = "attn_probs";
using Probe = std::function<void(int layer, std::string_view name, MatrixView<const float>)>;

// The results inside a pass, of a textbook backend.
class StepResults {
 public:
  // Calls `probe` with intermediate results from now on; an empty probe ends this.
  // textbook_backend.h lists the results.
  virtual void set_probe(Probe probe) = 0;

  // Applies the final norm and the output head to these rows of the residual stream, as if they
  // were the result of the last layer. They are computed in the memory of a pass, so a sequence
  // must have been made before.
  //
  //   x       [n, width of the residual stream]  read; 1 <= n <= max_rows()
  //   logits  [n, vocab_size]                    written
  //
  // Throws Error if there was no sequence, or if sizes are wrong.
  virtual void score(MatrixView<const float> x, MatrixView<float> logits) = 0;

 protected:
  ~StepResults() = default;
};

// Runs the plan of one model. Owns the weights in the layout that it needs, the threads, and the
// memory of a pass. One caller at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  // context: the capacity in positions. max_rows: the largest number of tokens in a pass with this
  // sequence; 0: the backend chooses. Memory is allocated here and never in a pass. Throws
  // std::bad_alloc, or Error if the system does not start the threads: then the sequences that
  // exist can go on.
  virtual std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) = 0;

  // Makes the sequences of a server. At most n of them take part in a pass, and there is memory for
  // n of full length. If sequences of the backend can share memory, it makes n + n_more: the
  // additional ones keep earlier texts in free memory, and a beginning that several texts have in
  // common is stored once.
  virtual std::vector<std::unique_ptr<Sequence>> make_sequences(std::size_t n,
                                                                std::size_t /*n_more*/,
                                                                std::size_t context,
                                                                std::size_t max_rows) {
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (std::size_t i = 0; i < n; ++i) sequences.push_back(make_sequence(context, max_rows));
    return sequences;
  }

  // Computes the next tokens of some sequences of this backend. Each sequence occurs at most once.
  //
  //   logits  [sum of n_logits, vocab_size]  written, in the order of the inputs: the logits
  //           after each scored token
  //
  // The bits of a sequence's logits do not depend on the other inputs, on how its text is cut into
  // passes, or on the number of threads, if all keys and values are finite. (A row is multiplied
  // with the keys and values of later tokens of its pass, too, times 0; and 0 times infinity is
  // NaN.) Throws Error if a token is not in the vocabulary, if a sequence has no room, or if sizes
  // are wrong: no token, more than max_rows() tokens, more scored tokens than tokens, or logits of
  // another shape. Then no sequence has changed.
  virtual void forward(std::span<const Input> inputs, MatrixView<float> logits) = 0;

  // Like forward, for a caller that needs only the likeliest next token of each row: the token with
  // the largest logit, of equal ones the lowest id. So a GPU need not copy the logits to the host.
  //
  //   likeliest  [sum of n_logits]  written: the token; or -1 if the row of logits is written
  //              instead, as by forward. This is always so if a logit is NaN or
  //              +infinity, or if all are -infinity.
  virtual void forward_greedy(std::span<const Input> inputs, MatrixView<float> logits,
                              std::span<TokenId> likeliest) {
    forward(inputs, logits);
    std::ranges::fill(likeliest, -1);
  }

  // Tokens per pass, all inputs together (textbook backends: per input).
  virtual std::size_t max_rows() const = 0;
  virtual std::size_t n_threads() const = 0;
  // n: at least 1. Backends that fuse steps use at most the cores of this machine; CUDA always uses
  // one. The results keep their bits. Throws as make_sequence does: then the number of threads
  // stays as it was.
  virtual void use_threads(std::size_t n) = 0;

  // Null if the backend fuses steps, because then it has no such results.
  virtual StepResults* step_results() { return nullptr; }
};

}  // namespace stagecraft
