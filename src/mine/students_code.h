#pragma once

namespace stagecraft {

struct Model;

// Is this the program in which a student's functions stand in the place of ours? Then the layers
// that call them have to run. Defined in students_code.cpp for that one, and in ours_alone.cpp for
// ours.
extern const bool kRunsStudentsCode;

// Tells the student's code which model it runs; does nothing in ours.
void tell_students_code(const Model& model);

}  // namespace stagecraft
