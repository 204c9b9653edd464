#pragma once

#include <cstddef>

#include "backends/engine.h"

namespace stagecraft {

// Present in a program in which a student's functions replace ours. The layers that call these
// functions must then run.
struct StudentsCode {
  void (*model_is_open)(std::size_t vocab_size);  // vocab_size: rows of the model's head
};

// course/mine/students_code.cpp, which only such a program links, sets it before main(). Null in
// the programs without it.
inline const StudentsCode* students_code = nullptr;

// The backend whose intermediate results trace, peek and the glass box show. Walker reports every
// step of the plan. With a student's code, Textbook reports the results of the student's functions.
inline BackendKind observed_backend() {
  return students_code == nullptr ? BackendKind::Walker : BackendKind::Textbook;
}

inline void tell_students_code(std::size_t vocab_size) {
  if (students_code != nullptr) students_code->model_is_open(vocab_size);
}

}  // namespace stagecraft
