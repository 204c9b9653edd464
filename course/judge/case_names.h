#pragma once

#include <string>

namespace stagecraft::stages {

// The name of a case as a student reads it: the name itself, by which ./stage debug finds the case,
// and where stages/case_names.json says more in the reader's language, that:
// "large-eps: eps = 0.5". The file has patterns for names that hold numbers: {0} stands for one
// letter or more, and so does {1}. If several patterns fit, the one with most letters beside these
// counts.
std::string told_name(const std::string& name);

}  // namespace stagecraft::stages
