#pragma once

#include <cstddef>

#include "backends/engine.h"

namespace stagecraft {

// A program in which a student's functions stand in the place of ours. Then the layers that call
// them have to run.
struct StudentsCode {
  void (*model_is_open)(std::size_t vocab_size);  // tells them how many rows the model's head has
};

// Set before main() by what such a program links in addition (course/mine/students_code.cpp); null
// in ours.
inline const StudentsCode* students_code = nullptr;

// The backend whose intermediate results trace, peek and the glass box show: every step of the
// plan, or what a student's functions return.
inline BackendKind observed_backend() {
  return students_code == nullptr ? BackendKind::Walker : BackendKind::Textbook;
}

inline void tell_students_code(std::size_t vocab_size) {
  if (students_code != nullptr) students_code->model_is_open(vocab_size);
}

}  // namespace stagecraft
