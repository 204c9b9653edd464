#include "backends/sequence_state.h"

#include <algorithm>

#include "base/round_up.h"

namespace stagecraft {
SequenceState::SequenceState(const Plan& plan, std::size_t row_multiple) {
  for (const StateShape& shape : plan.states) {
    states_.push_back(
        {shape.width, Matrix<float>(shape.rows, round_up(shape.width, row_multiple))});
  }
}

MatrixView<float> SequenceState::view(StateId id) {
  State& state = states_[static_cast<std::size_t>(id)];
  return state.values.view().col_range(0, state.width);
}

std::size_t SequenceState::truncate(std::size_t from, std::size_t to) {
  if (to >= from) return from;
  if (is_empty()) return to;
  clear();
  return 0;
}

void SequenceState::copy(const SequenceState& other, std::size_t to) {
  if (to == 0) return clear();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Matrix<float>& values = other.states_[i].values;
    std::copy_n(values.data(), values.rows() * values.cols(), states_[i].values.data());
  }
}

void SequenceState::clear() {
  for (State& state : states_) {
    std::fill_n(state.values.data(), state.values.rows() * state.values.cols(), 0.0f);
  }
}

double sequence_state_bytes(const Plan& plan, std::size_t row_multiple) {
  double numbers = 0.0;
  for (const StateShape& shape : plan.states) {
    numbers +=
        static_cast<double>(shape.rows) * static_cast<double>(round_up(shape.width, row_multiple));
  }
  return sizeof(float) * numbers;
}

}  // namespace stagecraft
