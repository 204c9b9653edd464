#include "mine/students_code.h"

namespace stagecraft {

const bool kRunsStudentsCode = false;

void tell_students_code(std::size_t /*vocab_size*/) {}

}  // namespace stagecraft
