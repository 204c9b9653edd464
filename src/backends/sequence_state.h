#pragma once

#include <vector>

#include "model/plan.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The states of one sequence (StateShape): what its layers keep of a text besides keys and values.
// Each token overwrites them, so older states are lost. They can only be copied whole or cleared.
class SequenceState {
 public:
  // row_multiple: rows are padded to a multiple of this many numbers.
  explicit SequenceState(const Plan& plan, std::size_t row_multiple = 1);

  bool is_empty() const { return states_.empty(); }
  // [rows, width] of the plan's StateShape, without the padding.
  MatrixView<float> view(StateId id);
  // The same with the padding, for a backend that stores the numbers in its own order.
  float* data(StateId id) { return states_[static_cast<std::size_t>(id)].values.data(); }

  // Whether the states after the first `to` of `from` positions are known: those after all
  // positions and those before the first one are.
  bool knows(std::size_t from, std::size_t to) const { return is_empty() || to == from || to == 0; }
  // Cuts a text of `from` positions to `to`. Returns the new length, which is 0 if the states after
  // `to` positions are not known.
  std::size_t truncate(std::size_t from, std::size_t to);
  // Copies the states that `other` had after its first `to` positions, which must be known.
  void copy(const SequenceState& other, std::size_t to);

 private:
  void clear();  // the states before the first token

  struct State {
    std::size_t width;
    Matrix<float> values;
  };
  std::vector<State> states_;
};

// SequenceState::knows, for a text whose states are elsewhere.
inline bool knows_states(const Plan& plan, std::size_t from, std::size_t to) {
  return plan.states.empty() || to == from || to == 0;
}

// Bytes of the states of one sequence.
double sequence_state_bytes(const Plan& plan, std::size_t row_multiple = 1);

}  // namespace stagecraft
