#pragma once

#include <vector>

#include "model/plan.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The states of one sequence (StateShape): what its layers keep of the text beside keys and values.
// A step overwrites them as it goes, so they can be copied whole, or begin anew, and nothing else.
class SequenceState {
 public:
  // row_multiple: rows are padded to a multiple of this many numbers.
  explicit SequenceState(const Plan& plan, std::size_t row_multiple = 1);

  bool is_empty() const { return states_.empty(); }
  // [rows, width] as the plan says, the padding left out.
  MatrixView<float> view(StateId id);
  float* data(StateId id) { return states_[static_cast<std::size_t>(id)].values.data(); }

  // Whether the states of a text of `from` positions, as they were after `to` of them, are still
  // known: after all of them, or before the first.
  bool knows(std::size_t from, std::size_t to) const { return is_empty() || to == from || to == 0; }
  // A text of `from` positions is to be cut to `to`. Returns the length that it now has: 0 where a
  // state cannot be cut there.
  std::size_t truncate(std::size_t from, std::size_t to);
  // Becomes what `other` knows of its first `to` positions.
  void copy(const SequenceState& other, std::size_t to);

 private:
  void clear();  // as before the first token

  struct State {
    std::size_t width;
    Matrix<float> values;
  };
  std::vector<State> states_;
};

// Bytes of the states of a sequence.
double sequence_state_bytes(const Plan& plan, std::size_t row_multiple = 1);

}  // namespace stagecraft
