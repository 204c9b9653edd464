#pragma once

namespace stagecraft {

// Is this the program in which a student's functions stand in the place of ours? Then the layers
// that call them have to run. Defined in students_code.cpp for that one, and in ours_alone.cpp for
// ours.
extern const bool kRunsStudentsCode;

}  // namespace stagecraft
