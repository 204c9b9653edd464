#pragma once

#include <cstddef>

namespace stagecraft {

// Is this the program in which a student's functions stand in the place of ours? Then the layers
// that call them have to run. Defined in students_code.cpp for that one, and in ours_alone.cpp for
// ours.
extern const bool kRunsStudentsCode;

// Tells the student's code how many rows the head of the model has; does nothing in ours.
void tell_students_code(std::size_t vocab_size);

}  // namespace stagecraft
