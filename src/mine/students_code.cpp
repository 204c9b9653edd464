#include "mine/students_code.h"

#include "mine/ways.h"
#include "model/model.h"

namespace stagecraft {

const bool kRunsStudentsCode = true;

void tell_students_code(const Model& model) { ways.head = model.parameters.lm_head.weight.data(); }

}  // namespace stagecraft
