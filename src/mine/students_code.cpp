#include "mine/students_code.h"

#include "mine/ways.h"

namespace stagecraft {

const bool kRunsStudentsCode = true;

void tell_students_code(std::size_t vocab_size) { ways.head_rows = vocab_size; }

}  // namespace stagecraft
