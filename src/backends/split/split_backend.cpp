#include "backends/split/split_backend.h"

#include <algorithm>

#include "backends/pass_check.h"
#include "backends/sequence_state.h"
#include "model/plan_split.h"

namespace stagecraft {
namespace {

// One text: a sequence on each backend. Both always have the same length.
class SplitSequence final : public Sequence {
 public:
  SplitSequence(const Plan& plan, std::unique_ptr<Sequence> front, std::unique_ptr<Sequence> back)
      : plan_(plan), front_(std::move(front)), back_(std::move(back)) {}

  std::size_t length() const override { return back_->length(); }
  std::size_t capacity() const override { return std::min(front_->capacity(), back_->capacity()); }

  // If one sequence keeps fewer positions, the other one is cut again. At worst, both keep none.
  std::size_t truncate(std::size_t length) override {
    for (;;) {
      const std::size_t kept = front_->truncate(length);
      length = back_->truncate(kept);
      if (length == kept) return length;
    }
  }

  bool copy(const Sequence& sequence, std::size_t length) override {
    const auto& other = static_cast<const SplitSequence&>(sequence);
    if (!knows_states(plan_, other.length(), length)) return false;
    if (!front_->copy(*other.front_, length)) return false;
    try {
      if (back_->copy(*other.back_, length)) return true;
    } catch (...) {
      truncate(0);
      throw;
    }
    truncate(0);  // the front no longer has what it had before
    return false;
  }

  bool reserve(std::size_t length) override {
    return front_->reserve(length) && back_->reserve(length);
  }

  Sequence& front() const { return *front_; }
  Sequence& back() const { return *back_; }

 private:
  const Plan& plan_;
  std::unique_ptr<Sequence> front_, back_;
};

class SplitBackend final : public Backend {
 public:
  SplitBackend(const Plan& plan, std::size_t n, const MakeBackend& front, const MakeBackend& back)
      : plan_(plan),
        parts_(split_plan(plan, n)),
        front_(front(parts_.front)),
        back_(back(parts_.back)) {}

  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) override {
    auto front = front_->make_sequence(context, max_rows);
    auto back = back_->make_sequence(context, max_rows);
    make_rows();
    return std::make_unique<SplitSequence>(plan_, std::move(front), std::move(back));
  }

  // Makes no n_more: they would need memory in both parts, and only the CPU backend has it.
  std::vector<std::unique_ptr<Sequence>> make_sequences(std::size_t n, std::size_t,
                                                        std::size_t context,
                                                        std::size_t max_rows) override {
    auto front = front_->make_sequences(n, 0, context, max_rows);
    auto back = back_->make_sequences(n, 0, context, max_rows);
    make_rows();
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (std::size_t i = 0; i < n; ++i) {
      sequences.push_back(
          std::make_unique<SplitSequence>(plan_, std::move(front[i]), std::move(back[i])));
    }
    return sequences;
  }

  void forward(std::span<const Input> inputs, MatrixView<float> logits) override {
    run(inputs, logits, [&] { back_->forward(back_inputs_, logits); });
  }

  void forward_greedy(std::span<const Input> inputs, MatrixView<float> logits,
                      std::span<TokenId> likeliest) override {
    run(inputs, logits, [&] { back_->forward_greedy(back_inputs_, logits, likeliest); });
  }

  std::size_t max_rows() const override { return rows_.rows(); }
  std::size_t n_threads() const override { return front_->n_threads(); }
  void use_threads(std::size_t n) override {
    front_->use_threads(n);
    back_->use_threads(n);
  }

 private:
  // Allocates the rows that the front writes and the back reads.
  void make_rows() {
    const std::size_t n = std::min(front_->max_rows(), back_->max_rows());
    const BufferId x = parts_.front.logits;
    if (n != rows_.rows()) rows_ = Matrix<float>(n, parts_.front.buffer(x).width);
  }

  template <class RunBack>
  void run(std::span<const Input> inputs, MatrixView<float> logits, const RunBack& run_back) {
    const std::size_t n_rows = check(inputs, logits);
    front_inputs_.clear();
    back_inputs_.clear();
    std::size_t row = 0;
    for (const Input& input : inputs) {
      const auto& sequence = static_cast<const SplitSequence&>(*input.sequence);
      const std::size_t n = input.tokens.size();
      front_inputs_.push_back({&sequence.front(), input.tokens, n});
      back_inputs_.push_back(
          {&sequence.back(), input.tokens, input.n_logits, rows_.view().row_range(row, n)});
      row += n;
    }
    // If a token is not in the vocabulary, the front throws before anything has changed.
    front_->forward(front_inputs_, rows_.top_rows(n_rows));
    try {
      run_back();
    } catch (...) {  // for example, the GPU failed: the front forgets the tokens of this pass
      for (const Input& input : inputs) {
        try {
          input.sequence->truncate(input.sequence->length());
        } catch (...) {  // the GPU refuses this, too; the first error says more
        }
      }
      throw;
    }
  }

  // Throws the errors that the back would throw only after the front has run. Returns the number of
  // rows.
  std::size_t check(std::span<const Input> inputs, MatrixView<float> logits) const {
    PassCheck pass(plan_, max_rows());
    for (const Input& input : inputs) pass.text(input.tokens, input.n_logits, input.rows);
    return pass.end(logits);
  }

  const Plan& plan_;
  const SplitPlan parts_;
  std::unique_ptr<Backend> front_, back_;
  Matrix<float> rows_;  // [max_rows, width of the residual stream]
  std::vector<Input> front_inputs_, back_inputs_;
};

}  // namespace

std::unique_ptr<Backend> make_split_backend(const Plan& plan, std::size_t n,
                                            const MakeBackend& front, const MakeBackend& back) {
  return std::make_unique<SplitBackend>(plan, n, front, back);
}

}  // namespace stagecraft
