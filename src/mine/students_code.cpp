#include "mine/students_code.h"

const bool stagecraft::kRunsStudentsCode = true;
